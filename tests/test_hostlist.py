"""Host lists: Slurm's rules, what is refused, and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.hostlist import (
    MAX_NAMES,
    compress,
    compress_grid,
    expand,
    name_problem,
    with_blanks,
)

EXPANDED = [
    ("n[01-1]", "n01"),
    ("n[1-02]", "n1 n2"),
    ("a\t,b ,", "a b"),
    ("", ""),
    ("n1.pod-2.example.com,x_1", "n1.pod-2.example.com x_1"),
]

REFUSED = [
    ("n[1-3]x", "'x'", 7),
    ("n[1-5:2]", "'1-5:2'", 3),
    ("n[3-1]", "backwards", 3),
    ("a,n[5,3-1]", "backwards", 7),
    ("n[]", "empty range", 3),
    ("n[1-2]*2", "'*'", 7),
    ("n[1-2", "never closed", 2),
    ("n[1[2]]", "never closed", 2),
    ("n1]", "']'", 3),
    ("n{1-2}", "'{'", 2),
    ("a b", "comma is missing", 3),
    ("a;rm -rf $HOME", "';'", 2),
    ("$(x)", "'$'", 1),
    ("a\nb", r"'\n'", 2),
    ("a,-oProxyCommand", "starts with '-'", 3),
    ("a..b", "between two dots", 1),
    ("n\N{FULLWIDTH DIGIT ONE}", "not allowed", 2),
    ("n[\N{ARABIC-INDIC DIGIT ONE}]", "not a number", 3),
    ("a" * 64, "more than 63", 1),
    (".".join(["a" * 60] * 5), "most is 253", 1),
]


@pytest.mark.parametrize(("text", "names"), EXPANDED)
def test_expands_as_slurm_does(text, names):
    """A host list gives the names that scontrol shows, in that order."""
    assert expand(text) == names.split()


@pytest.mark.parametrize(("text", "reason", "position"), REFUSED)
def test_refuses_with_reason_and_position(text, reason, position):
    """What is no host list is refused with what is wrong and where."""
    with pytest.raises(ValueError, match="position") as caught:
        expand(text)
    assert reason in str(caught.value)
    assert f"(position {position})" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"n[1-{MAX_NAMES + 1}]",
        "n[1-999999999999999999]",
        "n[1-9999]c[1-9999]",
        f"n[1-{MAX_NAMES}],x",
        "n" + "[0-999999999]" * 100,
    ],
)
def test_counts_before_expanding(text):
    """A list of too many names is refused by its count, without being built.

    Exactly as many as allowed are given.
    """
    assert len(expand(f"n[1-{MAX_NAMES}]")) == MAX_NAMES
    with pytest.raises(ValueError, match="hosts in one list"):
        expand(text)


NAMES = st.from_regex(r"[a-z0-9_.]?[a-c]?[0-9]{0,3}", fullmatch=True).filter(
    lambda name: not name_problem(name)
)


@given(st.lists(NAMES, max_size=8))
def test_expanding_undoes_compressing(names):
    """Every list of host names comes back from its compressed form unchanged."""
    assert expand(compress(names)) == names


@given(st.text(max_size=40))
def test_any_text_is_expanded_or_refused(text):
    """No text does anything but give host names or a ValueError."""
    try:
        names = expand(text)
    except ValueError:
        return
    assert not any(name_problem(name) for name in names)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["r1t1", "r1t2", "r2t1", "r2t2"], "r[1-2]t[1-2]"),
        (["r1t1", "r1t2", "r3t1", "r3t2", "r2t1"], "r[1,3]t[1-2],r2t1"),
        (["r1t1", "r2t1"], "r[1-2]t[1]"),  # Slurm has no text after the last bracket
        (["09t1", "09t2", "10t1", "10t2"], "[09-10]t[1-2]"),
        (["b1", "b2", "a", "a"], "b[1-2],a,a"),
        ([f"a{i}b{'9' * 19}" for i in "12"], f"a1b{'9' * 19},a2b{'9' * 19}"),
        (
            [f"b{i}r{j}n{k}" for i in "12" for j in "12" for k in "12"],
            "b[1-2]r[1-2]n[1-2]",
        ),
    ],
)
def test_equal_brackets_share_one_in_front(names, folded):
    """A list for people folds twice, and still expands to the names in order."""
    assert compress_grid(names) == folded
    assert expand(folded) == names
    assert expand(with_blanks(folded)) == names
