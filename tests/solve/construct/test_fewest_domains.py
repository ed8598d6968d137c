"""The fewest racks and blocks that hold all ranks."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from placer.solve.construct.fills.fewest_domains import fewest_domains
from tests.solve.machines import tiers
from tests.solve.random_cases import machine_of


def fewest(rooms: list[list[int]], world: int) -> dict[int, int]:
    """Blocks -> fewest racks in so many of them, where more blocks save racks."""
    racks = [(b, room) for b, block in enumerate(rooms) for room in block]
    found: dict[int, int] = {}
    for count in range(1, len(racks) + 1):
        for some in combinations(racks, count):
            if sum(room for _, room in some) >= world:
                blocks = len({b for b, _ in some})
                found[blocks] = min(found.get(blocks, count), count)
    least, kept = len(racks) + 1, {}
    for blocks in sorted(found):
        if found[blocks] < least:
            least = kept[blocks] = found[blocks]
    return kept


@pytest.mark.parametrize("seed", range(20))
def test_each_number_of_blocks_has_the_fewest_racks(seed: int) -> None:
    """As all sets of racks say; racks are single nodes or pairs of them."""
    rng = random.Random(seed)
    rooms = [[rng.randint(2, 9) for _ in range(rng.randint(1, 4))] for _ in range(3)]
    racks = [(b, room) for b, block in enumerate(rooms) for room in block]
    nodes = [
        (r, b, part)
        for r, (b, room) in enumerate(racks)
        for part in ((room,) if rng.random() < 0.5 else (1, room - 1))
    ]
    rack, block, gpus = (list(row) for row in zip(*nodes, strict=True))
    machine = machine_of(gpus, [rack, block, [0] * len(gpus)], tiers(rng, 4))
    world = rng.randint(1, sum(gpus))
    found = {}
    for room in fewest_domains(machine, machine.gpus_of_node, 1, world):
        used = room > 0
        assert room.sum() >= world
        assert (room[used] == machine.gpus_of_node[used]).all()
        found[len(np.unique(np.array(block)[used]))] = len(
            np.unique(np.array(rack)[used])
        )
    assert found == fewest(rooms, world)
