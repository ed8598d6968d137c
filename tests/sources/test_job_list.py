"""Several jobs in one file: what it may say, and how its faults are told."""

import pytest

import placer
from placer.formats.jobs.job_list import is_job_list, read_job_list
from tests.commands import data
from tests.problems import problems_of

JOB = """format: placer/job
version: 1
name: ring
parallelism: {dp: 4}
weights: {dp: 1}
"""
LAUNCH = "torchrun pretrain_gpt.py --tensor-model-parallel-size 2 --micro-batch-size 1 "
SIZES = (
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 128 "
    "--max-position-embeddings 128 --global-batch-size 8 --vocab-size 512"
)


@pytest.fixture
def listed(tmp_path):
    """A list with an entry of every kind, and the files that it names."""
    (tmp_path / "ring.yaml").write_text(JOB)
    (tmp_path / "run.sh").write_text(LAUNCH + SIZES + "\n")
    path = tmp_path / "jobs.yaml"
    path.write_text(
        """format: placer/jobs
version: 1
jobs:
  - ring.yaml
  - {job: ring.yaml, count: 2, weight: 3, gpus: 6, name: wide}
  - quickstart
  - {job: "megatron:run.sh", gpus: 8, tflops: 400}
  - {name: own, job: {parallelism: {tp: 2}, weights: {tp: 1}}}
"""
    )
    return path


def test_entries_are_files_presets_other_programs_or_jobs(listed):
    """Each is read from beside the list, as often, as large and by the name it says.

    A job is no list, nor is a preset, or a file of another program.
    """
    assert is_job_list(listed)
    others = (listed.parent / "ring.yaml", "quickstart", "megatron:run.sh")
    assert not any(map(is_job_list, others))
    told = []
    found = read_job_list(listed, told.append)
    assert [(one.job.name, one.job.world_size, one.weight) for one in found] == [
        ("ring", 4, 1.0),
        ("wide", 6, 3.0),
        ("wide", 6, 3.0),
        ("quickstart", 16, 1.0),
        ("run", 8, 1.0),
        ("own", 2, 1.0),
    ]
    assert any("run.sh" in line for line in told)
    assert found[0].job.sha256 != found[1].job.sha256


def test_faults_are_told_at_once_and_at_their_place(tmp_path):
    """Those of the list at their line, those of a job in its own file."""
    (tmp_path / "ring.yaml").write_text(JOB.replace("dp: 4", "dp: four"))
    path = tmp_path / "jobs.yaml"
    path.write_text(
        """format: placer/jobs
version: 1
jobs:
  - ring.yaml
  - {job: quickstart, count: two}
  - {job: quickstart, gpus: 9}
  - {name: own, job: {parallelism: {tp: no}}}
  - {nam: own}
  - {job: quickstart, tflops: 400}
"""
    )
    text = "\n".join(map(str, problems_of(read_job_list, path)))
    assert "ring.yaml:4:19: parallelism.dp: expected an integer" in text
    assert "jobs.yaml:5:30: jobs[1].count: expected an integer" in text
    assert "jobs.yaml:6:11: jobs[2].job.gpus: 9 GPUs are no multiple" in text
    assert "jobs[3].job.parallelism.tp: expected an integer" in text
    assert "jobs[5].job.tflops: the job quickstart is complete" in text
    assert 'jobs.yaml:8:6: jobs[4]: unknown key "nam"' in text


def test_allocate_takes_a_list_with_its_weights(listed):
    """A weight that is given by name counts more than that of the list."""
    text = listed.read_text().replace("  - quickstart\n", "")
    line = '  - {job: "megatron:run.sh", gpus: 8, tflops: 400}\n'
    listed.write_text(text.replace(line, ""))
    found = placer.allocate("rack:4 node:8 gpu:2", listed, weights={"wide-2": 5.0})
    assert [(job.name, job.weight) for job in found.jobs] == [
        ("ring", 1.0),
        ("wide", 3.0),
        ("wide-2", 5.0),
        ("own", 1.0),
    ]


def test_a_list_may_come_from_standard_input(listed, monkeypatch):
    """And so may a job by itself; files that a list names are looked for here."""
    monkeypatch.chdir(listed.parent)
    own = "format: placer/jobs\nversion: 1\njobs: [{job: ring.yaml, count: 2}]\n"
    for text, jobs in ((own, 2), (JOB, 1)):
        words = ("allocate", "-t", "rack:4 node:8 gpu:2", "-j", "-")
        assert len(data(*words, input=text)["jobs"]) == jobs
