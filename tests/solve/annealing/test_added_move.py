"""A move that the page on the architecture adds is built and serves every objective."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.commands import ROOT, python
from tests.texts import content

NATIVE = "placer/solve/annealing/native"
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "topologies", "jobs", "models")
# The checkout's own package must not stand before the copy.
RUN = """
import json, pathlib, sys
sys.meta_path = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
sys.path.insert(0, sys.argv[1])
import placer

folder = pathlib.Path(sys.argv[1])
found = []
for job in json.loads(sys.argv[2]):
    (folder / "job.json").write_text(json.dumps(job))
    plan = placer.place(
        folder / "machine.json", folder / "job.json", effort=0, time_limit=100
    ).plan
    found.append(plan.to_dict()["solver"].get("moves", {}))
print(json.dumps([placer.__file__, found]))
"""
MACHINE, *WORK = content("solve/odd_racks.yaml").values()


def jobs():
    """Both objectives, placed freely and by nodes."""
    head = {"format": "placer/job", "version": 1, "name": "job"}
    return [
        {**head, **job, "launcher": {"ranks": ranks}}
        for job in WORK
        for ranks in ("free", "node-contiguous")
    ]


@pytest.mark.slow
def test_a_move_takes_one_file_and_one_line(tmp_path):
    """It is tried on the hop cost and the step time, by nodes and free."""
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    page = (ROOT / "docs/architecture.md").read_text()
    move, row = re.findall("```cpp\n(.*?)```", page, re.S)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in (*NEEDED, "schemas", "placer"):
        source = ROOT / name
        if source.is_dir():
            skip = shutil.ignore_patterns("__pycache__", "_kernel*.so", "CMakeFiles")
            shutil.copytree(source, copy / name, ignore=skip)
        elif source.exists():
            shutil.copy(source, copy / name)
    (copy / NATIVE / "moves/opposite.hpp").write_text(move)
    rows = copy / NATIVE / "moves.hpp"
    text = rows.read_text().replace("#pragma once\n", _INCLUDE, 1)
    rows.write_text(re.sub(r"( MOVES = \{\n)", rf"\g<1>{row}", text))
    (copy / "machine.json").write_text(json.dumps(MACHINE))
    wheels = tmp_path / "wheels"
    build = ("-m", "pip", "wheel", "-q", ".", "--no-deps", "-w", wheels)
    python(*build, cwd=copy, check=True)
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
        built = [name for name in wheel.namelist() if "_kernel" in name]
        wheel.extractall(copy, [name for name in built if name.endswith(".so")])
    run = python("-c", RUN, copy, json.dumps(jobs()))
    assert run.returncode == 0, run.stderr
    file, found = json.loads(run.stdout)
    assert Path(file).is_relative_to(copy)
    assert len(found) == 4
    assert all("opposite" in json.dumps(moves) for moves in found), found


_INCLUDE = '#pragma once\n#include "moves/opposite.hpp"\n'
