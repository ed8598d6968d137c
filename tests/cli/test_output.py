"""Where a command's data go: all of them, or exit code 4; never over an input."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import placer
from placer.cli.main import main
from tests.commands import run

ROOT = Path(__file__).resolve().parents[2]
PRESETS = ["-t", "dgx-h100-4x8", "-j", "quickstart"]
WRITERS = {
    "place": ["place", "-q", *PRESETS, "--previous", "plan.json"],
    "replace": ["replace", "plan.json", "--failed", "n1"],
    "emit": ["emit", "plan.json", "slurm-hostfile"],
    "draw": ["draw", "plan.json", "--format", "svg"],
    "topo convert": ["topo", "convert", "machine.yaml"],
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("output")
    machine, job = placer.read_topology("dgx-h100-4x8"), placer.read_job("quickstart")
    placer.write_plan(placer.place(machine, job).plan, folder / "plan.json")
    return {
        "plan.json": (folder / "plan.json").read_bytes(),
        "machine.yaml": (ROOT / "topologies/dgx-h100-4x8.yaml").read_bytes(),
    }


@pytest.fixture(autouse=True)
def _files(inputs, folder):
    for name, data in inputs.items():
        (folder / name).write_bytes(data)


@pytest.mark.parametrize("name", WRITERS)
def test_no_command_writes_over_its_input(inputs, folder, name):
    """``-o`` that is an input, by whatever name, is refused and the input stays."""
    words = WRITERS[name]
    own = next(word for word in words if word in inputs)
    (folder / "link").symlink_to(own)
    found = run(*words, "-o", "link", code=2)
    assert "it is an input of this command" in found.stderr
    assert (folder / own).read_bytes() == inputs[own]


@pytest.mark.parametrize("name", WRITERS)
def test_outputs_that_cannot_be(folder, name):
    """A loop of links, a name too long, a read-only file: 4, and nothing changes."""
    (folder / "loop").symlink_to("loop")
    (folder / "kept").write_text("kept")
    (folder / "kept").chmod(0o444)
    for output in ("loop", "n" * 300, "kept", "none/out", "."):
        found = run(*WRITERS[name], "-o", output, code=4)
        assert "cannot be written" in found.stderr
    assert (folder / "kept").read_text() == "kept"
    assert (folder / "loop").is_symlink()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_told(folder, unbuffered):
    """A short write to standard output is no success, buffered or not."""
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600));"
        f"sys.path.insert(0, {str(ROOT)!r}); from placer.__main__ import run;"
        "sys.argv[1:] = ['emit', 'plan.json', 'json']; sys.exit(run())"
    )
    # Compiled files of placer would meet the limit first.
    with (folder / "out").open("wb") as out:
        found = subprocess.run(
            [sys.executable, "-c", script],
            stdout=out,
            stderr=subprocess.PIPE,
            env=os.environ
            | {"PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"},
            text=True,
        )
    assert (folder / "out").stat().st_size == 600
    assert found.returncode == 4
    assert found.stderr == "error: standard output: cannot be written: File too large\n"


def test_data_go_one_way():
    """Commands print messages only; what they print of data goes through the writer."""
    printing = set()
    for path in (ROOT / "placer").rglob("*.py"):
        text = path.read_text()
        if not any(word in text for word in ("stdout", "echo", "print(")):
            continue
        for node in ast.walk(ast.parse(text)):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if re.fullmatch(r"print|sys\.stdout\..*write(lines)?", called) or (
                called == "click.echo" and "err=True" not in ast.unparse(node)
            ):
                printing.add(path.name)
    assert printing == {"writing.py"}


def test_names_that_standard_output_has_no_code_for(folder):
    """Text for people has their letters as standard error does; data are refused."""
    (folder / "job.yaml").write_text(
        (ROOT / "jobs/quickstart.yaml")
        .read_text("utf-8")
        .replace("quickstart", "modèle"),
        "utf-8",
    )
    runner = CliRunner(charset="ascii")
    found = runner.invoke(main, ["job", "show", "job.yaml"])
    assert found.exit_code == 0
    assert found.stdout.splitlines()[0] == "mod\\xe8le"
    made = ["place", "-t", "node:2 gpu:8", "-j", "job.yaml", "-q", "-o", "é.json"]
    assert runner.invoke(main, made[:-3]).exit_code == 0
    assert runner.invoke(main, made).exit_code == 0
    assert runner.invoke(main, ["draw", "é.json", "-o", "-"]).exit_code == 4
