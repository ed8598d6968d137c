"""``python -m validation`` writes the fits into presets and ``docs/validation.md``."""

from placer.files import write_text
from validation.files import ROOT
from validation.page import page
from validation.presets import write_presets

write_presets()
write_text(str(ROOT / "docs/validation.md"), page())
