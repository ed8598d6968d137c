"""Compiled loops of the search on the busiest ports: the same walk, and no waiting."""

import subprocess
import sys
from importlib.util import find_spec
from unittest.mock import patch

import numpy as np
import pytest

from placer.solve.improve import compiled
from placer.solve.improve.anneal import anneal
from placer.solve.improve.port_loads import PortLoads
from placer.solve.improve.port_search import PortState, evened
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import MoveCounts
from tests.clients.needs import REQUIRED
from tests.solve.improve.test_port_search import loads_of, problem_of, start
from tests.solve.solving import known
from tests.solve.test_communicators import seated

HAS_NUMBA = find_spec("numba") is not None
needs_numba = pytest.mark.skipif(
    not HAS_NUMBA and not REQUIRED, reason="numba is not installed"
)


@pytest.fixture(scope="module")
def loops():
    """The loops, compiled or loaded."""
    compiled.keep()
    found = compiled.loops(Budget(60.0))
    assert found is not None
    return found


def walked(seed: int, kinds: tuple[str, ...], loops) -> tuple:
    """What a walk in rounds of either sort comes to."""
    problem = problem_of(seed, *kinds)
    loads, region = loads_of(problem)
    loads = PortLoads(problem.model.fabric, region, loads.messages, loops)
    home = region.homes([seated(problem.machine, start(problem, seed))])[0]
    state = PortState(loads, region, home, np.random.default_rng(seed), problem.params)
    counts = MoveCounts()
    for doublings, heat in ((2, 0.3), (5, 0.05)):
        state.sum_up(doublings, heat, 4e4)
        anneal(state, Budget(60.0), counts)
        state.aim(0.05, 0.02, 4e4)
        anneal(state, Budget(60.0), counts)
    return state.home, state.best, state._busy, counts.as_dict()


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "kinds", [(), ("all_to_all", "relay"), ("send_recv",)], ids=str
)
def test_the_walk_is_the_same_to_the_last_bit(loops, kinds, seed: int) -> None:
    *arrays, counts = walked(seed, kinds, loops)
    *expected, others = walked(seed, kinds, None)
    for one, other in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert counts == others


@needs_numba
@pytest.mark.slow
@pytest.mark.usefixtures("loops")
def test_a_search_finds_the_same_without() -> None:
    problem = problem_of(3).with_params(even_work=3e5)
    found = []
    for installed in (True, False):
        incumbent = known(problem, seated(problem.machine, start(problem, 3)))
        before = incumbent.value
        with patch.object(compiled, "find_spec", lambda _, is_=installed: is_ or None):
            evened(problem, incumbent, Budget(60.0))
        assert incumbent.value < before
        found.append(incumbent.gpu_of_rank)
    np.testing.assert_array_equal(*found)


@needs_numba
@pytest.mark.slow
def test_no_search_compiles_anything(loops) -> None:
    """Whatever the traffic, what was compiled beforehand fits."""
    for kinds in ((), ("all_to_all", "relay"), ("send_recv",)):
        walked(0, kinds, loops)
    for loop in (loops.singles, loops.clusters, loops.priced, loops.applied):
        assert len(loop.signatures) == 1


def test_a_search_does_not_wait_for_the_compiler() -> None:
    """Another process is asked once; without numba, or time to load, nobody is."""
    if HAS_NUMBA:
        asked = []
        with (
            patch.object(compiled, "_mark", lambda _: compiled.Path("/nowhere")),
            patch.object(compiled, "_begin", lambda: asked.append(1)),
        ):
            assert compiled.loops(Budget(60.0)) is None
        assert asked == [1]
    with patch.object(compiled, "find_spec", lambda _: None):
        assert compiled.loops(Budget(60.0)) is None
    code = (
        "import sys; from placer.solve.improve import compiled;"
        "from placer.solve.run.budget import Budget;"
        "assert compiled.loops(Budget(1.0)) is None;"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
