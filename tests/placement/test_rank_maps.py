"""Host files, rankfiles and rank maps as placements: what they say and cannot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import EmitError, InputError
from placer.emit import emit
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.rank_maps import placement_of_hostfile
from placer.testing.strategies import machines, tiny
from tests.texts import Texts, table

# Formats of one file that say where every rank is, or all but its GPU.
READ_BACK = (
    *("slurm-hostfile", "openmpi-seq", "openmpi-rankfile", "deepspeed"),
    *("torchrun-map", "csv", "json"),
)

RANK_MAP = """\
{"format": "placer/rank-map", "version": 1, "ranks": [
  {"rank": 1, "host": "n000", "gpu": 1}, {"rank": 0, "host": "n001", "gpu": 0},
  {"rank": 2, "host": "n000", "gpu": 0}]}
"""


TEXT = Texts({"map": RANK_MAP}, {})
NESTED = ["{" * 100_000, "map: not JSON: "]


def gpus(source, ranks=3, name="map"):
    """Global GPUs on the tiny machine: two a node, n000 has 0 and 1, n001 2 and 3."""
    topology, _ = tiny()
    topology = replace(topology.select(np.arange(7)), unavailable={"n007": "xid 79"})
    found = placement_of_hostfile(TEXT(source), topology, ranks, name)
    return [int(gpu) for gpu in found.gpu_of_rank]


def rows(test):
    return table("placement/rank_maps.yaml", test)[1]


@pytest.mark.parametrize(("text", "wanted"), rows("by_hand"))
def test_by_hand(text, wanted):
    """Ranks may stand in any order; only CSV and rank maps say which GPU."""
    assert gpus(text, len(wanted)) == wanted


@pytest.mark.parametrize(
    ("name", "ranks", "text", "wanted"),
    [
        *(("map", 3, *row) for row in [*rows("problems"), NESTED]),
        *(("hosts", 4, *row) for row in rows("problems_of_host_files")),
    ],
)
def test_problems(name, ranks, text, wanted):
    """What is wrong is told with the line or key it stands at, never a traceback."""
    with pytest.raises(InputError) as caught:
        gpus(text, ranks, name)
    assert wanted in str(caught.value)


@given(machines(), st.data())
def test_emitted_files_give_the_placement(topology, data):
    """What can be written and read gives the same placement, for every such format."""
    ranks = data.draw(st.integers(1, topology.num_gpus))
    gpu_of_rank = np.arange(ranks)
    if data.draw(st.booleans()):
        order = data.draw(st.permutations(range(topology.num_gpus)))
        gpu_of_rank = np.array(order[:ranks])
    job = Job("j", Parallelism(dp=ranks))
    plan = build_plan(topology, job, Placement(gpu_of_rank))
    for format in READ_BACK:
        try:
            text = emit(plan, format)
        except EmitError:
            assert format not in ("csv", "json")
            continue
        found = placement_of_hostfile(text, topology, ranks)
        assert found.gpu_of_rank.tolist() == gpu_of_rank.tolist(), format
