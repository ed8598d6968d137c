"""A plan difference as a web page with pictures of the machine before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.page.packing import packed
from placer.page.seats import picture_data
from placer.page.shell import page
from placer.report.diff_text import diff_text

if TYPE_CHECKING:
    from placer.placement.plan import Plan
    from placer.report.diff import PlanDiff

_SCRIPTS = (
    "numbers.js",
    "work.js",
    "filter.js",
    "tables.js",
    "layout.js",
    "picture.js",
    "main.js",
)


def diff_page(
    found: PlanDiff, old: Plan, new: Plan, names: tuple[str, str] = ("old", "new")
) -> str:
    """The page as HTML text; it needs nothing else.

    Every number in it is drawn from one object, the JSON form of the difference.

    Parameters
    ----------
    found : PlanDiff
        The difference of ``old`` and ``new``.
    old, new : Plan
    names : (str, str)
        What to call the two.
    """
    data = {"names": names, "diff": found.to_dict(), **picture_data(old, new)}
    title = f"Placement diff: {names[0]} to {names[1]}"
    return page(title, "diff", _SCRIPTS, packed(data), diff_text(found))
