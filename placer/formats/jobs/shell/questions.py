"""What is asked for where a script leaves a value open."""

from __future__ import annotations

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.base.units import listed
from placer.documents.scalars import visible
from placer.formats.jobs.findings import Findings, Unknown
from placer.formats.jobs.settings import Setting, plain_value
from placer.formats.jobs.shell.script import Script
from placer.formats.jobs.shell.text import Text, is_settable, opens, readable

_MOST_NAMES = 4


def question(label: str, text: Text, key: str = "") -> tuple[str, str]:
    """The message and the hint that ask for what a text needs."""
    value = unknown_value(text)
    usual = "write its value in the script"
    if key:
        usual = named("settings", {f"job.{key}": "VALUE"})
    message = value.message or f"{label} is {value.text}, which nothing sets"
    return message, value.hint or usual


def depends(causes: list[str]) -> str:
    """That something depends on what nobody sets."""
    return f"it depends on {_listed(causes)}, which nothing sets"


def setting(names: list[str]) -> str:
    """The options that give the first of names that can be set; empty without."""
    settable = [name for name in dict.fromkeys(names) if is_settable(name)]
    causes = settable[:_MOST_NAMES]
    return named("settings", dict.fromkeys(causes, "VALUE")) if causes else ""


def ask(found: Findings, key: str, label: str, text: Text) -> None:
    """Ask for what a value needs; once for all values that need it."""
    message, hint = question(label, text, key)
    found.unsure.add(key)
    same = (message, hint) if opens(text.text)[0].causes else None
    if same not in [(problem.message, problem.hint) for problem in found.asked]:
        found.ask(key, message, hint, text.place)


def unknown_value(text: Text) -> Unknown:
    """An open text as the value of a setting."""
    parts = opens(text.text)
    causes = [cause for part in parts for cause in part.causes]
    hint = setting(causes) or setting([part.name for part in parts])
    message = depends(causes) if causes else ""
    return Unknown(_shown(readable(text.text)), hint, message)


def setting_of(text: Text) -> Setting:
    """A text as a value of a configuration, which may be unknown."""
    value = unknown_value(text) if text.is_open else plain_value(text.text.strip("'\""))
    return Setting(value, text.place)


def missing_files(script: Script) -> list[Problem]:
    """That files are not there which a script sources, as one problem."""
    names = [remark.key.removeprefix("./") for remark in script.missing]
    if not names:
        return []
    are, them = ("are", "them") if len(set(names)) > 1 else ("is", "it")
    message = f"{_listed(names)}, which it sources, {are} not there"
    hint = f"put {them} beside the script"
    return [Problem(message, *script.missing[0].place, hint=hint)]


def no_launch(script: Script, message: str, hint: str = "") -> InputError:
    """That a script starts nothing that is read, and what that may follow from."""
    nothing = [Problem(message, script.source, hint=hint)]
    return InputError([*missing_files(script), *(end(script) or nothing)])


def note_left_out(found: Findings, script: Script) -> None:
    """Note what could not be followed, and files that are not there."""
    found.missing += missing_files(script)
    found.notes += [
        f"{remark.key} at {remark.place}: {remark.reason}" for remark in script.left_out
    ]


def end(script: Script) -> list[Problem]:
    """Why a script ends before it starts anything; nothing where it does not."""
    if script.ended is None:
        return []
    place, names = script.ended.place, list(script.ended.names)
    at = f"the script ends at line {place.line}"
    hint = setting(names)
    if not names:
        message = f"{at} before it starts anything"
        hint = f"set what it depends on: {named('settings', {'NAME': 'VALUE'})}"
    elif names == ["1"]:
        message = f"{at} as no arguments are given"
    else:
        is_set = "is not set" if len(names) == 1 else "are not set"
        message = f"{at} as {_listed(names)} {is_set}"
    return [Problem(message, *place, hint=hint)]


def _shown(text: str) -> str:
    return visible(" ".join(text.split()))


def _listed(names: list[str]) -> str:
    """Names as in a sentence, each once."""
    found = [_shown(name) for name in dict.fromkeys(names)]
    return listed(found[:_MOST_NAMES])
