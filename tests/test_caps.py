"""Small files that mean a lot: refused by their sum, quickly and in little memory."""

import json
import os
import subprocess
import sys
from pathlib import Path
from time import process_time

import pytest
from click.testing import CliRunner

from placer.base.hostlist import HostLists
from placer.cli.main import main as program

ROOT = Path(__file__).resolve().parents[1]
SECONDS, BYTES = 4, 500 << 20  # of processor, so twice what a quiet machine takes
LISTS = [f"n{i}-[1-99999]" for i in range(60)]
JOB = {
    "format": "placer/job",
    "version": 1,
    "name": "j",
    "parallelism": {"tp": 4, "dp": 1 << 18},
    "weights": {"tp": 1},
}
MACHINE = {
    "format": "placer/topology",
    "version": 1,
    "name": "m",
    "tiers": [{"name": n, "bandwidth": 1e9} for n in ("node", "cluster")],
    "nodes": [{"names": "n[1-9]"}],
}
MACHINE["tiers"][0]["size"] = 1
GROUP = {"collective": "all_reduce", "bytes": 1, "ranks": "all"}
PIN = {"ranks": "0-1048575", "nodes": "a"}

JOBS = {
    "avoid": ({"rules": {"avoid": LISTS}}, "more than 131072 hosts"),
    "pins": ({"rules": {"pin": [PIN] * 50}}, "more than 1048576 ranks in all pins"),
    "pinned hosts": (
        {"rules": {"pin": [{"ranks": "0", "nodes": text} for text in LISTS]}},
        "more than 131072 hosts",
    ),
    "pins of no job": (
        {"parallelism": {"tp": "x"}, "rules": {"pin": [PIN] * 50}},
        "parallelism.tp: expected an integer",
    ),
    "groups": (
        {"groups": [GROUP | {"name": f"g{i}"} for i in range(50)]},
        "more than 1048576 members",
    ),
    "keys": (dict.fromkeys(map(str, range(9_000)), 1), 'unknown key "0"'),
}
MACHINES = {
    "unavailable": ({"unavailable": dict.fromkeys(LISTS, "x")}, "no node is called"),
    "twice": ({"nodes": [{"names": "n[1-99999]"}] * 60}, "is listed twice"),
    "nodes": ({"nodes": [{"names": text} for text in LISTS]}, "more than 1048576"),
    "tiers": ({"tiers": MACHINE["tiers"] * 900}, "1800 tiers, the most is 32"),
    "values": ({"sources": ["a"] * 300_000}, "more than 250000 values"),
}
PREDICT = (
    *("predict", "-t", "nvl72", "-j", "quickstart"),
    *("--launcher", "slurm", "--hosts"),
)
HOSTS = {
    "lists": ("\n".join(LISTS * 2), "more than 1048576 hosts"),
    "items": ("n[" + "1," * 300_000 + "1]", "more than 100000 hosts in one list"),
    "brackets": ("n" + "[1-9]" * 300_000, "more than 253 characters"),
    "ranges": ("n[1-99999][1-99999][1-99999]", "more than 100000 hosts in one list"),
}


CASES = {
    **{("jobs", "show", n): (JOB | more, says) for n, (more, says) in JOBS.items()},
    **{
        ("topo", "validate", n): (MACHINE | more, says)
        for n, (more, says) in MACHINES.items()
    },
    **{(*PREDICT, name): case for name, case in HOSTS.items()},
}


def content(case):
    """The text of a case's file."""
    if isinstance(case, str):
        return case
    return json.dumps(case)


def main():
    """Run all cases in turn; print seconds, exit code and output, then the memory."""
    found = {}
    for index, ((*command, name), (case, _)) in enumerate(CASES.items()):
        path = Path(f"{index}.txt")
        path.write_text(content(case))
        prefix = "@" if isinstance(case, str) else ""
        start = process_time()
        done = CliRunner().invoke(program, [*command, f"{prefix}{path}"])
        seconds = process_time() - start
        found[f"{command[0]} {name}"] = (seconds, done.exit_code, done.output[:300])
    # Not ru_maxrss: that begins with the memory of the process that started this one.
    status = Path("/proc/self/status").read_text()
    print(json.dumps([found, int(status.split("VmHWM:")[1].split()[0]) * 1024]))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "-m", "tests.test_caps"],
        cwd=tmp_path_factory.mktemp("caps"),
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[-1]}")
def test_refused_by_the_sum(case, outcomes):
    """Hosts, ranks, values and problems are counted over the whole file."""
    seconds, code, output = outcomes[0][f"{case[0]} {case[-1]}"]
    assert CASES[case][1] in output
    assert code == 2
    assert seconds < SECONDS


def test_sum_of_host_lists():
    """As many names as are allowed, and not one more, whatever comes after."""
    lists = HostLists(5)
    assert lists.expand("n[1-3]") == ["n1", "n2", "n3"]
    assert lists.expand("n[1-2]") == ["n1", "n2"]
    for _ in range(2):
        with pytest.raises(ValueError, match="more than 5 hosts in all"):
            lists.expand("n1")


if __name__ == "__main__":
    main()
