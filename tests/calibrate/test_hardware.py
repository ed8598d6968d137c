"""Efficiencies and latencies from nccl-tests: found again where they were put in."""

import pytest

from placer.base.errors import InputError
from placer.calibrate.hardware import fit_hardware
from placer.logs.nccl_tests import Row, Table
from placer.testing import racks
from placer.topology.read import read_topology
from tests.commands import data, refusal, run

NODE, NIC, EIGHT = 450e9, 50e9, 8
SIZES = (1024, 8192, 2**28, 2**29, 2**30)


def table(test, nodes, line, efficiency, start_s, gpus=EIGHT):
    """A test whose long messages reach a share of a line rate."""
    hosts = {rank: f"n{rank // gpus}" for rank in range(nodes * gpus)}
    rows = [
        Row(size, start_s if size < 2**20 else 1.0, 1e9, line * efficiency)
        for size in SIZES
    ]
    return Table("x.log", test, rows, hosts)


def fitted(*tables):
    """On 64 hosts of 8 in 4 racks, with NVLink in the host alone."""
    machine = racks([16] * 4, gpus=EIGHT, joined=False, nvlink=NODE, nic=NIC)
    fit = fit_hardware(machine, tables)
    return fit, {tier.name: tier for tier in fit.topology.tiers}


def test_efficiency_of_a_ring():
    """In a host the line is a GPU's NVLink; between hosts all eight NICs of one."""
    fit, tiers = fitted(
        table("all_reduce", 1, NODE, 0.8, 20e-6),
        table("all_gather", 4, EIGHT * NIC, 0.9, 50e-6),
        table("all_reduce", 32, EIGHT * NIC, 0.85, 90e-6),
    )
    found = [tiers[name].efficiency for name in ("node", "rack", "cluster")]
    assert found == pytest.approx([0.8, 0.9, 0.85])
    assert [one.error for one in fit.tiers] == pytest.approx([0, 0, 0])
    assert "0.9 of nccl-tests: all_gather on 32 GPUs" in fit.topology.sources[-2]


def test_what_beats_a_ring_tells_nothing():
    """An all-reduce in the switch is left out; an exchange counts before a ring."""
    fit, tiers = fitted(table("all_reduce", 2, EIGHT * NIC, 1.1, 50e-6))
    assert tiers["rack"].efficiency == 1.0
    assert not fit.tiers[0].readings
    _, tiers = fitted(
        table("all_reduce", 2, EIGHT * NIC, 0.95, 50e-6),
        table("alltoall", 2, NIC * 15 / 8, 0.6, 50e-6),
    )
    assert tiers["rack"].efficiency == pytest.approx(0.6)


def test_scatter_is_told():
    """Half of the messages at 0.8 and half at 0.9: off by 1/17 of the median."""
    fit, _ = fitted(
        table("alltoall", 1, NODE, 0.8, 20e-6), table("all_gather", 1, NODE, 0.9, 2e-5)
    )
    assert fit.tiers[0].after.efficiency == pytest.approx(0.85)
    assert fit.tiers[0].error == pytest.approx(0.05 / 0.85)


def test_latency_is_a_slope_over_numbers_of_nodes():
    """What starts the kernel is in every time; 7 us a hop are what is added."""
    times = {n: 30e-6 + 14 * n * 1e-6 for n in (2, 4, 8)}
    line = EIGHT * NIC
    _, tiers = fitted(*(table("all_gather", n, line, 0.9, s) for n, s in times.items()))
    # Each host more adds seven hops of 1 us inside it, and one between hosts.
    assert tiers["rack"].latency == pytest.approx(7e-6)


def test_latency_of_one_size_is_a_bound():
    """Messages of 4.2 us over 14 hops allow 0.3 us; of 140 us they allow 10."""
    _, tiers = fitted(table("all_reduce", 1, NODE, 0.8, 4.2e-6))
    assert tiers["node"].latency == pytest.approx(0.3e-6)
    fit, tiers = fitted(table("all_reduce", 1, NODE, 0.8, 140e-6))
    assert tiers["node"].latency == 1e-6
    assert "10 us" in fit.tiers[0].latency_words


def test_more_gpus_than_the_machine_are_refused():
    """A test of another machine is no measurement of this one."""
    with pytest.raises(InputError, match="520 GPUs"):
        fitted(table("all_reduce", 65, NIC, 0.9, 1e-6))


HEADER = (
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
)


def test_the_command(tmp_path):
    """The machine that is written serves as -t and as --hardware."""
    rows = "".join(
        f"{size} {size // 4} float sum -1 {size / 2e5:.2f} 200.0 350.0 0 1 1 1 0\n"
        for size in SIZES
    )
    ranks = "".join(f"# Rank {r} Pid {r} on host device {r} [0] X\n" for r in range(8))
    log, out = tmp_path / "x.log", tmp_path / "machine.json"
    log.write_text(ranks + HEADER + rows)
    words = ["calibrate", log, "-t", "azure-ndh100-v5", "-o", out]
    told = run(*words).output
    assert "node" in told
    assert "fitted" in told
    assert read_topology(out).tiers[0].efficiency == pytest.approx(350 / 450)
    assert data(*words)["tables"][0]["gpus"] == 8
    refusal(*words[:2])
    told = refusal(*words, "--test", "all_reduc")
    assert 'did you mean "all_reduce"' in told
