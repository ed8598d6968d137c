"""Segments asked for before the nodes exist."""

import json
import random
from math import lcm

import pytest

from placer.allocate.segment import advice, segment_of
from placer.job.axes import Parallelism
from tests import texts
from tests.commands import run
from tests.texts import table

NOTHING = "keeps no group of several nodes"


@pytest.mark.parametrize(*table("allocate/tables.yaml", "segments_keep_groups"))
def test_segments_keep_groups(sizes, nodes, segment, keeps, parts):
    """The largest segment of a domain that holds whole units of what it can keep."""
    found = segment_of(Parallelism(**sizes), nodes, 4, 18)
    assert (found.size, [*found.keeps], found.parts) == (segment, keeps, parts)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_said_to_be_kept_is(seed):
    """Groups that a segment keeps end where segments end, in the usual rank order.

    So do they in the smallest that keeps as much.
    """
    rng = random.Random(seed)
    tp, cp, ep, pp = (rng.choice((1, 2, 4, 8)) for _ in range(4))
    axes = Parallelism(tp=tp, etp=1, cp=cp, ep=ep, pp=pp, dp=lcm(tp * cp, ep))
    gpus, nodes = rng.choice((4, 8)), rng.randint(1, 80)
    found = segment_of(axes, nodes, gpus, rng.choice((1, 9, 18)))
    units = {"tp": tp, "cp": tp * cp, "ep": ep, "pp": tp * cp * pp}
    for size in (found.size, found.least):
        assert nodes % size == 0
        assert all(size * gpus % units[axis] == 0 for axis in found.keeps)
        assert not found.parts or size * gpus % found.parts == 0
    assert not found.parts or ep % found.parts == 0


def test_a_number_of_nodes_that_hurts():
    """38 nodes have segments of 2, as the public rule says; 36 would have 12.

    A prime number of nodes leaves single nodes, which hold no tp group of 8.
    """
    found = advice(Parallelism(tp=4, cp=2, ep=16, etp=1, dp=18), 38, 4, 18)
    assert found["segment"] == 2
    assert found["ep_ranks_a_domain"] == 8
    assert not found["has_ranks_for_all"]
    assert found["better"]["nodes"] == 36
    assert found["better"]["segment"] == 12
    assert found["one_node_fewer"]["segment"] == 1
    assert found["flags"]["slurm"] == "--segment=2"
    assert found["public"][0]["segment"] == 2
    assert "ep in parts of 8" in found["public"][0]["verdict"]
    assert "refused" in found["public"][1]["verdict"]
    prime = advice(Parallelism(tp=8, etp=8, dp=18), 37, 4, 18)
    assert (found["fits"], prime["segment"], prime["fits"]) == (True, 1, False)


def test_no_rate_is_assumed_for_segments(tmp_path):
    """A script that names no GPU has degrees, and nothing else is read of it."""
    script = tmp_path / "pretrain.sh"
    script.write_text(texts.data("jobs/script.sh"))
    words = ("segment", "-j", f"megatron:{script}", "--nodes", 4)
    found = run(*words, "--format", "json")
    assert json.loads(found.stdout)["keeps"] == ["tp"]
    assert "tflops" not in found.stderr


@pytest.mark.parametrize(("tp", "cp", "text"), [(4, 3, "keeps tp"), (12, 1, NOTHING)])
def test_a_public_rule_that_keeps_less(tp, cp, text):
    """Units of three nodes: of twelve nodes that rule takes four."""
    found = advice(Parallelism(tp=tp, etp=tp, cp=cp, dp=4), 12, 4, 18)
    assert found["segment"] == 12
    assert found["public"][1]["verdict"] == text
