"""Host lists for people."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.hostlist import expand
from placer.report.words import hosts_text


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (["n1"], "n1"),
        (["a1", "a2", "a4", "b"], "a[1-2,4], b"),
        ([f"b{i:02}-r{j}" for i in (1, 2, 9) for j in (1, 2)], "b[01-02,09]-r[1-2]"),
        (["b1-r7", "b2-r7", "c-r7"], "b[1-2]-r[7], c-r7"),
        (["x" * 250, "y"], "x" * 250 + " and 1 more"),
    ],
)
def test_text(hosts: list[str], text: str) -> None:
    """Hosts are joined in brackets; only commas between brackets are followed by one.

    At least one host is shown.
    """
    assert hosts_text(hosts) == text


@given(st.lists(st.from_regex(r"\A[ab]{1,2}[0-9]{1,2}(-[rs][0-9]{1,2}){0,2}\Z")))
def test_nothing_is_lost(hosts: list[str]) -> None:
    """A list that is shown whole reads back as the hosts, in their order."""
    shown, _, more = hosts_text(hosts).partition(" and ")
    names = expand(shown)
    assert names == hosts[: len(names)]
    assert more == (f"{len(hosts) - len(names)} more" if more else "")


def test_many() -> None:
    """A long list is cut between hosts, and those left out are counted."""
    hosts = [f"n{i}" for i in range(0, 2_000, 2)]
    shown, more = hosts_text(hosts).split(" and ")
    names = expand(shown)
    assert names == hosts[: len(names)]
    assert more == f"{len(hosts) - len(names)} more"
    assert 190 < len(shown) <= 200
