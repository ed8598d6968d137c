"""Plans that somebody edited by hand: an answer or an error, never a crash."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from placer.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MACHINE = "rack:3 node:2 gpu:4"
JOBS = {
    "model": """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, pp: 2, dp: 4}
model: {layers: 8, hidden: 256, ffn: 512, heads: 4, kv_heads: 4, vocab: 1000}
sequence: 512
micro_batches: 4
compute: {micro_batch_time: 1ms}
""",
    "roles": """\
format: placer/workload
version: 1
name: roles
roles:
  - name: trainer
    job:
      {format: placer/job, version: 1, name: t, parallelism: {tp: 2, dp: 4},
       compute: {fixed_time: 1s}}
  - name: rollout
    instances: 2
    job:
      {format: placer/job, version: 1, name: r, parallelism: {tp: 4},
       groups: [{name: g, collective: all_reduce, bytes: 1MB, ranks: all}]}
transfers: [{from: trainer, to: rollout, bytes: 8GB, pattern: reshard}]
""",
}
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**9, 0.5, 1e300, "", "x", "0"),
    *([], [0], [None], [[]], {}, {"a": 1}, {"rack": {}}),
)
COMMANDS = (
    ["draw", "EDITED", "--format", "html", "-o", "OUT"],
    ["draw", "EDITED", "--format", "svg", "-o", "OUT"],
    ["diff", "EDITED", "PLAN"],
    ["diff", "PLAN", "EDITED", "--format", "html", "-o", "OUT"],
    ["check", "EDITED"],
    ["explain", "EDITED"],
    ["emit", "EDITED", "json"],
)
Keys = tuple[str | int, ...]


@pytest.fixture(scope="module", params=JOBS)
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    """A folder with a plan, and what the plan says."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "job.yaml").write_text(JOBS[request.param])
    words = ["place", "-t", MACHINE, "-j", str(folder / "job.yaml"), "-q"]
    found = CliRunner().invoke(main, [*words, "-o", str(folder / "plan.json")])
    assert found.exit_code == 0
    plan: dict[str, Any] = json.loads((folder / "plan.json").read_text())
    return folder, plan


def keys_of(value: object, path: Keys = ()) -> Iterator[Keys]:
    """The path of every value but those of long lists and of inputs."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            if key != "inputs":
                yield from keys_of(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value[:2]):
            yield from keys_of(item, (*path, at))


def edited(plan: dict[str, Any], path: Keys, value: object) -> dict[str, Any]:
    """The plan with another value at a path; without the key for ``...``."""
    found: Any = deepcopy(plan)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return found  # type: ignore[no-any-return]


def assert_answered(folder: Path, plan: dict[str, Any], told: object) -> None:
    """Every command ends with one of the exit codes of answers and of errors."""
    names = {name: str(folder / name) for name in ("EDITED", "OUT")}
    names["PLAN"] = str(folder / "plan.json")
    (folder / "EDITED").write_text(json.dumps(plan))
    for words in COMMANDS:
        found = CliRunner().invoke(main, [names.get(word, word) for word in words])
        assert found.exit_code in range(5), (told, words, found.stderr)


@pytest.mark.parametrize("seed", range(8))
def test_any_value_anywhere(made: tuple[Path, dict[str, Any]], seed: int) -> None:
    """A value of another kind, or none, in any place that is no input."""
    folder, plan = made
    draw = random.Random(seed)
    path = draw.choice([*keys_of(plan)])
    value = ... if draw.random() < 0.25 else draw.choice(VALUES)
    assert_answered(folder, edited(plan, path, value), (path, value))
