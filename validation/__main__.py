"""``python -m validation`` writes ``docs/validation.md`` and the page of memory."""

from placer.files import write_text
from validation.files import ROOT
from validation.memory_page import memory_page
from validation.page import page

write_text(str(ROOT / "docs/validation.md"), page())
write_text(str(ROOT / "docs/memory-validation.md"), memory_page())
