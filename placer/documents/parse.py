"""Text or file to a document, by notation.

Parsing gives plain values. A text that Python's own reader of JSON takes is parsed once
more for places, where a problem is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NoReturn

from placer.base.errors import MOST_PROBLEMS, InputError, refuse
from placer.documents import files
from placer.documents.builder import MAX_DEPTH, MAX_NODES, Builder, Places
from placer.documents.document import Document
from placer.documents.json_reader import read_json
from placer.documents.scalars import MAX_TEXT, Number


def most_values(text: str) -> int:
    """How many values a JSON text can have at most."""
    return 1 + sum(map(text.count, ",[{"))


def plain_json(text: str, parse_float: Callable[[str], Any] | None = None) -> Any:
    """The value of a JSON text.

    Raises `ValueError` if something may be wrong with it: the notation, a key that
    comes twice, nesting that overflows the stack, an integer of thousands of digits.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_mapping,
            parse_constant=_refuse,
            parse_float=parse_float,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_modest(value: Any) -> bool:
    """Whether nothing is nested too deep, no text too long and every key printable."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        if any(isinstance(each, str) and len(each) > MAX_TEXT for each in level):
            return False
        boxes = [each for each in level if isinstance(each, dict | list)]
        if not boxes:
            return True
        keys = ["".join(box) for box in boxes if isinstance(box, dict)]
        if any(len(each) > MAX_TEXT or not each.isprintable() for each in keys):
            return False
        values = (box.values() if isinstance(box, dict) else box for box in boxes)
        level = list(chain.from_iterable(values))
    return False


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


# Values of a file: a machine of 50,000 nodes that are listed one by one.
MAX_VALUES = 250_000
# Values of what another program printed.
MAX_ANSWER_VALUES = 2_000_000

_OPENS_JSON = re.compile(r"\s*[\[{]")
_ASK = "ask the tool for JSON: -o json, --format=json, --output json"


def parse_document(text: str, source: str, *, aliases: bool = False) -> Document:
    """Document of a YAML or JSON text; ``source`` names it in messages.

    With ``aliases`` those of YAML are put out in full, as other programs' files want.

    A name that ends in ``.json`` is strict JSON; other texts that open like a JSON
    object are JSON too, unless only YAML can read them. That the top is a mapping is
    required.
    """
    document = _parse(text, source, aliases=aliases)
    document.top.section()
    return document


def open_document(source: str) -> Document:
    """Document of the file ``source`` (``-`` is standard input)."""
    return parse_document(files.read_text(source), files.shown_name(source))


def document_of(content: Mapping[str, Any], source: str) -> Document:
    """Document of content that was parsed before: its problems have no place."""
    return Document(source, content)


def parse_answer(text: str, source: str, *, yaml: bool = False) -> Document:
    """Document of what another program printed: JSON, or YAML where that is allowed."""
    if yaml and not _OPENS_JSON.match(text):
        read = partial(_read_yaml, text, aliases=False)
        document = _built(read, source, MAX_NODES)
        document.fail_if_problems()
        return document
    values = most_values(text)
    if values > MAX_ANSWER_VALUES:
        message = f"more than {MAX_ANSWER_VALUES} values"
        raise InputError(message, source)
    try:
        # A text that is read may still be too large for a builder: then no places.
        look_up = partial(_json_places, text, source) if values <= MAX_NODES else dict
        return Document(source, plain_json(text), look_up)
    except ValueError:
        return Document(source, _wrong_answer(text, source))


def _parse(text: str, source: str, *, aliases: bool = False) -> Document:
    is_json = source.lower().endswith(".json")
    if is_json or re.match(r'\s*\{\s*["}]', text):
        with suppress(ValueError):
            data = plain_json(text, Number)
            is_json = True  # and no YAML, whatever else is wrong with it
            if most_values(text) <= MAX_VALUES and is_modest(data):
                return Document(source, data, partial(_json_places, text, source))
        try:
            return _built(partial(read_json, text), source, MAX_VALUES)
        except InputError:
            if is_json:
                raise
    return _built(partial(_read_yaml, text, aliases=aliases), source, MAX_VALUES)


def _built(read: Callable[[Builder], None], source: str, most: int) -> Document:
    """Document of what a reader gives a builder."""
    builder = Builder(source, most)
    read(builder)
    return Document(source, builder.root, builder.places, builder.problems)


def _read_yaml(text: str, builder: Builder, *, aliases: bool) -> None:
    """`read_yaml`, loaded here: inside a container there may be no PyYAML."""
    try:
        from placer.documents.yaml_reader import read_yaml
    except ModuleNotFoundError:
        message = "not JSON, and YAML needs PyYAML, which is not installed here"
        raise builder.error(message, 1, 1) from None
    read_yaml(text, builder, aliases=aliases)


def _json_places(text: str, source: str) -> Places:
    builder = Builder(source)
    with suppress(InputError):
        read_json(text, builder)
        return builder.places()
    return {}


def _wrong_answer(text: str, source: str) -> Any:
    """Values of a JSON text that may be wrong, or what is wrong with it and where."""
    builder = Builder(source)
    try:
        read_json(text, builder)
        refuse(builder.problems)
    except InputError as error:
        found = list(error.problems)
        if text.strip() and not _OPENS_JSON.match(text):
            found[0] = replace(found[0], hint=_ASK)
        raise InputError(found[:MOST_PROBLEMS]) from None
    return builder.root
