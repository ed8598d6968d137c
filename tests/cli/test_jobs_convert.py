"""``placer job`` and ``-j FORMAT:FILE``: from a preset or a script to a launch."""

import re

import pytest

from placer.documents.presets import preset_names
from placer.job.read import read_job
from tests.commands import data, refusal, run

SCRIPT = """GPUS=8
torchrun --nproc_per_node $GPUS --nnodes 2 pretrain_gpt.py \\
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 \\
  --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --vocab-size 51200 \\
  --micro-batch-size 1 --global-batch-size 64 --seq-length 2048 --bf16 --lr 1e-4 \\
  --num-virtual-stages-per-pipeline-rank 2 --recompute-granularity full
"""
MACHINE = ("-t", "rack:2 node:2 gpu:8")


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "pretrain.sh"
    path.write_text(SCRIPT)
    return f"megatron:{path}"


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_convert_place_emit_gives_back_the_sizes(script, tmp_path, suffix):
    """The flags of the script are those that the plan's launch has."""
    job, plan = str(tmp_path / f"job.{suffix}"), str(tmp_path / "plan.json")
    run("jobs", "convert", script, "--tflops", "400", "-o", job, "-q")
    run("place", *MACHINE, "-j", job, "-o", plan, "-q")
    emitted = run("emit", plan, "megatron").stdout
    for flag in re.findall(r"--[a-z-]*parallel-size \d+", SCRIPT):
        assert f"  {flag}\n" in emitted
    assert "--num-virtual-stages-per-pipeline-rank 2" in emitted
    assert "Data parallel size: 2" in emitted


def test_the_report_has_a_line_for_each_key(script):
    """What was read, derived, left out and ignored goes to stderr.

    With --strict what is not modelled is an error, with the place.
    """
    found = run("jobs", "convert", script, "--tflops", "400")
    assert "\nparallelism:\n  tp: 4 " in found.stdout
    assert "# pretrain.sh:3" in found.stdout
    told = found.stderr
    assert "parallelism.tp: 4: pretrain.sh:3\n" in told
    assert "parallelism.dp: 2: derived: 16 GPUs / (tp 4 x pp 2)\n" in told
    assert "not modelled: recompute full" in told
    assert "ignored: --lr: pretrain.sh:5\n" in told
    assert "derived" in told.splitlines()[-1]
    assert run("jobs", "convert", script, "--tflops", "400", "-q").stderr == ""
    told = refusal("jobs", "convert", script, "--tflops", "400", "--strict")
    assert "pretrain.sh:6:" in told
    assert "not modelled: recompute full" in told


def test_options_fill_gaps_and_settings_change_variables(script):
    """--gpus, --set of a variable, and --set of a key of the job."""
    given = ("jobs", "show", script, "--tflops", "400", "-q")
    for options, dp in (((), 2), (("--gpus", "64"), 8), (("--set", "GPUS=4"), 1)):
        assert data(*given, *options)["parallelism"]["dp"] == dp
    assert data(*given, "--set", "job.sequence=4096")["sequence"] == 4096


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("", ("--set", "NODES=2"), "no source has a variable NODES"),
        ("", ("--select", "3"), 'no program "3" of the 1'),
        ("", ("--gpus", "12"), "--gpus: tp 4 x pp 2 = 8 does not divide the 12 GPUs"),
        ("quickstart", ("--set", "job.parallelism.dq=8"), 'unknown key "dq"'),
        ("quickstart", ("--set", "job.name.first=x"), "name is no mapping in the job"),
        (
            "quickstart",
            ("--set", "job.parallelism.tp=x"),
            "--set job.parallelism.tp: parallelism.tp: expected",
        ),
    ],
)
def test_options_that_do_not_fit(script, source, options, words):
    """Each is refused by name."""
    given = (source,) if source else (script, "--tflops", "400")
    assert words in refusal("jobs", "show", *given, *options)


def test_keys_of_a_complete_job_can_be_set(tmp_path):
    """Of a preset and of a file; what had its default follows, digests differ."""
    path = str(tmp_path / "job.yaml")
    run("jobs", "convert", "quickstart", "-o", path, "--name", "mine")
    for job in ("quickstart", path):
        plain = data("jobs", "show", job)
        given = ("--set", "job.parallelism.dp=8", "--set", "job.overlap.tp=true")
        found = data("jobs", "show", job, *given)
        assert found["parallelism"] == plain["parallelism"] | {"dp": 8}
        assert found["overlap"]["tp"] is True
        assert found["sources"][-2:] == [
            "changed: parallelism.dp=8",
            "changed: overlap.tp=True",
        ]
    assert plain["name"] == "mine"
    time = ("--set", "job.compute.micro_batch_time=90ms")  # in place of the rate
    assert data("jobs", "show", "quickstart", *time)["compute"] == {
        "micro_batch_time": 0.09
    }
    placed = data("place", "-t", "nvl72", "-j", "quickstart", *given)
    assert placed["world_size"] == 64


def test_formats_are_listed():
    """Both forms list every format, and an unknown one is met with its neighbour."""
    rows = data("jobs", "formats")
    names = [line.split()[0] for line in run("jobs", "formats").stdout.splitlines()]
    assert [row["name"] for row in rows] == names
    assert {"megatron", "mlperf", "swift", "hf"} <= set(names)
    told = refusal("jobs", "show", "megatrn:x.sh")
    assert 'did you mean "megatron"?' in told


def test_the_hosts_say_how_many_gpus_a_script_lacks(tmp_path):
    """A script of one node is placed on the hosts that --hosts gives."""
    path = tmp_path / "pretrain.sh"
    path.write_text(SCRIPT.replace("--nnodes 2", "--nnodes $NNODES"))
    given = ("-j", f"megatron:{path}", "--tflops", "400", "-v")
    found = run("place", *MACHINE, *given, "--hosts", "r1-n1,r2-n1")
    assert ": 16 ranks\n" in found.stdout
    assert "16 GPUs, as the hosts have" in found.stderr
    told = refusal("place", *MACHINE, *given)
    assert f"--gpus N, a multiple of 8; {MACHINE[1]} has 32\n" in told


JOBS = preset_names("jobs")


def test_a_workload_shows_its_roles():
    """Who takes part and what they send; axes and order are of no workload."""
    text = run("jobs", "show", "rl-weights-qwen3").stdout
    assert "role rollout  4 x 8 ranks, tp 8\n" in text
    assert "transfer 1    trainer to rollout, 235.1 GB a cycle, reshard\n" in text
    assert "  axes" not in text


@pytest.mark.parametrize("name", JOBS)
def test_text_fits_a_terminal(name):
    """The text opens with the job's name and is at most 80 columns wide."""
    lines = run("jobs", "show", name).stdout.splitlines()
    assert lines[0] == read_job(name).name
    assert max(map(len, lines)) <= 80
