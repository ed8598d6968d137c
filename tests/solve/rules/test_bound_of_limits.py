"""Limits on replicas a domain count in the bound on the step time."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import placer
from placer.job.axes import REPLICA_MAJOR_ORDER, Parallelism
from placer.job.rules import Rules
from placer.solve.bounds.certificate import lower_bound
from placer.solve.problem.compiled import Problem
from tests.solve import oracle
from tests.solve.random_cases import random_case

if TYPE_CHECKING:
    from pathlib import Path

CLEAN = """
format: placer/topology
version: 1
name: clean
tiers:
  - {name: tray, size: 4, bandwidth: 900GB/s, latency: 1us, scale_up: true}
  - {name: rack, bandwidth: 900GB/s, latency: 1us, scale_up: true}
  - {name: cluster, bandwidth: 100GB/s, latency: 8us}
layout: "cluster:1 rack:8 tray:16"
"""


def placed(path: Path, replicas: int, at_most: int) -> placer.Result:
    """So many replicas on eight racks of sixteen trays."""
    path.write_text(CLEAN)
    axes = Parallelism(tp=4, cp=2, pp=8, dp=replicas, etp=4, order=REPLICA_MAJOR_ORDER)
    job = placer.read_job("llama3.1-405b-mlperf-v6")
    job = replace(job, parallelism=axes, require={}, sha256="j")
    rules = Rules(at_most={"rack": at_most})
    return placer.place(placer.read_topology(path), job, rules=rules, time_limit=60)


def test_one_replica_a_rack_is_proved(tmp_path: Path) -> None:
    """Eight racks of sixteen trays and eight replicas that must not share a rack.

    Each gradient group then has one NIC in each rack, whatever else is done.
    """
    assert placed(tmp_path / "clean.yaml", 8, 1).status == "optimal"


@pytest.mark.slow
def test_two_replicas_of_seven_a_rack(tmp_path: Path) -> None:
    """Half the stages of 4, 4, 3 and 3 members a rack: three NICs or more in each.

    Seven whole replicas, two members of a gradient group a rack, are 3.8 % slower.
    """
    found = placed(tmp_path / "clean.yaml", 7, 2)
    assert found.bound["gap"] < 0.001


@pytest.mark.parametrize("seed", [0, 2, 12, 18, 20, 23, 25, 31, 32, 33, 38, 41])
def test_no_placement_within_the_limit_is_below(seed: int) -> None:
    """On small cases the bound is at most the optimum, and no weaker than without."""
    topology, job = random_case(seed, "time")
    rng = random.Random(seed)
    tiers = [tier.name for tier in topology.tiers]
    most = max(1, job.parallelism.dp - 1)
    rules = Rules(at_most={rng.choice(tiers): rng.randint(1, most)})
    problem = Problem.of(topology, replace(job, rules=rules), "time")
    plain = Problem.of(topology, job, "time")
    legal = [
        nodes
        for nodes in oracle.legal_placements(topology, job)
        if problem.limits.numbers_hold(np.array(nodes))
    ]
    bound = lower_bound(problem, problem.forced_block)[0]
    assert bound >= lower_bound(plain, plain.forced_block)[0] * (1 - 1e-12)
    for nodes in legal[:2000]:
        gpus = np.array(oracle.gpus_of(topology, nodes))
        assert bound <= plain.goal.value(gpus) * (1 + 1e-9)
