"""Decoding: values of every type, problems with place and key, all of them at once."""

import pytest

from placer.base.errors import InputError
from placer.base.units import parse_time
from placer.documents import closest, content_digest, parse_document
from tests.texts import table

GOOD = """\
format: placer/job
version: 1
text: a b
integer: 1_000
negative: -3
number: 1e3
boolean: off
choice: red
time: 5us
bare: 2
section: {inner: x}
list: [{k: 1}, {k: 2}]
texts: [a, "1"]
integers: [0, 5, 10]
"""


@pytest.fixture
def root():
    return parse_document(GOOD, "f.yaml").root


def test_every_type_reads(root):
    """Each method gives the value in its type."""
    assert root.text("text") == "a b"
    assert root.integer("integer") == 1000
    assert root.integer("negative", minimum=-5) == -3
    assert root.number("number") == 1000.0
    assert root.number("integer") == 1000.0
    assert root.boolean("boolean") is False
    assert root.choice("choice", ("red", "blue")) == "red"
    assert root.quantity("time", parse_time) == 5e-6
    assert root.quantity("bare", parse_time) == 2.0
    assert root.section("section").text("inner") == "x"
    assert [i.section().integer("k") for i in root.items("list")] == [1, 2]
    assert root.texts("texts") == ["a", "1"]
    assert root.get("integers").integers(maximum=10) == [0, 5, 10]
    root.document.check_format("placer/job")
    root.document.finish()


@pytest.mark.parametrize("method", ["text", "integer", "number", "boolean"])
@pytest.mark.parametrize("shown", ["[]", "{}", "~"])
def test_scalars_refuse_other_kinds(method, shown):
    """A list, a mapping and nothing are no scalars."""
    document = parse_document(f"a: {shown}", "f.yaml")
    getattr(document.root, method)("a")
    with pytest.raises(
        InputError, match=r"a: expected .*, got (a list|a mapping|nothing)"
    ):
        document.fail_if_problems()


@pytest.mark.parametrize(
    "bad", ["010", "0x1F", "0b1", "12:30:45", "1.5", "'3'", "yes", "1e3", ".inf"]
)
def test_integers_are_decimal(bad):
    """What YAML 1.1 would silently turn into another integer is refused."""
    document = parse_document(f"a: {bad}", "f.yaml")
    assert document.root.integer("a", 5) == 5
    with pytest.raises(InputError, match="expected an integer"):
        document.fail_if_problems()


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
def test_keys_that_are_absent(root, method, more, default):
    """One with a default may be left out; of another it is told that it is missing."""
    read = getattr(root, method)
    assert read("x", *more, default) == default
    assert not root.document.problems
    read("x", *more)
    with pytest.raises(InputError, match=r'f.yaml:1:1: the key "x" is missing'):
        root.document.fail_if_problems()


def test_sections_and_lists_that_are_absent(root):
    """They are empty, unless they are asked for; paths lead through them."""
    assert root.section("x").text("y", "z") == "z"
    assert root.items("x") == root.texts("x") == []
    assert root.get("x") is None
    assert not root.has("x")
    for key, read in (("x", root.section), ("y", root.items)):
        read(key, required=True)
    assert len(root.document.problems) == 2
    document = parse_document("a:\n  b:\n    - c: x\n", "f.yaml")
    document.root.section("a").items("b")[0].section().integer("c")
    with pytest.raises(InputError, match=r"f.yaml:3:10: a.b\[0\].c: expected an int"):
        document.fail_if_problems()


def test_lists_of_integers_name_the_bad_element():
    """The fast path for good lists does not hide a bad element."""
    document = parse_document("a: [1, 2, x, 01, 99]", "f.yaml")
    document.root.get("a").integers(maximum=50)
    with pytest.raises(InputError) as caught:
        document.fail_if_problems()
    assert [p.key for p in caught.value.problems] == ["a[2]", "a[3]", "a[4]"]


def test_entries_are_names_that_the_file_chose():
    """Keys read through `entries` are not unknown."""
    document = parse_document("m: {one: 1, two: 2}", "f.yaml")
    section = document.root.section("m")
    assert {key: v.integer() for key, v in section.entries()} == {"one": 1, "two": 2}
    document.finish()


def test_unknown_keys_are_reported_once_with_the_nearest_name():
    """Finishing twice or opening a section twice does not repeat a problem."""
    document = parse_document("s: {pipline: 1}\nother: 2", "f.yaml")
    document.root.section("s").integer("pipeline", 1)
    document.root.section("s").finish()
    with pytest.raises(InputError) as caught:
        document.finish()
    first, second = caught.value.problems
    assert str(first).startswith('f.yaml:1:5: s: unknown key "pipline"')
    assert first.hint == 'did you mean "pipeline"?'
    assert str(second) == 'f.yaml:2:1: unknown key "other"\n  hint: known: s'


@pytest.mark.parametrize(
    *table("document/decode.yaml", "format_and_version_are_checked_first")
)
def test_format_and_version_are_checked_first(head, fragment):
    """Another format or a newer version stops the reading at once."""
    document = parse_document(head, "f.yaml")
    with pytest.raises(InputError) as caught:
        document.check_format("placer/job")
    assert fragment in str(caught.value)


def test_messages_never_carry_control_characters_or_long_texts():
    """A hostile value is shown cut and cleaned."""
    text = 'a: "' + r"\e[31m" + "x" * 500 + '"'
    document = parse_document(text, "f.yaml")
    document.root.integer("a")
    with pytest.raises(InputError) as caught:
        document.fail_if_problems()
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 150


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
