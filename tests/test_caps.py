"""Small files that mean a lot: refused by their sum, quickly and in little memory."""

from resource import RUSAGE_SELF, getrusage
from time import process_time

import pytest

from placer.base.hostlist import HostLists
from tests.commands import run
from tests.texts import file_text

SECONDS, KIBIBYTES = 4, 500 << 10  # of processor, so twice what a quiet machine takes
LISTS = [f"n{i}-[1-99999]" for i in range(60)]
JOB = {"parallelism": {"tp": 4, "dp": 1 << 18}, "weights": {"tp": 1}}
TIERS = [
    {"name": "node", "size": 1, "bandwidth": 1e9},
    {"name": "cluster", "bandwidth": 1e9},
]
MACHINE = {"tiers": TIERS, "nodes": [{"names": "n[1-9]"}]}
GROUP = {"collective": "all_reduce", "bytes": 1, "ranks": "all"}
PIN = {"ranks": "0-1048575", "nodes": "a"}

JOBS = {
    "avoid": ({"rules": {"avoid": LISTS}}, "more than 131072 hosts"),
    "pins": ({"rules": {"pin": [PIN] * 50}}, "more than 1048576 ranks in all pins"),
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
    "nodes": ({"nodes": [{"names": text} for text in LISTS]}, "more than 1048576"),
    "tiers": ({"tiers": TIERS * 900}, "1800 tiers, the most is 32"),
    "values": ({"sources": ["a"] * 300_000}, "more than 250000 values"),
}
PREDICT = (
    *("predict", "-t", "nvl72", "-j", "quickstart"),
    *("--launcher", "slurm", "--hosts"),
)
HOSTS = {
    "lists": ("\n".join(LISTS * 2), "more than 1048576 hosts"),
    "items": ("n[" + "1," * 300_000 + "1]", "more than 100000 hosts in one list"),
    "ranges": ("n[1-99999][1-99999][1-99999]", "more than 100000 hosts in one list"),
}


CASES = {
    **{
        ("jobs", "show", name): (file_text("job", **JOB | more), says)
        for name, (more, says) in JOBS.items()
    },
    **{
        ("topo", "validate", name): (file_text("topology", **MACHINE | more), says)
        for name, (more, says) in MACHINES.items()
    },
    **{(*PREDICT, name): case for name, case in HOSTS.items()},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[-1]}")
def test_refused_by_the_sum(case, tmp_path):
    """Hosts, ranks, values and problems are counted over the whole file."""
    content, says = CASES[case]
    path = tmp_path / "case.txt"
    path.write_text(content)
    start, before = process_time(), getrusage(RUSAGE_SELF).ru_maxrss
    done = run(*case[:-1], f"@{path}" if case[:-1] == PREDICT else path, code=2)
    assert says in done.output
    assert process_time() - start < SECONDS
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < KIBIBYTES


def test_sum_of_host_lists():
    """As many names as are allowed, and not one more, whatever comes after."""
    lists = HostLists(5)
    assert lists.expand("n[1-3]") == ["n1", "n2", "n3"]
    assert lists.expand("n[1-2]") == ["n1", "n2"]
    for _ in range(2):
        with pytest.raises(ValueError, match="more than 5 hosts in all"):
            lists.expand("n1")
