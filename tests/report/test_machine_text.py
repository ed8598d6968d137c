"""The drawing of a machine."""

import numpy as np
import pytest

from placer.report.machine_text import draw
from placer.topology.read import read_topology
from tests.texts import table


@pytest.mark.parametrize(*table("report/machine.yaml", "regular_machine_is_one_line"))
def test_regular_machine_is_one_line(text, tree):
    """A regular machine's tree is folded into one line."""
    assert tree in draw(read_topology(text)).splitlines()


def test_table_has_a_row_a_tier():
    """Every tier has a row with its domains, their GPUs, bandwidth and latency."""
    lines = draw(read_topology("rack:2 node:3 gpu:4")).splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines[3:7]}
    assert " ".join(rows["cluster"]) == "1 24 50 GB/s 5 us 1 1 scale-out"
    assert " ".join(rows["rack"]) == "2 12 50 GB/s 5 us 1 1 scale-out"
    assert " ".join(rows["node"]) == "6 4 450 GB/s 1 us 1 1 scale-up"


def test_uneven_machine_lists_its_sizes():
    """Uneven tiers are listed by capacity, the commonest first."""
    machine = read_topology("rack:4 node:3 gpu:4")
    lines = draw(machine.select(np.arange(10))).splitlines()
    assert "rack: 3 of 12 GPUs, 1 of 4 GPUs" in lines
    assert not any(line.startswith("node:") for line in lines)
