"""``placer verify`` as it is typed: reports, collected reports, one process."""

import json

import pytest

from placer.launch.process import RANK_VARIABLES, report_line
from placer.placement.plan_file import write_plan
from tests import commands
from tests.emit.readback import CONTIGUOUS, plan_of
from tests.launch.jobs import by_torchrun


@pytest.fixture
def plan_file(tmp_path, monkeypatch):
    for name in (*RANK_VARIABLES, "CUDA_VISIBLE_DEVICES", "SLURMD_NODENAME"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "plan.json"
    write_plan(plan_of(CONTIGUOUS), path)
    return str(path)


def run(*arguments, text="", **env):
    done = commands.run("verify", *arguments, code=None, input=text, env=env)
    return done.exit_code, done.stdout, done.stderr


def test_collected_from_the_report_of_every_process(plan_file):
    """What processes print, put together in any order, is the whole job."""
    lines = []
    for rank, (host, gpu) in enumerate(CONTIGUOUS):
        env = {
            "RANK": str(rank),
            "WORLD_SIZE": "8",
            "LOCAL_RANK": str(gpu),
            "PLACER_HOST": host,
        }
        code, out, err = run(plan_file, "--report", **env)
        assert (code, err, out.count("\n")) == (0, "", 1)
        lines.append(f"{host}: {out}")
    text = "".join(reversed(lines))
    code, out, err = run(plan_file, "--collected", "-", text=text)
    assert (code, err) == (0, "")
    assert out == "ok: 8 of 8 ranks are where the plan has them\n"
    assert run(plan_file, "--collected", "-", "-q", text=text) == (0, "", "")
    _, out, _ = run(plan_file, "--collected", "-", "--format", "json", text=text)
    found = json.loads(out)
    assert (found["ok"], found["habits"], found["expected"]) == (True, [], 8)
    assert run("-", "--collected", "-")[0] == 2  # one pipe is not both


def test_wrong_job(plan_file, tmp_path):
    """A job in another order ends with 1 and names ranks and habit, in JSON too."""
    order = ["n4", "n3", "n2", "n1"]
    reports = tmp_path / "reports.txt"
    lines = [report_line(p) for p in by_torchrun(CONTIGUOUS, order)]
    reports.write_text("\n".join([*lines, lines[0][:60]]))
    code, out, err = run(plan_file, "--collected", str(reports))
    assert code == 1
    assert out.startswith("wrong: 8 of 8 ranks are not where the plan has them\n")
    assert err == "note: reports that cannot be read: 1, in lines 9\n"
    code, out, _ = run(plan_file, "--collected", str(reports), "--format", "json")
    found = json.loads(out)
    assert (code, found["ok"], len(found["wrong"])) == (1, False, 8)
    assert found["wrong"][0] == {
        "rank": 0,
        "planned_host": "n3",
        "host": "n4",
        "planned_gpu": None,
        "gpu": None,
    }
    by_name = by_torchrun(CONTIGUOUS, ["n1", "n2", "n3", "n4"])
    reports.write_text("\n".join(map(report_line, by_name)))
    _, out, _ = run(plan_file, "--collected", str(reports))
    assert "explained by one of:\n  hosts are numbered by their names sorted" in out


def test_one_process(plan_file):
    """Inside the job a process checks itself."""
    env = {"RANK": "2", "WORLD_SIZE": "8", "LOCAL_RANK": "0"}
    right = run(plan_file, **env, PLACER_HOST="n1")
    assert right[:2] == (0, "ok: 1 of 8 ranks is where the plan has them\n")
    code, out, _ = run(plan_file, **env, PLACER_HOST="n2")
    assert (code, out.splitlines()[1]) == (1, "  rank 2: planned on n1, run on n2")
    code, out, _ = run(plan_file, **env | {"LOCAL_RANK": "1"}, PLACER_HOST="n1")
    assert (code, out.splitlines()[1]) == (1, "  rank 2 on n1: planned on GPU 0, use 1")


@pytest.mark.parametrize(
    ("arguments", "env", "message"),
    [
        ([], {}, "which rank this process has"),
        (["--report"], {}, "which rank this process has"),
        (["--report"], {"RANK": "x"}, "RANK: expected a number"),
        (["--collected", "-"], {}, "<stdin>: there is no report"),
        (["--collected", "no-such-file"], {}, "cannot be read"),
        (["--report", "--collected", "-"], {}, "not both"),
    ],
)
def test_errors(plan_file, arguments, env, message):
    """What cannot be compared ends with 2 and says why."""
    code, out, err = run(plan_file, *arguments, **env)
    assert (code, out) == (2, "")
    assert message in err


def test_report_is_light():
    """Thousands of processes report at once: no array, YAML or solver library loads."""
    script = (
        "import sys, contextlib\n"
        "sys.argv = ['placer', 'verify', 'no-plan', '--report']\n"
        "from placer.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "print(*{name.split('.')[0] for name in sys.modules})\n"
    )
    env = {"RANK": "0", "PYTHONPATH": str(commands.ROOT)}
    done = commands.python("-c", script, env=env, check=True)
    report, modules = done.stdout.splitlines()
    assert json.loads(report)["rank"] == 0
    heavy = {"numpy", "networkx", "ortools", "yaml", "torch", "jax"}
    assert heavy & set(modules.split()) == set()


def test_a_plan_of_others_is_refused(tmp_path):
    """``-t`` and ``-j`` must be what the plan was made for, unless forced."""
    inputs = ("-t", "dgx-h100-4x8", "-j", "quickstart")
    plan = str(tmp_path / "made.json")
    made = commands.run("place", *inputs, "-q", "-o", plan)
    report = {"RANK": "0", "WORLD_SIZE": "16", "LOCAL_RANK": "0", "PLACER_HOST": "n1"}
    assert run(plan, *inputs, **report)[0] == made.exit_code == 0
    other = ("-t", "node:5 gpu:8", "--gpu", "h100")
    code, out, err = run(plan, *other, **report)
    assert (code, out) == (2, "")
    assert "the plan was made for another topology" in err
    assert run(plan, *other, "--force", **report)[0] == 0
    code, out, _ = run("launcher:torchrun-static", *inputs, **report)
    assert (code, out) == (0, "ok: 1 of 16 ranks is where the plan has them\n")
