"""Text to tree: the same content as plain loaders, and hostile text refused in place.

The mark ``^`` stands just before the place that the message must name; it is taken out
before the text is read.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.base.errors import InputError
from placer.documents import parse_document
from placer.documents.scalars import MAX_TEXT, kind_of, raw
from tests.problems import marked, problems_of
from tests.texts import table


def written(value):
    """A parsed value with the kind of each scalar and what the file writes for it."""
    if isinstance(value, dict):
        return {key: written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [written(item) for item in value]
    return (kind_of(value), "" if value is None else raw(value))


def read(text, source="x.yaml"):
    return written(parse_document(text, source).top.content)


SMALL = "name: a\nlist: [1, two, {three: yes}]\nempty:\n'q': \"no\"\n"


def test_yaml_keeps_scalars_as_written():
    """Kinds follow YAML 1.1, texts stay what the file says."""
    assert read(SMALL) == {
        "name": ("text", "a"),
        "list": [("number", "1"), ("text", "two"), {"three": ("boolean", "yes")}],
        "empty": ("null", ""),
        "q": ("text", "no"),
    }


def test_a_flow_mapping_with_quoted_keys_may_still_be_yaml():
    """Text that opens like JSON but is not falls to YAML, except in a .json file."""
    text = '{"a": plain}'
    assert read(text) == {"a": ("text", "plain")}
    with pytest.raises(InputError, match="not JSON"):
        read(text, "x.json")


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text("abcdefgh", min_size=1, max_size=5), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.dictionaries(st.text("abcdefgh", min_size=1), values, max_size=4))
def test_any_json_object_reads_as_the_standard_library_reads_it(content):
    """Trees of JSON texts agree with ``json.loads``, indented or not."""
    for indent in (None, 1):
        text = json.dumps(content, indent=indent)
        assert read(text, "x.json") == written(content)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(values, st.sampled_from(["x.yaml", "x.json"]))
def test_a_doubt_changes_no_value(content, source):
    """A text reads alike from its tree, as it does where a key may be wrong."""
    usual = read(json.dumps({"a": content}), source)
    doubtful = read(json.dumps({"\xad": 0, "a": content}), source)
    assert doubtful == {"\xad": ("number", "0"), **usual}


@pytest.mark.parametrize("text", ['{"a": X}', "a: X"])
@pytest.mark.parametrize("size", [31, 32])
def test_both_ways_of_reading_end_at_the_same_depth(text, size):
    """Thirty-two lists and mappings may lie in each other, not one more."""
    nested = text.replace("X", "[" * size + "]" * size)
    assert outcome(nested, "x.yaml") == ("read" if size == 31 else "refused")


def test_places_are_one_based_lines_and_columns():
    """Values and keys know where they start, in both notations."""
    for source in ("x.yaml", "x.json"):
        place = parse_document('{"a": 1,\n  "bc": [2,\n 3]}', source).place
        assert [place((key,), is_key=True) for key in ("a", "bc")] == [(1, 2), (2, 3)]
        assert [place(("bc", index)) for index in (0, 1)] == [(2, 10), (3, 2)]
        assert place(("bc", 9, "x")) == place(("bc",)) == (2, 9)


# Texts that are long.
LONG = [
    ("x.yaml", "a: ^" + "b" * (MAX_TEXT + 1), "text longer than"),
    ("x.yaml", "[" * 32 + "^" + "[" * 900, "nested deeper than 32 levels"),
    ("x.yaml", "[" * 10_000, "nested deeper than 32 levels"),
    ("x.yaml", "- " * 32 + "^- " + "- " * 10_000, "nested deeper than 32 levels"),
    ("x.json", "[" * 32 + "^" + "[" * 10_000, "nested deeper than 32 levels"),
]
_, TEXTS = table("document/hostile.yaml", "texts")


@pytest.mark.parametrize(("source", "marked_text", "fragment"), [*TEXTS, *LONG])
def test_hostile_text_is_refused_in_its_place(source, marked_text, fragment):
    """Each trick of the notation is an InputError with line and column."""
    text, place = marked(marked_text)
    problems = problems_of(lambda: parse_document(text, source).fail_if_problems())
    found = [problem for problem in problems if fragment in problem.message]
    assert found, problems
    assert place in (None, (found[0].line, found[0].column))


def test_too_many_values_are_refused(monkeypatch):
    """The number of values is capped while reading."""
    monkeypatch.setattr("placer.documents.parse.MAX_VALUES", 100)
    with pytest.raises(InputError, match="more than 100 values"):
        parse_document("a: [" + "1," * 200 + "]", "x.yaml")


def test_every_cut_of_a_good_text_is_read_or_refused():
    """A truncated file never ends in anything but an InputError."""
    good = json.dumps({"a": [1, "é\n", {"b": None}], "c": -1.5e-3}, indent=1)
    for source in ("x.yaml", "x.json"):
        for end in range(len(good)):
            assert outcome(good[:end], source) == "refused"
        assert outcome(good, source) == "read"


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.text(max_size=60), st.sampled_from(["x.yaml", "x.json"]))
def test_any_text_is_read_or_refused(text, source):
    """No text makes the parsers fail in another way."""
    assert outcome(text, source) in ("read", "refused")


def outcome(text, source):
    try:
        parse_document(text, source).fail_if_problems()
    except InputError:
        return "refused"
    return "read"


def test_aliases_where_they_are_wanted():
    """Each stands for what its anchor marks, at the anchor's place; others are refused.

    One that holds itself, or was not marked before, stands for nothing.
    """
    text = "a: &x {b: [1, &y 2]}\nc: *x\nd: {e: *y}\n"
    document = parse_document(text, "x.yaml", aliases=True)
    document.fail_if_problems()
    same = {"b": ["1", "2"]}
    assert document.top.content == {"a": same, "c": same, "d": {"e": "2"}}
    assert document.place(("c", "b", 1)) == (1, 15)
    with pytest.raises(InputError, match="anchors"):
        parse_document(text, "x.yaml")
    for wrong in ("a: *x\n", "a: &x [*x]\n"):
        with pytest.raises(InputError, match="anchors"):
            parse_document(wrong, "x.yaml", aliases=True)


@pytest.mark.slow
def test_aliases_of_aliases_are_bounded():
    """Ten times ten times ... is stopped at the most values of a file."""
    rows = ["a0: &a0 [1]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(InputError, match="more than"):
        parse_document("\n".join(rows), "x.yaml", aliases=True)
