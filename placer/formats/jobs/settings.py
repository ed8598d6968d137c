"""Values of a configuration by their dotted keys, whatever notation it is in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from placer.base.errors import Problem
from placer.base.naming import entry, named
from placer.documents import Document, Value
from placer.documents.scalars import as_boolean, as_integer, raw
from placer.documents.yaml_reader import MERGE
from placer.formats.jobs.findings import (
    GPUS,
    Asked,
    Findings,
    Place,
    Remark,
    Scalar,
    Unknown,
    shown,
)

_INTEGER = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")
_VARIABLE = re.compile(r"\$\{|\{\{")
_LONGEST, _LONGEST_SHOWN = 40, 60
_DEEPEST = 64
# Values that say nothing: a null of the notation, or of a tool that prints it.
_NOTHING = ("", "null", "None", "none", "~")
# Filled in by who runs the framework (transformers, DeepSpeedConfigHF).
AUTO = "auto"


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
        self.asked = asked
        self.known: set[str] = set()
        self.questions: dict[str, Problem] = {}

    def get(self, *keys: str) -> tuple[str, Setting] | None:
        """The first of ``keys`` that says something, with its value."""
        silent = True
        for key in keys:
            self.known.add(key)
            given = self.asked.setting(key) if self.asked else None
            if given in _NOTHING:
                return None
            if given is not None:
                return key, Setting(plain_value(given), Place(entry("settings", key)))
            setting = self.values.get(key)
            if setting is not None and setting.value not in (None, *_NOTHING):
                return key, _filled_in(setting)
            silent = silent and setting is None
        above = self._above(keys[0]) if silent and keys else None
        return (keys[0], above) if above else None

    def _above(self, key: str) -> Setting | None:
        """The unknown record that a key is in."""
        while key:
            key = key.rpartition(".")[0]
            setting = self.values.get(key)
            if setting is not None and isinstance(setting.value, Unknown):
                words = f"what {words_of(setting.value)} makes it"
                return Setting(Unknown(words), setting.place)
        return None

    def unknown(self, *keys: str) -> tuple[str, Unknown] | None:
        """What is given under the first of ``keys``, where it is not told."""
        got = self.get(*keys)
        if got is None or not isinstance(got[1].value, Unknown):
            return None
        return got[0], got[1].value

    def _told(self, keys: tuple[str, ...], fact: str = "") -> tuple[str, Any] | None:
        """The first of ``keys`` that says something, with a value that is known.

        What is not told is asked for: as ``fact`` of a job, where it is one.
        """
        got = self.get(*keys)
        if got is None or not isinstance(got[1].value, Unknown):
            return got and (got[0], got[1].value)
        key, (unknown, place) = got
        words = f"is {words_of(unknown)}, which the file does not tell"
        subject = key if fact else key.rpartition(".")[2]
        message = unknown.message or f"{subject} {words}"
        hint = unknown.hint or named("settings", {key: "VALUE"})
        if fact == GPUS:
            hint += f", or {named('gpus', 'N')}"
        question = Problem(message, *place, fact or key, hint)
        before = self.questions.get(key)
        if before is None:
            self.found.asked.append(question)
        elif fact:
            self.found.asked[self.found.asked.index(before)] = question
        if before is None or fact:
            self.questions[key] = question
        return None

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

    def integer(
        self, *keys: str, minimum: int = 1, maximum: int = 10**9, fact: str = ""
    ) -> int | None:
        """A whole number, None where nothing is said; another value is a problem."""
        got = self._told(keys, fact)
        if got is None or got[1] == AUTO:
            return None
        value = _whole(got[1])
        if value is None or not minimum <= value <= maximum:
            self.wrong(got[0], f"an integer from {minimum} to {maximum}")
            return None
        return value

    def number(self, *keys: str, fact: str = "") -> float | None:
        """A finite number that is not below 0, None where nothing is said."""
        got = self._told(keys, fact)
        if got is None or got[1] == AUTO:
            return None
        key, value = got
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong(key, "a number")
            return None
        if not 0 <= value <= 1e18:
            self.wrong(key, "a number that is not below 0")
            return None
        return float(value)

    def flag(self, *keys: str, fact: str = "") -> bool | None:
        """True or false, None where nothing is said."""
        got = self._told(keys, fact)
        if got is None or got[1] == AUTO:
            return None
        key, value = got
        if isinstance(value, bool):
            return value
        word = str(value).lower()
        if word in ("true", "false", "yes", "no", "0", "1"):
            return word in ("true", "yes", "1")
        self.wrong(key, "true or false")
        return None

    def text(self, *keys: str) -> str:
        """A text on one line, empty where nothing is said."""
        got = self._told(keys)
        if got is None or isinstance(got[1], list | dict):
            return ""
        return shown(got[1])

    def choice(self, words: Mapping[str, Scalar], *keys: str) -> Scalar | None:
        """What a word stands for, None where nothing is said."""
        got = self._told(keys)
        if got is None:
            return None
        word = str(got[1])
        for known, meaning in words.items():
            if word.lower() == known.lower():
                return meaning
        self.wrong(got[0], f"one of {', '.join(words)}")
        return None

    def texts(self, *keys: str) -> list[str]:
        """The texts of a list, or the one there is."""
        got = self._told(keys)
        if got is None:
            return []
        items = got[1] if isinstance(got[1], list) else [got[1]]
        return [shown(item) for item in items]

    def integers(self, *keys: str) -> list[int]:
        """The whole numbers of a list."""
        got = self._told(keys)
        if got is None:
            return []
        found = [_whole(v) for v in got[1]] if isinstance(got[1], list) else [None]
        if None in found:
            self.wrong(got[0], "a list of integers")
            return []
        return [value for value in found if value is not None]

    def _option(self, fact: str) -> Setting | None:
        """What an option says of a fact, before any key does."""
        if self.asked is None:
            return None
        if fact == GPUS and self.asked.gpus is not None:
            return Setting(self.asked.gpus, Place(named("gpus")))
        given = self.asked.settings.get(f"job.{fact}")
        if given is None:
            return None
        return Setting(plain_value(given), Place(entry("settings", f"job.{fact}")))

    def copy(
        self, fact: str, *keys: str, minimum: int = 1, maximum: int = 10**9
    ) -> int | None:
        """Take a whole number as the fact of a job; what it is, None if not said."""
        option = self._option(fact)
        if option is not None:
            self.known.update(keys)
            value = _whole(option.value)
            place = option.place
        else:
            value = self.integer(*keys, minimum=minimum, maximum=maximum, fact=fact)
            place = self.place(*keys)
        if value is not None:
            self.found.read(fact, value, place)
        return value

    def copy_flag(self, fact: str, *keys: str) -> bool | None:
        """Take a boolean as the fact of a job."""
        option = self._option(fact)
        if option is not None and isinstance(option.value, bool):
            self.known.update(keys)
            self.found.read(fact, option.value, option.place)
            return option.value
        value = self.flag(*keys, fact=fact)
        if value is not None:
            self.found.read(fact, value, self.place(*keys))
        return value

    def axes(self, keys: Mapping[str, tuple[str, ...]], whose: str) -> None:
        """Take the sizes of axes; where nothing says one it is 1, by default."""
        for axis, names in keys.items():
            if self.copy(f"parallelism.{axis}", *names) is None:
                self.found.derive(f"parallelism.{axis}", 1, f"default of {whose}")

    def recomputed(self, key: str, rule: str = "") -> None:
        """Record that every layer is computed again, as a key says."""
        self.found.derive("memory.recompute", "full", rule or key.rpartition(".")[2])
        self.not_modelled(key, "a further forward pass")

    def mention(self, reason: str, *keys: str) -> None:
        """Record as not modelled what is switched on, or may be, and changes no job."""
        unknown = self.unknown(*keys)
        if unknown is not None:
            words = f"{reason}, if {words_of(unknown[1])} is true"
            self.not_modelled(unknown[0], words)
        elif self.flag(*keys):
            self.not_modelled(keys[0], reason)

    def wrong(self, key: str, what: str) -> None:
        """Record that a value should be something else."""
        got = self.get(key)
        value = "nothing" if got is None else _shortly(got[1].value)
        self.refuse(key, f"expected {what}, got {value}")

    def refuse(self, key: str, message: str, hint: str = "") -> None:
        """Record that the value of a key cannot be."""
        problem = Problem(message, *self.place(key), key, hint)
        if problem not in self.found.problems:
            self.found.problems.append(problem)

    def not_modelled(self, key: str, reason: str = "") -> None:
        """Record what changes the step and has no place in a job."""
        self.found.not_modelled.append(Remark(key, self.place(key), reason))

    def leave(self) -> None:
        """Ignore every key that nothing has asked for, and options that say one."""
        if self.asked is not None:
            given = self.asked.settings
            self.asked.used |= {k for k in given if k in self.values or self._above(k)}
        self.found.ignored += [
            Remark(shown(key), setting.place)
            for key, setting in self.values.items()
            if key and key not in self.known
        ]


def settings_of(
    document: Document, found: Findings, asked: Asked | None = None
) -> Settings:
    """All values of a document that was read with places."""
    document.fail_if_problems()
    return Settings(found, _merged(dict(flat(document.top))), asked)


def _merged(values: dict[str, Setting]) -> dict[str, Setting]:
    """The values with those under merge keys where these stand; others count more."""
    own = {key: setting for key, setting in values.items() if MERGE not in key}
    for key, setting in values.items():
        if MERGE in key:
            steps = [step for step in key.split(".") if step != MERGE]
            own.setdefault(".".join(steps), setting)
    return own


def flat(value: Value, prefix: str = "") -> Iterator[tuple[str, Setting]]:
    """Leaves of a tree of mappings with their dotted keys; lists are leaves."""
    for key, inner in value.entries():
        name = f"{prefix}{key}"
        if inner.kind == "mapping" and len(inner.path) > _DEEPEST:
            inner.problem("nested too deep")
            inner.document.fail_if_problems()
        elif inner.kind == "mapping":
            yield from flat(inner, f"{name}.")
        else:
            yield name, Setting(_of_document(inner.content), place_of(inner))


def place_of(value: Value) -> Place:
    """Where a value of a document stands."""
    at = value.place
    return Place(at.source, at.line, at.column)


def _of_document(content: Any) -> Any:
    """A parsed value as one of Python's: documents keep numbers as they are written."""
    if isinstance(content, list):
        return [_of_document(item) for item in content]
    kind = Value(Document("", None), content, ()).kind
    if kind == "number" and isinstance(content, str):
        return _number(raw(content))
    return as_boolean(content) if kind == "boolean" else content


def _number(text: str) -> int | float | str:
    if _INTEGER.fullmatch(text) and len(text) < _LONGEST:
        return int(text)
    try:
        return float(text) if len(text) < _LONGEST else text
    except ValueError:
        return text


def plain_value(text: str) -> Scalar:
    """A text as the number or boolean that a configuration would take it for."""
    words = {"true": True, "false": False}
    return words.get(text.lower(), _number(text))


def _filled_in(setting: Setting) -> Setting:
    """A value; one with a variable, which another program fills in, is unknown."""
    value = setting.value
    if isinstance(value, str) and _VARIABLE.search(value):
        return Setting(Unknown(value), setting.place)
    return setting


def words_of(unknown: Unknown) -> str:
    """An unknown value as it is written, in so many characters."""
    text = " ".join(shown(unknown.text).split())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _whole(value: Any) -> int | None:
    """A whole number, as ``5e8`` is one; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (abs(value) < 1e18 and value == int(value)):
        return None
    return as_integer(int(value), -(10**18), 10**18) if abs(value) < 10**18 else None


def _shortly(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    return f'"{shown(value)}"' if isinstance(value, str) else shown(value)
