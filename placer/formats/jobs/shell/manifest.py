"""The command of a Kubernetes manifest as a script, line for line.

Of a Job, a JobSet, a PyTorchJob and whatever else holds a pod: the first container that
says a command. Its variables come first, on the first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from placer.documents import parse_document

if TYPE_CHECKING:
    from placer.documents import Value

# What its first line, but for comments, begins with.
_EMPTY = r"(?:[ \t]*(?:#.*)?\n)*"
_OPENS = re.compile(rf"{_EMPTY}(?:---.*\n{_EMPTY})?(?:apiVersion|kind|metadata|spec):")
_VERSION = re.compile(r"^apiVersion:", re.MULTILINE)
_BETWEEN = re.compile(r"^---.*$", re.MULTILINE)
_COMMAND = re.compile(r"-[a-z]*c")
_SHELL = re.compile(r"(?:.*/)?(?:ba|z)?sh")
# How a manifest names a variable of the container, where a shell would run a command.
_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)")
_SPECIAL = re.compile(r'[\\"`]|\$(?!\{\w+\})')
_NAME = re.compile(r"[A-Za-z_]\w*")


class Manifest(NamedTuple):
    """A command that pods run.

    Attributes
    ----------
    script : str
        The command on the lines that it has in the manifest.
    """

    image: str
    script: str


def manifest_of(text: str, source: str) -> Manifest | None:
    """The command in a manifest of one or more objects; None in what is none."""
    if not (_OPENS.match(text) and _VERSION.search(text)):
        return None
    for above, part in _documents(text):
        document = parse_document("\n" * above + part, source, aliases=True)
        document.fail_if_problems()
        container = _container(document.top)
        if container is not None:
            script = _script(container, text)
            document.fail_if_problems()
            return Manifest(_text(container.at("image")), script)
    return None


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """Every document of a file, and the lines above it."""
    start = 0
    for end in [*(m.start() for m in _BETWEEN.finditer(text)), len(text)]:
        part = text[start:end]
        if part.strip():
            yield text.count("\n", 0, start), part
        start = text.find("\n", end) + 1 or len(text)


def _container(value: Value) -> Value | None:
    """The first container inside that says a command."""
    if value.kind == "list":
        inner = value.items()
    else:
        listed = value.at("containers")
        for container in listed.items() if listed and listed.kind == "list" else ():
            said = [container.at(key) for key in ("command", "args")]
            if any(value is not None and value.content for value in said):
                return container
        keys = value.content if value.kind == "mapping" else ()
        inner = [one for key in keys if (one := value.at(key)) is not None]
    nested = (_container(one) for one in inner if one.kind in ("list", "mapping"))
    return next((found for found in nested if found is not None), None)


def _script(container: Value, text: str) -> str:
    lines = text.split("\n")
    script = ["" for _ in lines]
    words = [*container.listed("command"), *container.listed("args")]
    called = [_text(word) for word in words]
    inner = _inner(called)
    if inner:
        at = words[inner].place.line - 1
        at += lines[at].rstrip().endswith(("|", "|-", "|+", ">", ">-"))
        own = _referred(called[inner]).split("\n")
        script[at : at + len(own)] = own
    else:
        rows = [word.place.line - 1 for word in words]
        if rows != sorted(rows):  # arguments above the command
            rows = [rows[0] for _ in rows]
        for row, word in zip(rows, called, strict=True):
            quoted = _quoted(_referred(word).replace("\n", " "))
            script[row] = f"{script[row]} {quoted}".lstrip()
        for row in range(rows[0], rows[-1]) if rows else ():
            script[row] += " \\"
    script[0] = "; ".join([*_exports(container), script[0]])
    return "\n".join(script)


def _inner(called: Sequence[str]) -> int:
    """Which word is a script for the shell that is called; 0 without one."""
    flags = [k for k, word in enumerate(called) if _COMMAND.fullmatch(word)]
    runs = bool(called) and _SHELL.fullmatch(called[0]) and flags
    return flags[0] + 1 if runs and flags[0] + 1 < len(called) else 0


def _exports(container: Value) -> Iterator[str]:
    for entry in container.listed("env"):
        name, value = _text(entry.at("name")), entry.at("value")
        text = _text(value)
        if value is not None and _NAME.fullmatch(name) and "\n" not in text:
            yield f"export {name}={_quoted(_referred(text))}"


def _text(value: Value | None) -> str:
    return "" if value is None else str(value.content)


def _referred(text: str) -> str:
    """The text with variables of the container as a shell has them."""
    return _REFERENCE.sub(
        lambda m: f"${{{m[1]}}}" if m[1].isupper() else m[0], text.replace("$$(", "$(")
    )


def _quoted(word: str) -> str:
    return '"' + _SPECIAL.sub(lambda m: f"\\{m[0]}", word) + '"'
