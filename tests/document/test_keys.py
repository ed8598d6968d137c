"""Keys that stand once: reader, writer, digest and schema are made from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jsonschema
import pytest

from placer.base.errors import InputError
from placer.documents import Document, parse_document
from placer.documents.keys import (
    BOOLEAN,
    TEXT,
    TIME,
    Key,
    integer,
    key,
    list_of,
    number,
    one_of,
)
from placer.documents.records import digested, entries, nested, read
from placer.documents.schema import document_schema
from tests.texts import table


@dataclass(frozen=True)
class Valve:
    """A part of a part."""

    turns: int = key(integer(1, 9), "how often it is turned")


@dataclass(frozen=True)
class Pump:
    """A part, with a key of every sort."""

    name: str = key(TEXT, "what it is called")
    bore = Key(integer(), "its width, which changes nothing", 0, absent="unknown")
    flow: float = key(number(0.0, 10.0), "litres", 1.0)
    rest: float = key(
        TIME, "for `so` long", 1.0, implied=lambda known: known["flow"], absent="`flow`"
    )
    way: str = key(one_of(("in", "out")), "where to", "in")
    quiet: bool = key(BOOLEAN, "whether nobody hears it", False, newer=True)
    marks: tuple[str, ...] = key(list_of(TEXT), "what is written on it", ())
    valve: Valve | None = key(nested(Valve), "what stops it", None, called="stop")


FULL = Pump("p", 2.0, 0.5, "out", True, ("a", "b"), Valve(3))


def pump(text):
    document = parse_document(text, "a.yaml")
    found = read(document.root, Pump)
    document.finish()
    return found


@pytest.mark.parametrize("one", [FULL, Pump("p", rest=1.0), Pump("p", rest=3.0)])
def test_what_is_written_reads_back(one):
    """All keys survive, those that go without saying and those in other keys."""
    written = entries(one)
    document = Document("a.json", written)
    assert read(document.root, Pump) == one
    document.finish()


def test_defaults_may_follow_from_other_keys():
    """A key that is absent takes its default, or what the keys before it imply."""
    assert pump("{name: p, flow: 4}") == Pump("p", 4.0, 4.0)


def test_what_was_not_there_before_is_not_written():
    """A newer key changes neither files nor digests until it says something."""
    usual = replace(FULL, quiet=False)
    assert "quiet" not in entries(usual)
    assert "quiet" not in digested(usual)
    assert digested(FULL) == digested(usual) | {"quiet": True}


def test_all_problems_are_told_at_once():
    """Each with its place, of all keys, unknown and missing ones too."""
    text = "flow: 11\nrest: 5 parsec\nway: up\nbore: x\nodd: 1\nstop: {turns: 0}\n"
    with pytest.raises(InputError) as caught:
        pump(text)
    told = str(caught.value)
    for place in ("1:7: flow: ", "2:7: rest: ", "3:6: way: ", "4:7: bore: "):
        assert f"a.yaml:{place}" in told
    for problem in (
        '5:1: unknown key "odd"',
        "6:15: stop.turns: ",
        '"name" is missing',
    ):
        assert problem in told


@pytest.mark.parametrize(*table("document/keys.yaml", "schema_and_reader_agree"))
def test_schema_and_reader_agree(more, fits):
    """What one takes the other takes."""
    head = {"format": "placer/pump", "version": 1}
    schema = document_schema(Pump, "placer/pump", "A pump")
    whole = {"name": "p", **more}
    assert jsonschema.Draft202012Validator(schema).is_valid(head | whole) == fits
    document = Document("a.json", whole)
    read(document.root, Pump)
    document.root.finish()
    assert (not document.problems) == fits


def test_the_schema_says_what_a_key_means():
    """A sentence for each key; its default where that is a value, else in words."""
    properties = document_schema(Pump, "placer/pump", "A pump")["properties"]
    assert properties["flow"]["description"] == "Litres."
    assert properties["flow"]["default"] == 1
    assert properties["rest"]["description"] == "For so long. Default: flow."
    assert "default" not in properties["rest"]
