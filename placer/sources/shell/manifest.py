"""The command of a Kubernetes manifest as a script, line for line.

Of a Job, a JobSet, a PyTorchJob and whatever else holds a pod: the first container that
says a command. Its variables come first, on the first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from placer.document import parse_document

if TYPE_CHECKING:
    from placer.document import Value

_MANIFEST = re.compile(r"^apiVersion:[^\n]*\n(?:.*\n)*?kind:|^kind:[^\n]*\n(?:.*\n)*?"
                       r"apiVersion:", re.MULTILINE)  # fmt: skip
_BETWEEN = re.compile(r"^---.*$", re.MULTILINE)
_SHELL = re.compile(r"(?:.*/)?(?:ba|z)?sh")
# How a manifest names a variable of the container, where a shell would run a command.
_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)")
_SPECIAL = re.compile(r'[\\"`]|\$(?!\{\w+\})')
_NAME = re.compile(r"[A-Za-z_]\w*")


class Manifest(NamedTuple):
    """A command that pods run.

    Attributes
    ----------
    kind : str
        Of the object.
    image : str
    script : str
        The command on the lines that it has in the manifest.
    """

    kind: str
    image: str
    script: str


def manifest_of(text: str, source: str) -> Manifest | None:
    """The command in a manifest of one or more objects; None in what is none.

    Raises
    ------
    InputError
        If it is not well-formed YAML.
    """
    if not _MANIFEST.search(text):
        return None
    for above, part in _documents(text):
        top = parse_document("\n" * above + part, source, aliases=True).top
        container = _container(top)
        if container is not None:
            kind, image = _text(top.at("kind")), _text(container.at("image"))
            return Manifest(kind, image, _script(container, text))
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
            if container.at("command") or container.at("args"):
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
    if len(called) > 2 and _SHELL.fullmatch(called[0]) and called[1].startswith("-"):
        at = words[2].place.line - 1
        at += lines[at].rstrip().endswith(("|", "|-", "|+", ">", ">-"))
        own = _referred(called[2]).split("\n")
        script[at : at + len(own)] = own
    else:
        rows = [word.place.line - 1 for word in words]
        for row, word in zip(rows, called, strict=True):
            script[row] = f"{script[row]} {_quoted(_referred(word))}".lstrip()
        for row in range(rows[0], rows[-1]):
            script[row] += " \\"
    script[0] = "; ".join([*_exports(container), script[0]])
    return "\n".join(script)


def _exports(container: Value) -> Iterator[str]:
    for entry in container.listed("env"):
        name, value = _text(entry.at("name")), entry.at("value")
        if value is not None and _NAME.fullmatch(name):
            yield f"export {name}={_quoted(_referred(_text(value)))}"


def _text(value: Value | None) -> str:
    return "" if value is None else str(value.content)


def _referred(text: str) -> str:
    """The text with variables of the container as a shell has them."""
    return _REFERENCE.sub(
        lambda m: f"${{{m[1]}}}" if m[1].isupper() else m[0], text.replace("$$(", "$(")
    )


def _quoted(word: str) -> str:
    return '"' + _SPECIAL.sub(lambda m: f"\\{m[0]}", word) + '"'
