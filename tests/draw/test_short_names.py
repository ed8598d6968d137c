"""Names too long to write are told by what differs between them, else by number."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.draw.machine_view import short_names

IDS = [str(UUID(int=(2**127) // (n + 1))) for n in range(3)]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["r1", "r2", "r1"], ["r1", "r2", "r1"]),
        ([f"{IDS[0]}.{n}" for n in (0, 3)], ["clique 0", "clique 3"]),
        ([f"{name}.0" for name in IDS], ["clique 1", "clique 2", "clique 3"]),
        ([f"{IDS[0]}.0", f"{IDS[1]}.7"], ["clique 1", "clique 2"]),
        ([IDS[0]], ["clique 1"]),
        (["us-east-dc-1-pod-a-rack", "us-east-dc-1-pod-b-rack"], ["a", "b"]),
        ([], []),
    ],
)  # fmt: skip
def test_by_hand(names: list[str], shown: list[str]) -> None:
    """Short names stay; ids of one cluster keep their number; others are counted."""
    assert short_names(names, "clique") == shown


@given(st.lists(st.text("ab-.", min_size=1, max_size=30), min_size=1))
def test_different_names_stay_different(names: list[str]) -> None:
    """Two domains share a short name only if they share their own."""
    shown = short_names(names, "rack")
    pairs = set(zip(names, shown, strict=True))
    assert len(pairs) == len(set(names)) == len(set(shown))
    assert all(shown)
