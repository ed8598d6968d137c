"""``python -m validation`` writes the fits into presets, and both pages."""

from placer.documents.files import write_text
from validation.files import ROOT
from validation.memory_page import memory_page
from validation.page import page
from validation.presets import write_presets

write_presets()
write_text(str(ROOT / "docs/validation.md"), page())
write_text(str(ROOT / "docs/memory-validation.md"), memory_page())
