"""The launcher of a script is read with its line, and kept in the job."""

import shlex

import pytest

import placer
from placer.formats.jobs.job import read_job
from placer.job.started import STARTERS, Started
from placer.placement.baselines import order_in_use
from placer.placement.launcher_orders import LAUNCHERS, launcher_called
from tests.problems import problems_of
from tests.sources.megatron import PLAIN
from tests.texts import data, table

OPTIONS = f"--tensor-model-parallel-size 2 {PLAIN}"
JOB = f"pretrain_gpt.py {OPTIONS}"
AGENT = "--nproc-per-node 2 --nnodes 4"


def started(tmp_path, text):
    """What starts the job of a script, as its job file has it too."""
    script = tmp_path / "train.sh"
    script.write_text(text)
    job = read_job(f"megatron:{script}", gpus=8, tflops=400, note=lambda _: None)
    return job.started


@pytest.mark.parametrize(*table("sources/starter.yaml", "launchers"))
def test_what_starts_the_job(tmp_path, script, expected):
    """The innermost launcher with its line, and what pods need of its program."""
    for name, words in {"AGENT": AGENT, "JOB": JOB, "OPTIONS": OPTIONS}.items():
        script = script.replace(name, words)
    found = started(tmp_path, script)
    assert (found is None) == (expected is None)
    assert found is None or found.source == str(tmp_path / "train.sh")
    for key, value in (expected or {}).items():
        told = getattr(found, key)
        if key == "command":
            told = shlex.join(told).replace(JOB, "JOB")
        assert told == value, key


SWIFT = data("jobs/swift.sh")
VERL = data("jobs/verl-job.sh")
SHAPE = data("jobs/shape-of-starters.json")


@pytest.mark.parametrize(
    ("text", "name", "line"), [(SWIFT, "swift", 1), (VERL, "verl", 3)]
)
def test_frameworks_that_start_themselves(tmp_path, text, name, line):
    """ms-swift and veRL are the launcher; the order of veRL is that of addresses."""
    (tmp_path / "run.sh").write_text(text)
    (tmp_path / "config.json").write_text(SHAPE)
    sources = [f"{tmp_path}/run.sh", f"{tmp_path}/config.json"]
    job = read_job(sources, tflops=400, note=lambda _: None)
    assert job.started == Started(name, f"{tmp_path}/run.sh", line)
    module = ("-m", "swift.cli._megatron.sft", "--num_layers")
    assert job.started.command[:3] == (module if name == "swift" else ())
    plan = placer.place("node:4 gpu:2", job, time_limit=5).plan
    assert plan.verdict["against"] == name
    assert order_in_use(job) == ("sorted-hosts" if name == "verl" else "given-order")


def test_a_line_more_above_the_launcher_is_no_other_job(tmp_path):
    """The digest does not depend on it."""
    digests = set()
    for lines in (1, 5):
        path = tmp_path / "train.sh"
        path.write_text("\n" * lines + f"srun torchrun {AGENT} {JOB}")
        job = read_job(f"megatron:{path}", gpus=8, tflops=400, note=lambda _: None)
        assert (job.started.name, job.started.line) == ("torchrun-static", lines + 1)
        digests.add(job.sha256)
    assert len(digests) == 1


def test_every_launcher_that_is_read_can_be_predicted():
    """Names are those of `placer score --list`, but for those that promise no order."""
    assert {*STARTERS} - {*LAUNCHERS} == {"ray", "kubernetes"}
    for name in ("ray", "kubernetes"):
        with pytest.raises(placer.InputError, match=f"{name}: "):
            launcher_called(name)


@pytest.mark.parametrize(
    *table("sources/starter.yaml", "a_launcher_is_whole_or_refused")
)
def test_a_launcher_is_whole_or_refused(tmp_path, section, key):
    """A name that is known, a script and a line."""
    path = tmp_path / "job.yaml"
    path.write_text(
        "{format: placer/job, version: 1, name: j, parallelism: {dp: 2}, "
        f"weights: {{dp: 1}}, launcher: {section}}}"
    )
    told = "\n".join(map(str, problems_of(read_job, str(path))))
    assert key.split(".")[0] in told
    assert "launcher" in told
