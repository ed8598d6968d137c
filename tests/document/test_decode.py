"""Decoding: unknown keys, other formats, words of messages, digests."""

import pytest

from placer.base.errors import InputError
from placer.base.units import parse_time
from placer.documents import closest, content_digest, parse_document
from tests.problems import problems_of
from tests.texts import table


@pytest.mark.parametrize(
    ("method", "more", "default"),
    [
        ("text", (), "d"),
        ("integer", (), 7),
        ("number", (), 7.5),
        ("boolean", (), True),
        ("choice", (("a", "b"),), "b"),
        ("quantity", (parse_time,), 3.0),
    ],
)
def test_keys_that_are_absent(method, more, default):
    """One with a default may be left out; of another it is told that it is missing."""
    root = parse_document("a: 1", "f.yaml").root
    read = getattr(root, method)
    assert read("x", *more, default) == default
    assert not root.document.problems
    read("x", *more)
    with pytest.raises(InputError, match=r'f.yaml:1:1: the key "x" is missing'):
        root.document.fail_if_problems()


@pytest.mark.parametrize("bad", ["010", "0x1F", "12:30:45", "1.5", "'3'", "yes", "~"])
def test_integers_are_decimal(bad):
    """What YAML 1.1 would silently turn into another integer is refused."""
    document = parse_document(f"a: {bad}", "f.yaml")
    assert document.root.integer("a", 5) == 5
    (problem,) = problems_of(document.fail_if_problems)
    assert "expected an integer, got" in problem.message
    assert ("leading zeros" in problem.hint) == (bad in ("010", "0x1F", "12:30:45"))


def test_unknown_keys_are_reported_once_with_the_nearest_name():
    """Finishing twice or opening a section twice does not repeat a problem."""
    document = parse_document("s: {pipline: 1}\nother: 2", "f.yaml")
    document.root.section("s").integer("pipeline", 1)
    document.root.section("s").finish()
    first, second = problems_of(document.finish)
    assert str(first).startswith('f.yaml:1:5: s: unknown key "pipline"')
    assert first.hint == 'did you mean "pipeline"?'
    assert str(second) == 'f.yaml:2:1: unknown key "other"\n  hint: known: s'


@pytest.mark.parametrize(
    *table("document/decode.yaml", "format_and_version_are_checked_first")
)
def test_format_and_version_are_checked_first(head, fragment):
    """Another format or a newer version stops the reading at once."""
    document = parse_document(head, "f.yaml")
    with pytest.raises(InputError, match=fragment):
        document.check_format("placer/job")


def test_messages_never_carry_control_characters_or_long_texts():
    """A hostile value is shown cut and cleaned."""
    text = 'a: "' + r"\e[31m" + "x" * 500 + '"'
    document = parse_document(text, "f.yaml")
    document.root.integer("a")
    (problem,) = problems_of(document.fail_if_problems)
    assert "\x1b" not in str(problem)
    assert len(str(problem)) < 150


def test_closest_names_only_near_options():
    """A far name gets no suggestion."""
    assert closest("tpp", ("tp", "pp")) == 'did you mean "tp"?'
    assert closest("zzz", ("tp", "pp")) == ""
    hosts = [f"rack1-a{k:02}" for k in range(1, 19)]
    assert closest("rack1-a1", hosts) == 'did you mean "rack1-a01"?'
    assert closest("rack01-a010", hosts) == 'did you mean "rack1-a10"?'


def test_content_digest_ignores_key_order_only():
    """Equal content has one digest; numbers that are not finite have none."""
    assert content_digest({"a": 1, "b": [2]}) == content_digest({"b": [2], "a": 1})
    assert content_digest({"a": [1, 2]}) != content_digest({"a": [2, 1]})
    with pytest.raises(ValueError, match="JSON compliant"):
        content_digest({"a": float("nan")})
