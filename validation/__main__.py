"""``python -m validation`` writes ``docs/validation.md``."""

from placer.files import write_text
from validation.files import ROOT
from validation.page import page

write_text(str(ROOT / "docs/validation.md"), page())
