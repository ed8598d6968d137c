"""The emitted scripts, run under a stub ``torchrun`` or command."""

import pytest

from placer.emit import emit
from tests.emit.readback import plan_of, run_script, write_script
from tests.injob.stand_ins import program
from tests.texts import cases


def seats_of(text):
    """Seats that are written as ``host:GPU``."""
    words = (word.split(":") for word in text.split())
    return [(host, int(gpu)) for host, gpu in words]


@pytest.mark.parametrize("case", cases("emit/cases"))
def test_what_a_script_does(tmp_path, case):
    """It starts its command with what the case tells, or stops with an error."""
    plan = plan_of(seats_of(case["seats"]))
    script = write_script(tmp_path, emit(plan, case["script"]))
    program(tmp_path, "uname", "echo n2.cluster")
    words = case.get("words", ["probe"])
    run = run_script(script, *words, **case["env"])
    assert (run.status == 1) == ("error" in case)
    assert case.get("error", "") in run.error
    assert not (tmp_path / "pwned").exists()
    if "error" in case:
        assert run.environment == {}
        return
    passed = words if case["script"] == "torchrun" else words[1:]
    assert run.arguments == passed
    assert case["told"].items() <= run.environment.items()
    assert not run.environment.keys() & {*case.get("gone", ())}


def test_host_without_address_is_named(tmp_path):
    """A batch script of agents ends at once where the host of rank 0 has no address."""
    plan = plan_of(seats_of("n3:1 n3:0 n1:0 n1:1"))
    script = write_script(tmp_path, emit(plan, "sbatch-torchrun"))
    program(tmp_path, "getent", 'test "$1 $2" = "ahosts head"')
    program(tmp_path, "srun", 'shift 2; exec "$@"')
    task = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "2"}
    job = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n3", **task}
    run = run_script(script, "train.py", **job)
    assert run.status == 1
    told = "placer: n3 finds no address of n3, the host of rank 0: set PLACER_"
    assert told in run.error
    run = run_script(script, "train.py", PLACER_MASTER_ADDR="head", **job)
    assert run.status == 0, run.error
