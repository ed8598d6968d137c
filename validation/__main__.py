"""``python -m validation`` writes the fits into presets, and both pages of evidence."""

from placer.documents.files import write_text
from validation.files import ROOT
from validation.memory_page import memory_page
from validation.page import page
from validation.presets import write_presets

write_presets()
write_text(str(ROOT / "docs/evidence/validation.md"), page())
write_text(str(ROOT / "docs/evidence/memory.md"), memory_page())
