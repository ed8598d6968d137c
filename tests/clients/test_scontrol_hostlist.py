"""Host lists mean to us what they mean to ``scontrol``."""

import os
import subprocess
from collections.abc import Callable
from random import Random

import pytest

from placer.base.hostlist import MAX_NAMES, compress, expand
from tests.clients import needs
from tests.clients.slurm_cluster import version
from tests.test_hostlist import REFUSED

# Lists that share a call stand apart by it; as order is kept, so do the answers.
MARK = "mark-"
TOGETHER = 25
MOST_IN_ONE_RANGE = 65536
# What Slurm misreads: names are lost, or hold a "-" in front or another digit.
TAKEN = ("n[1-2", "-[1-2]")
NEWER_TAKES = ("n[1-3]x", "n[1-2]*2", "n[1[2]]")

Show = Callable[[str, str], subprocess.CompletedProcess[str]]


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
