"""Text or file to a document, by notation.

Parsing gives plain values. Places are looked up only where a problem is told, in a tree
that a second parse of the same text gives.
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
from placer.documents.document import Document
from placer.documents.json_tree import json_tree
from placer.documents.scalars import Number, ValueBuilder, plain
from placer.documents.tree import MAX_DEPTH, MAX_NODES, MAX_TEXT, Node, TreeBuilder


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
        document = _yaml(text, source, MAX_NODES)
        document.fail_if_problems()
        return document
    values = most_values(text)
    if values > MAX_ANSWER_VALUES:
        message = f"more than {MAX_ANSWER_VALUES} values"
        raise InputError(message, source)
    try:
        # A text that is read may still be too large for the tree: then no places.
        places = partial(_tree, text, source) if values <= MAX_NODES else None
        return Document(source, plain_json(text), places)
    except ValueError:
        return Document(source, plain(_answer_tree(text, source)))


def _parse(text: str, source: str, *, aliases: bool = False) -> Document:
    is_json = source.lower().endswith(".json")
    if is_json or re.match(r'\s*\{\s*["}]', text):
        with suppress(ValueError):
            data = plain_json(text, Number)
            is_json = True  # and no YAML, whatever else is wrong with it
            if most_values(text) <= MAX_VALUES and is_modest(data):
                return Document(source, data, partial(_tree, text, source))
        builder = TreeBuilder(source, MAX_VALUES)
        try:
            tree = json_tree(text, builder)
            return Document(source, plain(tree), lambda: tree, builder.problems)
        except InputError:
            if is_json:
                raise
    return _yaml(text, source, MAX_VALUES, aliases=aliases)


def _yaml(text: str, source: str, most: int, *, aliases: bool = False) -> Document:
    try:
        values = _read_yaml(text, ValueBuilder(most), aliases=aliases)
        places = partial(_yaml_tree, text, source, most, aliases=aliases)
        return Document(source, values, places)
    except ValueError:
        builder = TreeBuilder(source, most)
        tree = _read_yaml(text, builder, aliases=aliases)
        return Document(source, plain(tree), lambda: tree, builder.problems)


def _read_yaml(text: str, builder: TreeBuilder | ValueBuilder, *, aliases: bool) -> Any:
    """`read_yaml`, loaded here: inside a container there may be no PyYAML."""
    try:
        from placer.documents.yaml_reader import read_yaml
    except ModuleNotFoundError:
        message = "not JSON, and YAML needs PyYAML, which is not installed here"
        raise builder.error(message, 1, 1) from None
    return read_yaml(text, builder, aliases=aliases)


def _yaml_tree(text: str, source: str, most: int, *, aliases: bool) -> Node | None:
    tree: Node | None = _read_yaml(text, TreeBuilder(source, most), aliases=aliases)
    return tree


def _tree(text: str, source: str) -> Node | None:
    with suppress(InputError):
        return json_tree(text, TreeBuilder(source))
    return None


def _answer_tree(text: str, source: str) -> Node:
    """The tree of a JSON text that may be wrong, with what is wrong and where."""
    builder = TreeBuilder(source)
    try:
        tree = json_tree(text, builder)
        refuse(builder.problems)
    except InputError as error:
        found = list(error.problems)
        if text.strip() and not _OPENS_JSON.match(text):
            found[0] = replace(found[0], hint=_ASK)
        raise InputError(found[:MOST_PROBLEMS]) from None
    return tree
