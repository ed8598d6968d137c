"""``-v``: where each key of a job from another program's file comes from."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from placer.cli.main import main
from tests.sources.texts import DEEPSPEED, SHAPE

WITH_JOBS = [
    name
    for name in main.list_commands(click.Context(main))
    for command in [main.get_command(click.Context(main), name)]
    if command and any("-j" in parameter.opts for parameter in command.params)
]


@pytest.mark.parametrize("name", WITH_JOBS)
def test_every_command_with_jobs_has_it(name: str) -> None:
    """One meaning, one help."""
    command = main.get_command(click.Context(main), name)
    assert command is not None
    found = [p for p in command.params if "-v" in p.opts]
    assert len(found) == 1, name
    assert "where each value of a job from FORMAT:FILE comes from" in (
        found[0].help or ""
    )


def test_a_line_a_key(tmp_path: Path) -> None:
    """Read, derived and given values, each with its place, rule or option."""
    (tmp_path / "ds.json").write_text(DEEPSPEED)
    (tmp_path / "config.json").write_text(SHAPE)
    args = ["predict", "-t", "node:2 gpu:4", "--launcher", "slurm", "--tflops", "400"]
    args += ["-j", f"deepspeed:{tmp_path}/ds.json", "-j", f"hf:{tmp_path}/config.json"]
    args += ["--gpus", "8", "--set", "job.sequence=1024"]
    plain, told = (CliRunner().invoke(main, [*args, *more]) for more in ([], ["-v"]))
    assert plain.exit_code == told.exit_code == 0, told.stderr
    more = [line for line in told.stderr.splitlines() if not line.startswith("note: ")]
    assert "parallelism.dp: 8: derived: 8 GPUs" in more
    assert "compute.tflops_per_gpu: 400.0: --tflops" in more
    assert any(line.startswith("model.layers: ") and ":" in line for line in more)
    assert set(more) & set(plain.stderr.splitlines()) == set()
    quiet = CliRunner().invoke(main, [*args, "-v", "-q"])
    assert quiet.stderr == ""
