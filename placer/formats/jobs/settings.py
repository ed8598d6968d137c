"""Values of a configuration by their dotted keys, whatever notation it is in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from placer.base.errors import Problem
from placer.base.naming import entry, named
from placer.formats.jobs.findings import (
    GPUS,
    Asked,
    Findings,
    Place,
    Remark,
    Scalar,
    Unknown,
    one_line,
    shown,
)

_INTEGER = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")
# Of another program, which fills it in.
_VARIABLE = re.compile(r"\$\{|\{\{")
_LONGEST = 40
# Values that say nothing: a null of the notation, or of a tool that prints it.
_NOTHING = ("", "null", "None", "none", "~")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
# Facts that are true or false, by how they begin; others that are copied are numbers.
_BOOLEANS = ("data_parallel.overlap_", "model.tied_", "overlap.", "tensor_parallel.")
# Filled in by who runs the framework (transformers, DeepSpeedConfigHF).
AUTO = "auto"


T = TypeVar("T")
# A value that holds where nothing is said, and why.
Usual = tuple[Scalar, str]


class Setting(NamedTuple):
    """A value of Python's own types, and where it stands."""

    value: Any
    place: Place


class Settings:
    """The values of one source; what is asked for counts as known.

    A value may be `Unknown`: given, and not told by the source. Whoever reads it asks
    the user for it, once, and gets what stands for nothing said; as a question is no
    answer, no default is claimed by that. An unknown record leaves open every key under
    it that has no value of its own. What changes no job is read with `mention`.

    ``found``: takes the problems, and the rest that is ignored. ``values``: by dotted
    key, in the order of the file. ``asked``: its ``settings`` stand before what the
    file says.
    """

    def __init__(
        self, found: Findings, values: Mapping[str, Setting], asked: Asked | None = None
    ) -> None:
        self.found = found
        self.values = dict(values)
        self.asked = asked or Asked()
        self.known: set[str] = set()
        self.questions: dict[str, Problem] = {}

    def get(self, *keys: str) -> tuple[str, Setting] | None:
        """The first of ``keys`` that says something, with its value."""
        silent = True
        for key in keys:
            self.known.add(key)
            given = self.asked.setting(key)
            if given in _NOTHING:
                return None
            if given is not None:
                return key, Setting(plain_value(given), Place(entry("settings", key)))
            setting = self.values.get(key)
            if setting is not None and setting.value not in (None, *_NOTHING):
                value = setting.value
                if isinstance(value, str) and _VARIABLE.search(value):
                    setting = Setting(Unknown(value), setting.place)
                return key, setting
            silent = silent and setting is None
        above = self._above(keys[0]) if silent and keys else None
        return (keys[0], above) if above else None

    def _above(self, key: str) -> Setting | None:
        """The unknown record that a key is in."""
        while key:
            key = key.rpartition(".")[0]
            setting = self.values.get(key)
            if setting is not None and isinstance(setting.value, Unknown):
                words = f"what {setting.value.words} makes it"
                return Setting(Unknown(words), setting.place)
        return None

    def has(self, prefix: str) -> bool:
        """Whether any key begins so."""
        return any(key.startswith(prefix) for key in self.values)

    def unknown(self, *keys: str) -> str:
        """What is given under the first of ``keys``, if not told; empty where it is."""
        got = self.get(*keys)
        value = got[1].value if got else None
        return value.words if isinstance(value, Unknown) else ""

    def _told(self, keys: tuple[str, ...], fact: str = "") -> tuple[str, Any] | None:
        """The first of ``keys`` that says something, with a value that is known.

        What is not told is asked for: as ``fact`` of a job, where it is one.
        """
        got = self.get(*keys)
        if got is not None and isinstance(got[1].value, Unknown):
            self.ask(got[0], fact)
            return None
        return got and (got[0], got[1].value)

    def ask(self, key: str, fact: str = "") -> None:
        """Ask for the unknown value of a key, once; best as the ``fact`` of a job."""
        got = self.get(key)
        if got is None:
            return
        unknown, place = got[1]
        subject = key if fact else key.rpartition(".")[2]
        words = f"{subject} is {unknown.words}, which the file does not tell"
        hint = unknown.hint or named("settings", {key: "VALUE"})
        if fact == GPUS:
            hint += f", or {named('gpus', 'N')}"
        question = Problem(unknown.message or words, *place, fact or key, hint)
        before = self.questions.get(key)
        if before is None:
            self.found.asked.append(question)
        elif fact:
            self.found.asked[self.found.asked.index(before)] = question
        if before is None or fact:
            self.questions[key] = question

    def place(self, *keys: str) -> Place:
        """Where the first of ``keys`` that says something stands."""
        got = self.get(*keys)
        return got[1].place if got else Place(self.found.source)

    def is_auto(self, *keys: str) -> bool:
        """Whether the value is left to who runs the framework."""
        got = self.get(*keys)
        return got is not None and got[1].value == AUTO

    def value(self, *keys: str) -> Any:
        """A value as it is, None where nothing is said."""
        got = self._told(keys)
        return got[1] if got else None

    def _as(
        self,
        convert: Callable[[Any], T | None],
        what: str,
        keys: tuple[str, ...],
        fact: str = "",
    ) -> T | None:
        """A value converted; one of which ``convert`` makes None is a problem."""
        got = self._told(keys, fact)
        value = None if got is None else convert(got[1])
        if got is not None and value is None and got[1] != AUTO:
            self.wrong(got[0], what)
        return value

    def integer(
        self, *keys: str, minimum: int = 1, maximum: int = 10**9, fact: str = ""
    ) -> int | None:
        """A whole number, None where nothing is said; another value is a problem."""

        def convert(given: Any) -> int | None:
            value = _whole(given)
            return None if value is None or not minimum <= value <= maximum else value

        return self._as(convert, f"an integer from {minimum} to {maximum}", keys, fact)

    def number(self, *keys: str) -> float | None:
        """A finite number that is not below 0, None where nothing is said."""

        def convert(given: Any) -> float | None:
            is_number = isinstance(given, int | float) and not isinstance(given, bool)
            return float(given) if is_number else None

        value = self._as(convert, "a number", keys)
        if value is None or 0 <= value <= 1e18:
            return value
        self.wrong(keys[0], "a number that is not below 0")
        return None

    def flag(self, *keys: str, fact: str = "") -> bool | None:
        """True or false, None where nothing is said."""
        return self._as(
            lambda given: _FLAGS.get(str(given).lower()), "true or false", keys, fact
        )

    def text(self, *keys: str) -> str:
        """A text on one line, a path of any length; empty where nothing is said."""
        value = self.value(*keys)
        is_text = not (value is None or isinstance(value, list | dict))
        return one_line(value) if is_text else ""

    def choice(self, words: Mapping[str, Scalar], *keys: str) -> Scalar | None:
        """What a word stands for, None where nothing is said."""
        got = self._told(keys)
        known = {word.lower(): meaning for word, meaning in words.items()}
        meaning = known.get(str(got[1]).lower()) if got else None
        if got and meaning is None:
            self.wrong(got[0], f"one of {', '.join(words)}")
        return meaning

    def texts(self, *keys: str) -> list[str]:
        """The texts of a list, or the one there is."""
        value = self.value(*keys)
        items = value if isinstance(value, list) else [value]
        return [] if value is None else [shown(item) for item in items]

    def integers(self, *keys: str) -> list[int]:
        """The whole numbers of a list."""
        got = self._told(keys)
        if got is None:
            return []
        found = [_whole(v) for v in got[1]] if isinstance(got[1], list) else [None]
        if None in found:
            self.wrong(got[0], "a list of integers")
        return [value for value in found if value is not None and None not in found]

    def _option(self, fact: str, keys: tuple[str, ...]) -> Setting | None:
        """What an option says of a fact, before any of its keys does."""
        if fact == GPUS and self.asked.gpus is not None:
            self.known.update(keys)
            return Setting(self.asked.gpus, Place(named("gpus")))
        given = self.asked.settings.get(f"job.{fact}")
        value = None if given is None else plain_value(given)
        is_flag = fact.startswith(_BOOLEANS)
        if value is None or (is_flag and not isinstance(value, bool)):
            return None
        self.known.update(keys)
        return Setting(value, Place(entry("settings", f"job.{fact}")))

    def copy(
        self,
        fact: str,
        *keys: str,
        minimum: int = 1,
        maximum: int = 10**9,
        usual: Usual | None = None,
    ) -> int | None:
        """Take a fact of a job, a whole number or a boolean; None if it is not said.

        ``usual`` is derived where nothing is said, with why.
        """
        is_flag, option = fact.startswith(_BOOLEANS), self._option(fact, keys)
        place = self.place(*keys) if option is None else option.place
        value: int | None
        if option is not None:
            value = option.value if is_flag else _whole(option.value)
        elif is_flag:
            value = self.flag(*keys, fact=fact)
        else:
            value = self.integer(*keys, minimum=minimum, maximum=maximum, fact=fact)
        if value is not None:
            self.found.read(fact, value, place)
        elif usual is not None:
            self.found.derive(fact, *usual)
        return value

    def take(
        self,
        table: Mapping[str, str | tuple[str, ...]],
        prefix: str = "",
        usual: Usual | None = None,
    ) -> None:
        """Take facts, each of the key that it has in a table, or of the first said."""
        for fact, keys in table.items():
            names = (keys,) if isinstance(keys, str) else keys
            self.copy(fact, *(prefix + name for name in names), usual=usual)

    def derive(self, fact: str, value: Scalar, rule: str, *keys: str) -> None:
        """Set a fact by a rule of the framework, from the first of ``keys``."""
        self.found.derive(fact, value, rule, self.place(*keys))

    def say(self, fact: str, value: Scalar, *keys: str) -> None:
        """Set a fact that the words of the first of ``keys`` stand for."""
        if got := self.get(*keys):
            rule = f"{got[0].rpartition('.')[2]} {shown(got[1].value)}"
            self.found.derive(fact, value, rule, got[1].place)

    def recomputed(self, *keys: str) -> None:
        """Record that every layer is computed again, as the first of ``keys`` says."""
        self.say("memory.recompute", "full", *keys)
        reason = "one more forward; a measured time holds it"
        self.not_modelled((self.get(*keys) or keys)[0], reason, "recompute full")

    def mention(self, reason: str, *keys: str) -> None:
        """Record as not modelled what is switched on, or may be, and changes no job."""
        if unknown := self.unknown(*keys):
            key = (self.get(*keys) or keys)[0]
            self.not_modelled(key, f"{reason}, if {unknown} is true")
        elif self.flag(*keys):
            self.not_modelled(keys[0], reason)

    def wrong(self, key: str, what: str) -> None:
        """Record that a value should be something else."""
        got = self.get(key)
        value = "nothing" if got is None else _shortly(got[1].value)
        self.refuse(key, f"expected {what}, got {value}")

    def refuse(self, key: str, message: str, hint: str = "") -> None:
        """Record that the value of a key cannot be."""
        self.add(Problem(message, *self.place(key), key, hint))

    def add(self, problem: Problem) -> None:
        """Record what is wrong, once."""
        if problem not in self.found.problems:
            self.found.problems.append(problem)

    def not_modelled(self, key: str, reason: str = "", what: str = "") -> None:
        """Record what changes the step and has no place in a job, or its key."""
        self.found.not_modelled.append(Remark(what or key, self.place(key), reason))

    def leave(self) -> None:
        """Ignore every key that nothing has asked for, and options that say one."""
        given = self.asked.settings
        self.asked.used |= {k for k in given if k in self.values or self._above(k)}
        self.found.ignored += [
            Remark(shown(key), setting.place)
            for key, setting in self.values.items()
            if key and key not in self.known
        ]


def reader(
    opener: Callable[[str, str, Findings, Asked], Settings],
) -> Callable[[Callable[[Settings], None]], Callable[[str, str, Asked], Findings]]:
    """A reader of what ``opener`` opens, of a function that takes what settings say."""

    def reading(
        take: Callable[[Settings], None],
    ) -> Callable[[str, str, Asked], Findings]:
        @wraps(take)
        def read(text: str, source: str, asked: Asked) -> Findings:
            settings = opener(text, source, Findings(source), asked)
            take(settings)
            settings.leave()
            return settings.found

        return read

    return reading


def number_of(text: str) -> int | float | str:
    """A text as the number that it is written as; else the text."""
    if _INTEGER.fullmatch(text) and len(text) < _LONGEST:
        return int(text)
    try:
        return float(text) if len(text) < _LONGEST else text
    except ValueError:
        return text


def plain_value(text: str) -> Scalar:
    """A text as the number or boolean that a configuration would take it for."""
    words = {"true": True, "false": False}
    return words.get(text.lower(), number_of(text))


def _whole(value: Any) -> int | None:
    """A whole number, as ``5e8`` is one; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (abs(value) < 1e18 and value == int(value)):
        return None
    return int(value) if abs(value) < 10**18 else None


def _shortly(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    return f'"{shown(value)}"' if isinstance(value, str) else shown(value)
