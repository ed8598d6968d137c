"""A term that the page on the architecture adds is read, priced and bounded."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands import ROOT, python

NEEDED = ("placer", "topologies", "jobs", "models")
# The checkout's own package must not stand before the copy.
RUN = """
import json, sys
sys.meta_path = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
sys.path.insert(0, sys.argv[1])
import placer
from placer.formats.schemas import schema_text

found = []
for name in sys.argv[2:]:
    result = placer.place("dgx-h100-4x8", name, time_limit=4)
    placer.check(result.plan)
    kept = result.plan.inputs["job"]["compute"]
    score, bound = result.score["step_time_s"], result.bound["lower_bound"]
    found.append([score, bound, kept.get("data_wait", 0.0)])
said = json.loads(schema_text("job"))["properties"]["compute"]["properties"]
print(json.dumps([placer.__file__, found, said["data_wait"]["description"]]))
"""
# Eight micro-batches, so 8 times the wait; no gradients hide behind it.
JOB = """format: placer/job
version: 1
name: waits
parallelism: {{tp: 4, dp: 8}}
model: llama3.1-8b
sequence: 4096
micro_batches: 8
data_parallel: {{overlap_reduce: false, overlap_gather: false}}
compute: {{micro_batch_time: 9ms{more}}}
"""


@pytest.mark.slow
def test_a_term_takes_a_key_and_a_line(tmp_path):
    """The step grows by the wait, no bound exceeds it, and the check of it holds."""
    page = (ROOT / "docs/architecture.md").read_text()
    (change,) = re.findall("```diff\n(.*?)```", page, re.S)
    copy = tmp_path / "copy"
    for name in NEEDED:
        skip = shutil.ignore_patterns("__pycache__", "CMakeFiles")
        shutil.copytree(ROOT / name, copy / name, ignore=skip)
    subprocess.run(["patch", "-p1"], cwd=copy, input=change, text=True, check=True)
    jobs = [tmp_path / "without.yaml", tmp_path / "with.yaml"]
    for path, more in zip(jobs, ("", ", data_wait: 2ms"), strict=True):
        path.write_text(JOB.format(more=more))
    run = python("-c", RUN, copy, *jobs, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    file, found, said = json.loads(run.stdout)
    assert Path(file).is_relative_to(copy)
    assert said == "What each micro-batch waits for its data."
    (before, _, said_nothing), (after, bound, kept) = found
    assert (said_nothing, kept) == (0.0, 0.002)
    assert after - before == pytest.approx(8 * 0.002)
    assert before < bound <= after * (1 + 1e-9)
