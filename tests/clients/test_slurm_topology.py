"""What is a ``topology.conf`` to slurmctld is one to us, and the same one."""

import re
import subprocess
import threading
from itertools import count

import pytest

from placer.base.errors import InputError
from placer.formats.machines.machine import read_topology
from placer.formats.machines.registry import read
from tests.clients.slurm_cluster import TOPOLOGY, version
from tests.readers import cases
from tests.texts import table

TREE = cases.TREE  # spine over s1 and s2, with comments, quotes and blanks
_, REFUSED = table("readers/slurm.yaml", "refused")
_NUMBERS = count()
_ENDS = re.compile("fatal: |Running as primary controller")


def fatal(slurm, topology):
    """Why a second slurmctld would not start with this file; empty when it does."""
    folder = slurm.folder / f"controller-{next(_NUMBERS)}"
    (folder / "state").mkdir(parents=True)
    conf = (slurm.folder / "slurm.conf").read_text()
    for key, value in (
        ("SlurmctldPort", slurm.port),
        ("SlurmctldPidFile", folder / "pid"),
        ("StateSaveLocation", folder / "state"),
    ):
        conf = re.sub(f"^{key}=.*", f"{key}={value}", conf, flags=re.MULTILINE)
    (folder / "slurm.conf").write_text(conf)
    (folder / "gres.conf").write_text((slurm.folder / "gres.conf").read_text())
    (folder / "topology.conf").write_text(topology)
    process = subprocess.Popen(
        ["slurmctld", "-D", "-c"],
        env=slurm.environ | {"SLURM_CONF": str(folder / "slurm.conf")},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        watchdog = threading.Timer(30, process.kill)
        watchdog.start()
        end = next(filter(_ENDS.search, process.stderr or ()), "it said nothing")
        process.kill()
        watchdog.cancel()
    return end if "fatal: " in end else ""


@pytest.mark.parametrize(
    "text",
    [
        TREE,
        TOPOLOGY,
        # A switch that is named before its line, uneven levels, several roots.
        "SwitchName=core Switches=mid,l3\nSwitchName=mid Switches=l[1-2]\n"
        "SwitchName=l1 Nodes=n1\nSwitchName=l2 Nodes=n2\nSwitchName=l3 Nodes=n3\n"
        "SwitchName=alone Nodes=n4\n",
        TREE + "SwitchName=s3 Nodes=n1\n",  # on two leaves
        TREE + "SwitchName=s3 Nodes=elsewhere[1-2]\n",
        TREE + "SWITCHNAME=s3 \\\n  nodes = n9 LinkSpeed=infinite # text\n",
        TREE + "SwitchName=s3\tNodes=n9,n9\n",
        TREE + f"SwitchName={'s' * 64} Nodes=n9\n",
        # Below two others, as below two spines.
        TREE + "SwitchName=x Switches=s1\nSwitchName=y Switches=s1\n",
    ],
)
def test_both_accept(slurm, text):
    """Warnings of slurmctld are no errors here either."""
    assert fatal(slurm, text) == ""
    assert read("slurm", text, "topology.conf").nodes


@pytest.mark.parametrize(
    ("line", "ours", "slurms"), [row for row in REFUSED if row[2] is not None]
)
def test_what_is_refused(slurm, line, ours, slurms):
    """What keeps slurmctld from starting is an error, as is what loses nodes."""
    if version() >= (24, 11) and line.endswith(("]x", "[9-")):
        pytest.skip("this Slurm takes text after a bracket, and no open one")
    said = fatal(slurm, f"{TREE}{line}\n")
    assert slurms in said if slurms else not said
    with pytest.raises(InputError, match=ours):
        read("slurm", f"{TREE}{line}\n", "topology.conf")


def test_captured_tree(slurm, samples):
    """A file that topograph wrote: 96 nodes in a tree of three levels."""
    text = (samples / "slurm" / "expected.slinky-oci-sim-tree.conf").read_text()
    assert fatal(slurm, text) == ""
    assert len(read("slurm", text, "topology.conf").nodes) == 96


def test_scontrol_shows_the_same_machine(slurm, tmp_path):
    """`scontrol show topology` of the running cluster is its topology.conf."""

    def machine(name, text):
        (tmp_path / name).write_text(text)
        return read_topology([str(tmp_path / name)], hardware="dgx-h100-4x8")

    given = machine("topology.conf", TOPOLOGY)
    shown = machine("shown.txt", slurm.output("scontrol", "show", "topology"))
    assert shown.num_nodes == 16
    assert [tier.name for tier in shown.tiers] == ["node", "leaf", "spine"]
    for tier, names in enumerate(given.domain_names):
        assert domains(shown, tier) == domains(given, tier)
        assert shown.domain_names[tier] == names


def domains(machine, tier):
    """The domain of every node, by name."""
    names = machine.domain_names[tier]
    of_node = machine.domain_of_node[tier].tolist()
    return {node: names[k] for node, k in zip(machine.node_names, of_node, strict=True)}
