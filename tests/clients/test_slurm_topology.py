"""Topologies and host lists mean to us what they mean to Slurm."""

import os
import re
import subprocess
import threading
from itertools import count
from random import Random

import pytest

from placer.base.errors import InputError
from placer.base.hostlist import MAX_NAMES, compress, expand
from placer.formats.machines.machine import read_topology
from placer.formats.machines.registry import read
from tests.clients import needs
from tests.clients.slurm_cluster import TOPOLOGY, version
from tests.readers import cases
from tests.test_hostlist import REFUSED
from tests.texts import table

TREE = cases.TREE  # spine over s1 and s2, with comments, quotes and blanks
_, REFUSED_LINES = table("readers/slurm.yaml", "refused")
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
    ("line", "ours", "slurms"), [row for row in REFUSED_LINES if row[2] is not None]
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


# Lists that share a call stand apart by it; as order is kept, so do the answers.
MARK = "mark-"
TOGETHER = 25
MOST_IN_ONE_RANGE = 65536
# What Slurm misreads: names are lost, or hold a "-" in front or another digit.
TAKEN = ("n[1-2", "-[1-2]")
NEWER_TAKES = ("n[1-3]x", "n[1-2]*2", "n[1[2]]")


@pytest.fixture(scope="module")
def show(tmp_path_factory):
    """``scontrol show WHAT LIST``, which needs a configuration but no cluster."""
    conf = tmp_path_factory.mktemp("scontrol") / "slurm.conf"
    conf.write_text("ClusterName=none\nSlurmctldHost=localhost\n")
    program = needs.program("scontrol", "slurm-client")

    def run(what, text):
        return subprocess.run(
            [program, "show", what, text],
            env={"PATH": os.defpath, "SLURM_CONF": str(conf)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def test_expands_1000_random_lists_as_scontrol_does(show):
    """Brackets, widths, repeats, blanks: the same names in the same order."""
    random = Random(1)
    texts = [random_list(random) for _ in range(1000)]
    for start in range(0, len(texts), TOGETHER):
        some = texts[start : start + TOGETHER]
        done = show("hostnames", f",{MARK},".join(some))
        assert done.stderr == ""
        found = " ".join(done.stdout.split()).split(MARK)
        assert [names.split() for names in found] == [expand(text) for text in some]


def test_folds_1000_random_lists_as_scontrol_does(show):
    """Runs, widths, repeats, order: the same text, name by name."""
    random = Random(2)
    lists = [random_names(random) for _ in range(1000)]
    for start in range(0, len(lists), TOGETHER):
        some = lists[start : start + TOGETHER]
        done = show("hostlist", f",{MARK},".join(",".join(names) for names in some))
        assert done.stderr == ""
        found = done.stdout.strip().split(f",{MARK},")
        assert found == [compress(names) for names in some]


@pytest.mark.parametrize(
    "text",
    ["n[1-2 ]", "n[a-b]", "n[-1]", f"n[1-{MAX_NAMES + 1}]"]
    + [text for text, *_ in REFUSED if "[" in text and text not in TAKEN],
)
def test_refuses_what_scontrol_refuses(show, text):
    """A list that is none to Slurm is none to us."""
    if text in NEWER_TAKES and version() >= (24, 11):
        pytest.skip("this Slurm takes text after a bracket, though it writes none")
    assert "Invalid hostlist" in show("hostnames", text).stderr
    with pytest.raises(ValueError, match=r"position|hosts in one list"):
        expand(text)


def test_a_range_longer_than_slurms(show):
    """Slurm takes 65,536 hosts in a range; ours only counts the whole list."""
    most, more = (f"n[1-{MOST_IN_ONE_RANGE + k}]" for k in (0, 1))
    assert show("hostnames", most).stdout.split() == expand(most)
    assert "Too many hosts in range" in show("hostnames", more).stderr
    assert len(expand(more)) == MOST_IN_ONE_RANGE + 1


def random_list(random):
    """A host list as people and programs write them, oddities included."""
    items = [random_item(random) for _ in range(random.randint(1, 4))]
    return "".join(
        random.choice(["", "", "", " ", ","]) + item + random.choice([",", ",", ", "])
        for item in items
    ).rstrip(", ")


def random_item(random):
    item = random.choice(["n", "gpu-", "a1b", "rack2-node", "x_y", "n1.pod-", ""])
    for place in range(random.choice([0, 1, 1, 1, 2])):
        ranges = [random_range(random) for _ in range(random.randint(1, 3))]
        item += random.choice(["", "", "-r"] if place else [""])
        item += f"[{','.join(ranges)}]"
    return item if item else "plain"


def random_range(random):
    """``7``, ``007``, ``8-11``, ``01-3``, ``1-02``: a bound has a width of its own."""
    first = random.choice([0, 1, 8, 9, 98, random.randrange(2000)])
    last = first + random.choice([0, 1, 2, 3, 7])
    low, high = (f"{k:0{random.choice([1, 1, 2, 3, 4])}d}" for k in (first, last))
    return low if random.random() < 0.4 else f"{low}-{high}"


def random_names(random):
    """Names with runs up and down, of equal and mixed width, some twice."""
    names = []
    for _ in range(random.randint(1, 5)):
        prefix = random.choice(["n", "n", "gpu-1-", "a1b", "x", "rack2n"])
        width = random.choice([1, 1, 2, 3])
        first = random.choice([0, 1, 8, 9, 98, random.randrange(2000)])
        run = range(first, first + random.randint(1, 5))
        numbers = random.choice([list(run), list(run)[::-1], [first, first]])
        names += [f"{prefix}{number:0{width}d}" for number in numbers]
        names += random.choice([[], [], ["login"], [f"{prefix}{first}-ib"]])
    return names
