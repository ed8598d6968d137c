"""An answer first: what no file says is assumed aloud, and the plan keeps it."""

from pathlib import Path

import pytest

from tests.commands import data, refusal, run

GIVEN = ("-t", "slurm:topology.conf", "-j", "megatron:pretrain.sh")
pytestmark = pytest.mark.usefixtures("trained")


def placed(*more):
    return data("place", *GIVEN, "--effort", "quick", "-q", *more)


def scored(*more):
    return data("score", *GIVEN, "baseline:sorted-hosts", "-q", *more)


def keys(plan):
    return [entry["key"] for entry in plan["assumed"]]


def test_one_command_and_no_option():
    """Switches and a script end in a verdict that says what it rests on."""
    found = run("place", *GIVEN)
    first = found.stdout.partition("\n\n")[0].replace("\n  ", " ")
    assert first.startswith(
        "Keep your order: nothing to win\nyour order: torchrun-static (hosts as listed)"
    )
    for words in (
        "assumed: H100 hosts (--gpu NAME)",
        "396 TFLOP/s a GPU, 40 % of the bf16 peak of H100 (--tflops RATE)",
        "model.vocab 128256 (--set job.model.vocab=VALUE)",
        "assumed: uplinks not oversubscribed; at 2:1",
        "(--oversubscription spine=N)",
    ):
        assert words in first


def test_what_is_said_is_not_assumed():
    """Each option takes its entry out of the list; all of them leave none."""
    options = (
        ("hardware", "--gpu", "h100"),
        ("oversubscription", "--oversubscription", "spine=2"),
        ("model.vocab", "--set", "job.model.vocab=128000"),
        ("compute.tflops_per_gpu", "--tflops", "400"),
    )
    said = ()
    for number, (_, *option) in enumerate(options):
        assert keys(scored(*said)) == [key for key, *_ in options[number:]]
        said += (*option,)
    every = placed(*said)
    assert "assumed" not in every
    assert "what_if" not in every


def test_the_plan_keeps_what_was_assumed():
    """Other commands take the plan as it is, and replacing says it again."""
    plan = placed("-o", "plan.json")
    kept = plan["inputs"]["topology"]["assumed"] + plan["inputs"]["job"]["assumed"]
    assert kept == plan["assumed"]
    run("check", "plan.json")
    run("emit", "plan.json", "slurm-hostfile")
    assert "assumed: H100 hosts" in run("score", "plan.json").stdout
    assert data("score", "plan.json")["assumed"] == plan["assumed"]
    run("diff", "plan.json", "baseline:random", code=1)
    run("check", "plan.json", *GIVEN, "-q")
    script = Path("pretrain.sh").read_text()
    Path("small.sh").write_text(script.replace("640", "624"))
    again = ("--failed", "h01,h02", "-j", "small.sh", "--set", "SLURM_NNODES=39")
    run("replace", "plan.json", *again, "-q", code=2)  # another job
    found = run("replace", "plan.json", "--failed", "h01", "--shrink", "-q").stdout
    assert "assumed: H100 hosts" in found


@pytest.mark.slow
def test_every_command_says_it():
    """Text and JSON of score, tune, allocate and sweep have what was assumed."""
    Path("small.conf").write_text(
        "SwitchName=a Nodes=h[1-2]\nSwitchName=b Nodes=h[3-4]\n"
        "SwitchName=s Switches=a,b\n"
    )
    script = Path("pretrain.sh").read_text()
    Path("small.sh").write_text(script.replace("nodes=40", "nodes=4"))
    given = ("-t", "small.conf", "-j", "small.sh", "-q")
    for command in (
        ("score", "--baseline", "sorted-hosts"),
        ("tune", "--tp", "4", "--pp", "4", "--vp", "1", "--micro-batch", "1"),
        ("allocate",),
        ("sweep", "--dp", "2"),
    ):
        text = run(*command, *given).stdout
        assert "assumed: H100 hosts (--gpu NAME)" in text, command
        assert "hardware" in keys(data(*command, *given)), command


def test_what_decides_is_asked_for_at_once():
    """GPUs, sequence and samples are never assumed; nothing else is asked for."""
    lines = Path("pretrain.sh").read_text().splitlines()
    left = [x for x in lines if not any(w in x for w in ("SBATCH", "seq-", "batch"))]
    Path("open.sh").write_text("\n".join(left) + "\n")
    told = refusal("place", "-t", "topology.conf", "-j", "megatron:open.sh")
    asked = {line.split(": ")[1] for line in told.splitlines() if "open.sh:" in line}
    assert asked == {"parallelism.dp", "sequence", "micro_batch", "micro_batches"}
