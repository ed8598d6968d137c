"""Host lists for people."""

import pytest

from placer.hostlist import expand
from placer.report.host_text import hosts_text


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (["n1"], "n1"),
        (["a1", "a2", "a4", "b"], "a[1-2,4], b"),
        (["x" * 250, "y"], "x" * 250 + " and 1 more"),
    ],
)
def test_text(hosts: list[str], text: str) -> None:
    """Hosts are joined in brackets; only commas between brackets are followed by one.

    At least one host is shown.
    """
    assert hosts_text(hosts) == text


def test_many() -> None:
    """A long list is cut between hosts, and those left out are counted."""
    hosts = [f"n{i}" for i in range(0, 2_000, 2)]
    shown, more = hosts_text(hosts).split(" and ")
    names = expand(shown)
    assert names == hosts[: len(names)]
    assert more == f"{len(hosts) - len(names)} more"
    assert 190 < len(shown) <= 200
