"""Cases of schedulers and of published jobs: ``tests/data/conformance``.

A case promises something in a sentence (``says``). Its machine has ``tiers``, innermost
first, and ``nodes``: domains with their nodes, nested as the tiers are, where a number
is one of so many one-GPU nodes and a list has the GPUs of each; or a layout. Some are
``down``. Its ``jobs`` are placed one after the other on what is left, with ``seeds``
orders of the nodes. Of each are told ``parts`` or the sizes of axes, and what must come
of it: a ``problem`` with these words, or the parts needed and those that ``fit`` by
tier; ``crossings`` of a tier by axis, of axes that are not named none, and of the order
that was ``given``; ranks that each domain in use has ``held``, and how many are
``used``.
"""

import numpy as np
import pytest

from placer.base.errors import InfeasibleError
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.traffic import Group
from placer.placement.baselines import baseline
from placer.placement.check import violations
from tests.conformance.machines import (
    Host,
    crossings,
    job,
    machine,
    ranks_in,
    varied,
    without,
)
from tests.solve.solving import solve
from tests.texts import cases


def with_seeds():
    """Every case with each of its orders of the nodes."""
    for row in cases("conformance"):
        (case,) = row.values
        for seed in range(case.get("seeds", 1)):
            marks = pytest.mark.slow if seed > 1 or case.get("slow") else ()
            yield pytest.param(case, seed, id=f"{row.id}, {seed}", marks=marks)


def domains(content, above=()):
    """Hosts of nested domains; those of a list are called by their place."""
    if isinstance(content, int):
        content = [1] * content
    if above and isinstance(content, list):
        for place, gpus in enumerate(content):
            yield Host(f"n{place}-{'-'.join(above)}", gpus, above)
        return
    if isinstance(content, list):
        content = dict(enumerate(written_out(content)))
    for name, inside in content.items():
        yield from domains(inside, (f"d{name}", *above))


def written_out(sizes):
    """Each domain of a list, where ``3 of 4`` are several."""
    for size in sizes:
        count, _, each = str(size).partition(" of ")
        yield from [int(each)] * int(count) if each else [size]


def laid_out(text):
    """Hosts of a regular machine, numbered through."""
    *counts, gpus = (int(item.split(":")[1]) for item in text.split())
    sizes = np.cumprod(counts[:0:-1])
    return [
        Host(
            f"n{node}", gpus, tuple(f"d{tier}-{node // size}" for tier, size in levels)
        )
        for levels in [list(enumerate(sizes.tolist()))]
        for node in range(int(np.prod(counts)))
    ]


def machine_of(case, seed):
    """The machine of a case, its nodes in another order for each seed."""
    nodes = case["nodes"]
    hosts = laid_out(nodes) if isinstance(nodes, str) else list(domains(nodes))
    tiers = case.get("tiers", ["node", "rack", "cluster"])
    return machine(tiers, varied(hosts, seed), case.get("down", ()))


def job_of(said):
    """A job by its axes, or one whose parts must each lie in one rack."""
    if "parts" not in said:
        weights = said.pop("weights", None)
        if "order" in said:
            said["order"] = tuple(said["order"].split("-"))
        return job(weights=weights, **said)
    ends = np.cumsum(said["parts"]).tolist()
    groups = tuple(
        Group(f"part{i}", "all_to_all", 1e6, 1.0, False, (tuple(range(end - n, end)),))
        for i, (n, end) in enumerate(zip(said["parts"], ends, strict=True))
    )
    require = {group.name: "rack" for group in groups}
    axes = Parallelism(dp=ends[-1])
    return Job("parts", axes, launcher="free", groups=groups, require=require)


EXPECTED = ("problem", "fit", "crossings", "given", "held", "used")


@pytest.mark.parametrize(("case", "seed"), list(with_seeds()))
def test_case(case, seed):
    """Each job is placed as told, or refused with the reason."""
    topology = machine_of(case, seed)
    for said in case["jobs"]:
        expected = {key: said[key] for key in EXPECTED if key in said}
        work = job_of({key: said[key] for key in said if key not in EXPECTED})
        if "problem" in expected or "fit" in expected:
            with pytest.raises(InfeasibleError) as caught:
                solve(topology, work)
            check_problem(str(caught.value), expected)
            return
        found = solve(topology, work, time_limit=case.get("limit", 20.0))
        assert violations(found.placement, topology, work) == []
        assert found.status == "optimal" or not case.get("proved")
        given = baseline("given-order", topology, work) if "given" in said else None
        for placement, told in ((found.placement, "crossings"), (given, "given")):
            for tier, by_axis in expected.get(told, {}).items():
                assert placement is not None
                crossed = crossings(topology, work, placement, tier)
                assert said_alike(crossed, by_axis) == by_axis
        for tier, ranks in expected.get("held", {}).items():
            assert {*ranks_in(topology, found.placement, tier).values()} == {ranks}
        for tier, count in expected.get("used", {}).items():
            assert len(ranks_in(topology, found.placement, tier)) == count
        topology = without(topology, found.placement)


def said_alike(crossed, told):
    """Axes that cross, ``any`` number where that is told."""
    return {
        axis: "any" if told.get(axis) == "any" else count
        for axis, count in crossed.items()
        if count
    }


def check_problem(text, expected):
    """It has these words, and a line a tier with what is needed and what fits."""
    for words in expected.get("problem", ()):
        assert words in text
    for tier, (needed, fit) in expected.get("fit", {}).items():
        line = next(line for line in text.splitlines() if f"in one {tier}:" in line)
        assert f"{needed} such parts are needed, {fit} fit" in line
