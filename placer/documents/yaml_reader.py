"""YAML text to values, without what a data file has no use for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

import yaml

from placer.base.errors import InputError
from placer.documents.builder import TOO_DEEP, Builder
from placer.documents.scalars import BOOLEANS, CONTROL, Kind

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS: dict[str, Kind] = {
    _TAG + "str": "text",
    _TAG + "int": "number",
    _TAG + "float": "number",
    _TAG + "bool": "boolean",
    _TAG + "null": "null",
}
_FORBIDDEN = re.compile(rf"(?![\t\n\r]){CONTROL.pattern}")
_COLLECTION_TAGS = {"list": _TAG + "seq", "mapping": _TAG + "map"}

# What YAML 1.1 takes for a number, plus exponents without a point (1e9).
_NUMBER = re.compile(
    r"""[-+]?(?:
        0b[01_]+ | 0x[0-9a-fA-F_]+
      | [0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?
      | (?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?
      | \.(?:inf|Inf|INF) )
      | \.(?:nan|NaN|NAN)""",
    re.VERBOSE,
)
_WORDS: dict[str, Kind] = dict.fromkeys(("~", "", "null", "Null", "NULL"), "null")
for _word in BOOLEANS:
    _WORDS |= dict.fromkeys((_word, _word.capitalize(), _word.upper()), "boolean")


def read_yaml(text: str, builder: Builder, *, aliases: bool = False) -> None:
    """Give the one YAML document in ``text`` to a builder.

    With ``aliases`` each stands for what its anchor marks, as often as the builder has
    room for values.

    Raises InputError if the text is not YAML, holds several documents, anchors or
    aliases (unless they are wanted), unknown tags or control characters, or is nested
    too deep or too large.
    """
    _refuse_control_characters(text, builder)
    documents = 0
    try:
        events = yaml.parse(text, Loader=_Loader)
        for event in with_aliases(events) if aliases else events:
            documents += isinstance(event, yaml.DocumentStartEvent)
            mark: Any = event.start_mark
            if documents > 1:
                message = "more than one YAML document"
                raise builder.error(message, mark.line + 1, mark.column + 1)
            _add(event, builder, mark.line + 1, mark.column + 1)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, builder) from None
    except yaml.YAMLError as error:
        raise builder.error(f"not YAML: {error}".splitlines()[0], 1, 1) from None
    if not builder.count:
        raise builder.error("the file is empty", 1, 1)


def _add(event: yaml.Event, builder: Builder, line: int, column: int) -> None:
    if isinstance(event, yaml.ScalarEvent):
        if event.anchor is not None:
            raise _anchor(builder, line, column)
        kind, raw = _scalar(event, builder, line, column)
        builder.scalar(kind, raw, line, column)
    elif isinstance(event, yaml.AliasEvent):
        raise _anchor(builder, line, column)
    elif isinstance(event, yaml.CollectionStartEvent):
        kind = "list" if isinstance(event, yaml.SequenceStartEvent) else "mapping"
        if event.anchor is not None:
            raise _anchor(builder, line, column)
        if event.tag not in (None, "!", _COLLECTION_TAGS[kind]):
            raise _tag(event.tag, builder, line, column)
        if builder.at_key():
            raise builder.error(f"a {kind} cannot be a key", line, column)
        builder.begin(kind, line, column)
    elif isinstance(event, yaml.CollectionEndEvent):
        builder.end()


def _scalar(
    event: yaml.ScalarEvent, builder: Builder, line: int, column: int
) -> tuple[Kind, str]:
    raw: str = event.value
    if event.style in ("|", ">"):
        raw = raw.rstrip("\n")
    if event.tag is not None and event.tag != "!":
        if event.tag not in _SCALAR_TAGS:
            raise _tag(event.tag, builder, line, column)
        return _SCALAR_TAGS[event.tag], raw
    if event.style or event.tag == "!":
        return "text", raw
    if raw in _WORDS:
        return _WORDS[raw], raw
    if raw == "<<":
        message = "merge keys (<<) are not supported"
        raise builder.error(message, line, column, "write the keys out")
    return ("number" if _NUMBER.fullmatch(raw) else "text"), raw


def _anchor(builder: Builder, line: int, column: int) -> InputError:
    message = "anchors (&) and aliases (*) are not supported"
    hint = "write the value out, or put text that starts with & or * in quotes"
    return builder.error(message, line, column, hint)


def _tag(tag: str, builder: Builder, line: int, column: int) -> InputError:
    message = f"the tag {tag.replace(_TAG, '!!')} is not supported"
    return builder.error(message, line, column, "write the value without a tag")


def _refuse_control_characters(text: str, builder: Builder) -> None:
    found = _FORBIDDEN.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - text.rfind("\n", 0, found.start())
        message = f"control character U+{ord(found.group()):04X}"
        raise builder.error(message, line, column, "remove it")


def _syntax_error(error: yaml.MarkedYAMLError, builder: Builder) -> InputError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    parts = [part for part in (error.problem, error.context) if part]
    hint = ""
    if "nesting depth" in parts[0]:  # libyaml's own limit, met while it looks ahead
        return builder.error(TOO_DEEP, line, column)
    if "cannot start any token" in parts[0]:
        hint = "indent with spaces, not tabs; quote text with special characters"
    return builder.error(f"not YAML: {', '.join(parts)}", line, column, hint)


MERGE = "<<"


def with_aliases(events: Iterable[yaml.Event]) -> Iterator[yaml.Event]:
    """The events without anchors, each alias replaced by what its anchor marks.

    A merge key (``<<``) becomes a key of that name: whoever reads the values merges.
    An alias inside its own anchor stays, and so does one without an anchor before it:
    whoever reads the events refuses them.
    """
    known: dict[str, list[yaml.Event]] = {}
    open_anchors: list[tuple[str, list[yaml.Event], int]] = []
    depth = 0
    for event in events:
        anchor = getattr(event, "anchor", None)
        if isinstance(event, yaml.AliasEvent):
            replaced = known.get(anchor or "", [event])
        else:
            plain = event
            if isinstance(event, yaml.ScalarEvent) and event.value == MERGE:
                plain = copy(event)
                plain.style = plain.style or "'"
            if anchor is not None and isinstance(plain, yaml.NodeEvent):
                plain = copy(plain)
                plain.anchor = None
                open_anchors.append((anchor, [], depth))
            replaced = [plain]
        yield from replaced
        for _, kept, _ in open_anchors:
            kept += replaced
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        while open_anchors and open_anchors[-1][2] == depth:
            name, kept, _ = open_anchors.pop()
            known[name] = kept
