"""Links between named domains and compute factors: what is read, kept and refused."""

import numpy as np
import pytest

from placer.base.errors import InputError
from placer.report.machine_text import draw
from placer.topology.read import parse_topology
from placer.topology.write import compact_document
from tests.problems import marked, problems_of
from tests.texts import data, table

BASE = data("topology/regions.yaml")
LAST = "  - {between: [us, asia], bandwidth: 1Gb/s}\n"


def read(text=BASE):
    """The machine in a text."""
    return parse_topology(text, "regions.yaml")


def test_another_link_is_another_machine():
    """The digest counts links and factors, not their order or direction."""
    usual = read().sha256
    assert read(BASE.replace("[us, eu]", "[eu, us]")).sha256 == usual
    moved = BASE.replace(LAST, "").replace("links:\n", f"links:\n{LAST}")
    assert read(moved).sha256 == usual
    assert read(BASE.replace("0.4Gb/s", "0.5Gb/s")).sha256 != usual
    assert read(BASE.replace("0.5}", "0.6}")).sha256 != usual


def test_links_of_an_allocation_and_of_the_drawing():
    """Those of domains that are left out go; the whole machine is written still.

    The drawing names them, and counts the slow nodes.
    """
    some = read().select(np.array([0, 2]))
    assert [link.between for link in some.links] == [("us", "eu")]
    assert some.speed_of_node.tolist() == [1, 0.5]
    assert len(compact_document(some)["links"]) == 2
    lines = draw(read()).splitlines()
    assert "link us - eu: 50 MB/s, 30 ms" in lines
    assert "2 nodes with a compute factor below 1" in lines


# What a third link says, key of the problem, words of the message, words of the hint.
@pytest.mark.parametrize(*table("topology/links.yaml", "a_wrong_link_is_refused"))
def test_a_wrong_link_is_refused(link, key, message, hint):
    """With its place, what is wrong, and what to do."""
    text, (line, column) = marked(f"{BASE}  - {{{link}}}\n", "@")
    (problem,) = problems_of(read, text)
    assert problem.key == f"links[2].{key}".rstrip(".")
    assert problem.line == line
    assert not key or problem.column == column
    assert message in problem.message
    assert hint in problem.hint


def test_nvlink_needs_no_links():
    """Domains that a scale-up tier joins, and names that two tiers share."""
    text = BASE.replace("latency: 10us", "latency: 10us, scale_up: true")
    with pytest.raises(InputError, match="joined by NVLink"):
        read(f"{text}  - {{between: [u1, u2], bandwidth: 1GB/s}}\n")
    both = BASE.replace('"u[1-2]"', '"us,eu"')
    with pytest.raises(InputError, match="nodes and regions"):
        read(both)


@pytest.mark.parametrize("factor", ["0", "1.5", "fast"])
def test_a_wrong_factor_is_refused(factor):
    """It is a number in (0, 1]."""
    with pytest.raises(InputError, match="compute_factor"):
        read(BASE.replace("0.5}", f"{factor}}}"))
