"""Memory of choices: what is refused unseen would not fit.

``python -m tests.degrees.test_room 0 300`` asks more cases.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from placer.degrees.frameworks import FRAMEWORKS, in_framework
from placer.degrees.room import Room, needed
from placer.degrees.space import Legal, Space
from placer.job.memory import Memory
from placer.job.model import DataParallel
from tests.degrees.test_what_is_suggested_fits import varied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.degrees.choice import Choice
    from placer.job.model import Job

GPUS, MOST = 16, 400


def odd(seed: int) -> Job:
    """A small job whose memory has settings of its own."""
    random = Random(f"room {seed}")
    work = varied(seed)
    kinds = random.choice(["none", "full", "selective", "op"])
    memory = Memory(
        recompute=kinds,
        recompute_modules=tuple(random.sample(("layernorm", "mlp", "moe"), 2)),
        recompute_method=random.choice(["uniform", "block"]),
        recompute_layers=random.choice([1, 1, 2, 3]),
        attention=random.choice(["fused", "unfused"]),
        norm=random.choice(["fused", "unfused"]),
        dropout=random.random() < 0.5,
        gemm=random.choice(["bf16", "fp8", "nvfp4"]),
        gemm_layers=random.choice([0, 2]),
        keep_gathered=random.random() < 0.3,
        keep_outputs=random.random() < 0.3,
        micro_batch_group=random.choice([0, 0, 3, 5]),
        activations=random.choice([None, None, None, 1e9]),
    )
    mode = DataParallel(keep_parameters=random.random() < 0.3)
    return replace(work, memory=memory, data_parallel=mode)


def choices(work: Job, framework: str, seed: int) -> Iterator[Choice]:
    """Some of the legal choices."""
    assert work.model
    accepted = Legal(work, work.model, Space((GPUS,), 48, framework=framework))
    shapes = [*accepted.shapes()]
    random = Random(seed)
    for shape in random.sample(shapes, min(len(shapes), MOST // 4)):
        variants = accepted.variants(shape)
        yield from random.sample(variants, min(len(variants), 4))


def check(seed: int, framework: str) -> int:
    """How many choices need no less than the least of their degrees."""
    work = in_framework(odd(seed), framework)
    room, count = Room(work, 1.0), 0
    for choice in choices(work, framework, seed):
        assert room.least_of(choice) <= needed(choice.applied(work)) * (1 + 1e-12), (
            seed,
            framework,
            choice,
        )
        count += 1
    return count


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("seed", range(3))
def test_no_choice_needs_less_than_the_least_of_its_degrees(
    framework: str, seed: int
) -> None:
    """All micro-batches and recompute modes, on jobs with settings of their own."""
    assert check(seed, framework) > 100


def test_the_least_need_is_found_among_what_was_refused_unseen() -> None:
    """It and its choice are those of looking at all."""
    work = varied(1)
    every = [*choices(work, "megatron", 1)]
    needs = {choice: needed(choice.applied(work)) for choice in every}
    room = Room(work, min(needs.values()) / 2)
    assert all(room.is_hopeless(choice) for choice in every)
    assert room.least() == min((need, choice) for choice, need in needs.items())


def test_what_fits_is_never_hopeless() -> None:
    """With a limit that half of all choices meet."""
    work = varied(2)
    every = [*choices(work, "megatron", 2)]
    needs = sorted(needed(choice.applied(work)) for choice in every)
    room = Room(work, needs[len(needs) // 2])
    hopeless = [choice for choice in every if room.is_hopeless(choice)]
    assert 0 < len(hopeless) < len(every)
    assert all(needed(choice.applied(work)) > room.limit for choice in hopeless)


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:3])
    checked = sum(check(s, name) for s in range(first, last) for name in FRAMEWORKS)
    print(f"{checked:,} choices")
