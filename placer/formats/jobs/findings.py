"""What one source says of a job, before anything is joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from placer.base.errors import InputError, Problem, refuse
from placer.base.naming import named
from placer.documents.scalars import visible
from placer.job.started import Started
from placer.topology.gpu_kinds import HostHint

Scalar = bool | int | float | str
Value = Scalar | list[str]
Kind = Literal["given", "read", "derived", "assumed"]

# Facts that are no keys of a job: ranks of it, and sequences of a step.
GPUS, GLOBAL_BATCH = "gpus", "global_batch"
# And what the data-parallel size is a multiple of, where only GPUs say the rest.
DP_MULTIPLE = "dp_multiple"
# And that parts of expert groups must be equal, one an NVLink domain.
EVEN_PARTS = "even_parts"

LONGEST = 2_000_000  # characters of a configuration
_LONGEST_SHOWN = 60  # of a value in a message
_WORTH: dict[Kind, int] = {"given": 0, "read": 1, "derived": 2, "assumed": 3}


class Place(NamedTuple):
    """Where a source says something; line and column are 0 when unknown."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        name = PurePath(self.source).name
        return f"{name}:{self.line}" if self.line else name


@dataclass(frozen=True)
class Unknown:
    """The value of a key that is given, where its source does not tell what it is.

    It is neither absent nor a default: whoever reads the key asks for the value.
    """

    text: str  # the value as it is written
    hint: str = ""  # the option that says it
    message: str = ""  # what asks for it in so many words; empty where its text does

    @property
    def words(self) -> str:
        """It as it is written, in so many characters."""
        text = " ".join(shown(self.text).split())
        return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


@dataclass(frozen=True)
class Fact:
    """One value of a job."""

    value: Value
    # ``given`` by an option, ``read`` in a source, ``derived`` by a rule of the
    # framework, ``assumed`` by placer.
    kind: Kind
    origin: str  # the option, the place, or the rule in words
    place: Place  # where it is read, or what it is derived from
    # Between which values one that is assumed lies most probably.
    interval: tuple[float, float] | None = None


class Remark(NamedTuple):
    """A key of a source that is no fact of the job, and why."""

    key: str
    place: Place
    reason: str = ""


@dataclass
class Findings:
    """Everything one source says, or several that are joined."""

    source: str  # how messages call the source
    format: str = ""  # name of its format; set by who chose the reader
    # By the key path of the job format (``parallelism.tp``), or `GPUS` or
    # `GLOBAL_BATCH`.
    facts: dict[str, Fact] = field(default_factory=dict)
    # What is missing and only the user knows, with the option that fills it. What no
    # job can be without is asked for by `placer.formats.jobs.settle`.
    asked: list[Problem] = field(default_factory=list)
    # What changes the step and no key of the job can say.
    not_modelled: list[Remark] = field(default_factory=list)
    ignored: list[Remark] = field(default_factory=list)  # what changes nothing here
    # Files that the source needs and that are not there: told before all else where
    # something is asked for, else in a note.
    missing: list[Problem] = field(default_factory=list)
    # Keys that are asked for because their value is given and not known.
    unsure: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)  # what a user should know
    # What is wrong, by the framework's rules too.
    problems: list[Problem] = field(default_factory=list)
    # What the framework derives, and refuses, once all sources are joined and the
    # data-parallel size and the micro-batches are known. Each is called with the joined
    # findings.
    rules: list[Callable[[Findings], None]] = field(default_factory=list)
    # What it says of the hosts that the job runs on.
    host: HostHint = field(default_factory=HostHint)
    started: Started | None = None  # the launcher in the source

    def read(self, key: str, value: Value, place: Place) -> None:
        """Set a fact that stands at a place of the source."""
        self.facts[key] = Fact(value, "read", str(place), place)

    def derive(
        self,
        key: str,
        value: Scalar,
        rule: str,
        place: Place | None = None,
        kind: Kind = "derived",
    ) -> None:
        """Set a fact by a rule of the framework, unless there is a better one."""
        if any(question.key == key for question in self.asked):
            return  # nothing stands for what is asked for
        if key not in self.facts or self.facts[key].kind == "assumed":
            self.facts[key] = Fact(value, kind, rule, place or Place(self.source))

    def assume(
        self, key: str, value: Scalar, why: str, place: Place | None = None
    ) -> None:
        """Set a fact that no rule gives, unless there is a better one."""
        self.derive(key, value, why, place, "assumed")

    def has(self, key: str) -> bool:
        """Whether there is such a fact."""
        return key in self.facts

    def integer(self, key: str, default: int = 0) -> int:
        """The value of a fact as an integer, or the default."""
        fact = self.facts.get(key)
        if fact is None or isinstance(fact.value, str | list):
            return default
        return int(fact.value)

    def text(self, key: str, default: str = "") -> str:
        """The value of a fact as a text, or the default."""
        return str(self.facts[key].value) if key in self.facts else default

    def problem(self, key: str, message: str, hint: str = "") -> None:
        """Record that the fact of ``key`` cannot be, at its place."""
        place = self.facts[key].place if key in self.facts else Place(self.source)
        self.problems.append(Problem(message, *place, key, hint))

    def ask(
        self, key: str, message: str, hint: str, place: Place | None = None
    ) -> None:
        """Record that only the user knows ``key``, and the option that says it."""
        self.asked.append(Problem(message, *(place or Place(self.source)), key, hint))

    def later(self, rule: Callable[..., None], *given: Any) -> None:
        """Add a rule, which is called with the joined findings and what is given."""
        self.rules.append(lambda joined: rule(joined, *given))

    def ask_later(self, key: str, message: str, hint: str, place: Place) -> None:
        """Ask for a fact once all sources are joined, where none of them tells it."""

        def ask(joined: Findings) -> None:
            if not joined.has(key):
                joined.ask(key, message, hint, place)

        self.rules.append(ask)


@dataclass
class Asked:
    """What options say, and the way to files that a source names."""

    gpus: int | None = None  # ranks of the job
    # Variables of scripts, and ``job.KEY`` for keys of the job.
    settings: Mapping[str, str] = field(default_factory=dict)
    # Which of several functions or launches; empty when nothing is said.
    select: str = ""
    # Text and shown name of a file, given the source that names it and its name; None
    # when there is none.
    include: Callable[[str, str], tuple[str, str] | None] = lambda _source, _name: None
    used: set[str] = field(default_factory=set)  # settings that a reader has asked for

    def setting(self, name: str) -> str | None:
        """The value that ``--set`` gives a variable; None when it gives none."""
        self.used.add(name)
        return self.settings.get(name)


def refuse_long(text: str, source: str, most: int = LONGEST) -> None:
    """Refuse a text that is longer than any description of a job."""
    if len(text) > most:
        message = (
            f"{len(text):,} characters are too many for a job: the most is {most:,}"
        )
        raise InputError([Problem(message, source)])


def shown(value: object) -> str:
    """A value on one line, as messages show it."""
    return visible(_said(value))


def one_line(value: object) -> str:
    """A value without what could end its line, however long it is."""
    return "".join(c if c.isprintable() else "?" for c in _said(value))


def _said(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def join(findings: Sequence[Findings]) -> Findings:
    """All that the sources say, each key from the first that says it best.

    A value that is read counts more than one that is derived, and that more than one
    that is assumed.
    """
    joined = Findings(findings[0].source if findings else "")
    problems: list[Problem] = []
    for found in findings:
        for key, fact in found.facts.items():
            before = joined.facts.get(key)
            if before is None or _WORTH[fact.kind] < _WORTH[before.kind]:
                joined.facts[key] = fact
            elif before.kind == fact.kind == "read" and before.value != fact.value:
                here = shown(fact.value)
                message = f"{here} here, {shown(before.value)} in {before.origin}"
                holds = named("settings", {f"job.{key}": here})
                hint = f"correct one, or say which holds: {holds}"
                problems.append(Problem(message, *fact.place, key, hint))
        for item in fields(Findings):
            if item.default_factory is list:
                getattr(joined, item.name).extend(getattr(found, item.name))
        joined.unsure |= found.unsure
        joined.started = joined.started or found.started
    refuse(problems)
    return joined
