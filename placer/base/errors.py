"""The errors users may see and catch.

Every error that is the user's to fix derives from `PlacerError`. An `InputError`
carries all problems of a file at once, each with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

MOST_PROBLEMS = 20

T = TypeVar("T")


class PlacerError(Exception):
    """Base of every error placer raises on purpose."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an input, and where.

    Attributes
    ----------
    message : str
        What is wrong, in one sentence without a final full stop.
    source : str
        File name, option or argument; empty when there is none.
    line, column : int
        1-based place in the source; 0 when unknown.
    key : str
        Path of the key, for example ``nodes[1].gpus``.
    hint : str
        What to do about it; may be empty.
    """

    message: str
    source: str = ""
    line: int = 0
    column: int = 0
    key: str = ""
    hint: str = ""

    @property
    def is_of_a_source(self) -> bool:
        """Whether it stands in a file, or is of the file; what is asked for is not."""
        return bool(self.line or not self.key)

    def __str__(self) -> str:
        place = self.source
        if self.line:
            place += f":{self.line}:{self.column}"
        key = "" if place.lstrip("-") == self.key else self.key  # an option is its key
        text = ": ".join(part for part in (place, key, self.message) if part)
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class InputError(PlacerError):
    """An input cannot be used; ``problems`` lists everything that is wrong with it.

    It is made of them, or of what makes the one `Problem` there is.

    Attributes
    ----------
    problems : tuple of Problem
    notes : tuple of str
        What else a user should know of the input.
    """

    def __init__(
        self,
        problems: Iterable[Problem] | str,
        source: str = "",
        line: int = 0,
        column: int = 0,
        *,
        key: str = "",
        hint: str = "",
        notes: Iterable[str] = (),
    ) -> None:
        self.notes = tuple(notes)
        self.problems = (
            (Problem(problems, source, line, column, key, hint),)
            if isinstance(problems, str)
            else tuple(problems)
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))


class InfeasibleError(PlacerError):
    """No placement satisfies the hard rules; the text names the rule and the counts.

    Attributes
    ----------
    reason : str
        Which rule cannot be kept, and by how much.
    hints : tuple of str
        What would make it fit, the smallest change first.
    is_proved : bool
        Whether there is none, rather than none that was found.
    """

    def __init__(
        self, reason: str, *, hints: Iterable[str] = (), is_proved: bool = True
    ) -> None:
        self.reason = reason
        self.hints = tuple(hints)
        self.is_proved = is_proved
        super().__init__("\n  hint: ".join([reason, *self.hints]))

    def of(self, what: str) -> InfeasibleError:
        """The error said of something that is named first."""
        reason = f"{what}: {self.reason}"
        return InfeasibleError(reason, hints=self.hints, is_proved=self.is_proved)


class CheckError(PlacerError):
    """A placement breaks a promise; ``violations`` lists which."""

    def __init__(self, violations: Iterable[str]) -> None:
        self.violations = tuple(violations)
        super().__init__("\n".join(self.violations))


class EmitError(PlacerError):
    """A launcher cannot express the plan."""


class StoppedError(PlacerError):
    """A search was asked to stop before it had found any placement."""


class OutputError(PlacerError):
    """An output file could not be written."""


def capped(problems: Sequence[Problem]) -> list[Problem]:
    """The first `MOST_PROBLEMS` problems, and how many more there are."""
    more = len(problems) - MOST_PROBLEMS
    if more <= 0:
        return list(problems)
    rest = Problem(f"and {more} more problems", problems[0].source)
    return [*problems[:MOST_PROBLEMS], rest]


def refuse(problems: Iterable[Problem]) -> None:
    """Nothing, when there are no problems.

    Raises
    ------
    InputError
        With the problems; at most `MOST_PROBLEMS` are listed.
    """
    found = list(problems)
    if found:
        raise InputError(capped(found))


def read_all(reads: Iterable[Callable[[], T]]) -> list[T]:
    """What each of the calls gives.

    Raises
    ------
    InputError
        With the problems of all of them.
    """
    found: list[T] = []
    problems: list[Problem] = []
    notes: list[str] = []
    for read in reads:
        try:
            found.append(read())
        except InputError as error:
            problems += error.problems
            notes += error.notes
    if problems:
        raise InputError(capped(problems), notes=notes)
    return found


def read_before(read: Callable[[], T], others: Iterable[Callable[[], object]]) -> T:
    """What ``read`` gives, which the others need.

    Raises
    ------
    InputError
        If it cannot: with what is wrong in the sources of the others, too. What they
        leave open is no problem, as the first may say it.
    """
    try:
        return read()
    except InputError as error:
        problems = [*error.problems]
        for other in others:
            try:
                other()
            except InputError as also:
                problems += filter(lambda one: one.is_of_a_source, also.problems)
        raise InputError(capped(problems), notes=error.notes) from None
