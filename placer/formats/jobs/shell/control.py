"""Ways in which commands end before the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Place
    from placer.formats.jobs.shell.conditions import Outcome


class ControlError(Exception):
    """What comes next is not done."""


class ExitError(ControlError):
    """The script ends here, as it takes variables that nobody sets for empty."""

    def __init__(self, place: Place, names: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.place = place
        self.names = names


class ReturnError(ControlError):
    """The function or the included file ends here."""

    def __init__(self, status: Outcome) -> None:
        super().__init__()
        self.status = status


class BreakError(ControlError):
    """A loop ends here, or with ``is_over`` false its pass; with those inside it."""

    def __init__(self, levels: int, *, is_over: bool) -> None:
        super().__init__()
        self.levels = levels
        self.is_over = is_over
