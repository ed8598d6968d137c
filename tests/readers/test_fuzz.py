"""Mutated sources: whatever a file holds, a reader gives findings or an InputError."""

import copy
import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from placer.base.errors import InputError
from placer.documents.recognise import Text, recognise
from placer.formats.machines.combine import combine
from placer.formats.machines.joined import settled
from placer.formats.machines.machine import read_topology
from placer.formats.machines.registry import FORMATS, read
from placer.formats.machines.sources import read_all
from tests.readers import cases

TOKENS = (
    "n[1-9]", "n[1-99999]", "[", "]", "{", "}", '"', ",", ":", "=", "\\", "#", "\n",
    "\t", "\x00", "\x1b[4m", "\u202e", "\ud800", "null", "true", "-1", "1e400",
    "99999999999999999999999", "NaN", "&a", "*a", "!!x", "<<", "Nodes=ALL",
    "Include /dev/zero", "NV18\t", "GPU0\tGPU1\t", "<pci class='0x0302'>", "<gpu>",
    "<xgmi target='0000:10:00.0'/>", "XGMI", "===== Link Type between two GPUs =====\n",
    "<!DOCTYPE a>", "&lt;", "    Fabric\n", '[1]\t"S-0"[1]\n', ",0,inf,", "SwitchName=",
    "[[[[[[[[" * 40, "x" * 300,
)  # fmt: skip


NUMBERS = ("0", "1", "3", "7", "64", str(10**12))


def mutated(text, chance, tokens=TOKENS):
    """The text after a few random edits."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.choice((1, 2, 5, 40)))
        kind = chance.randrange(7)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + chance.choice(tokens) + text[at:]
        elif kind == 2:
            text = text[:at] + chance.choice(tokens) + text[end:]
        elif kind == 3:
            text = text[:end] + text[at:]
        elif kind == 4:
            text = text[:at]
        elif kind == 5 and (numbers := list(re.finditer(r"\d+", text))):
            number = chance.choice(numbers)
            other = chance.choice(NUMBERS)
            text = text[: number.start()] + other + text[number.end() :]
        else:
            lines = text.split("\n")
            i, j = (chance.randrange(len(lines)) for _ in range(2))
            lines[i], lines[j] = lines[j], lines[i]
            text = "\n".join(lines)
    return text


VALUES = (
    None, True, 0, -1, 2**40, 1e400, "", "x", "x" * 300, "n[1-99999]", [], {}, [[]],
)  # fmt: skip


def mutated_values(text, chance):
    """A JSON text with a few of its values replaced, dropped, doubled or swapped.

    Of lines of JSON it is the first.
    """
    first, _, rest = text.partition("\n")
    if rest.startswith("{"):
        return f"{mutated_values(first, chance)}\n{rest}"
    data = json.loads(text)
    for _ in range(chance.randint(1, 4)):
        holders = [data]
        for holder in holders:
            values = holder.values() if isinstance(holder, dict) else holder
            holders += [value for value in values if isinstance(value, dict | list)]
        holder = chance.choice(holders)
        if not holder:
            continue
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        a, b = chance.choice(keys), chance.choice(keys)
        kind = chance.randrange(4)
        if kind == 0:
            holder[a] = copy.deepcopy(chance.choice(VALUES))
        elif kind == 1:
            del holder[a]
        elif kind == 2:
            holder[a] = json.loads(json.dumps(holder[b]))
        elif isinstance(holder, dict):
            holder[chance.choice(TOKENS)] = holder.pop(a)
        else:
            holder.append(holder[a])
    return json.dumps(data, indent=1)


def outcome(call, *arguments, **options):
    """The problems of a call, none when it succeeds; any other exception goes on."""
    try:
        call(*arguments, **options)
    except InputError as error:
        return error.problems
    return None


def read_and_combine(name, text):
    found = [read(name, text, "source")]
    if name in cases.NO_NODES or (name in cases.ONE_NODE and found[0].join):
        found.append(read("hosts", cases.HOSTS, "hosts"))
    found = settled(found)
    for findings in found:
        list(findings.remarks())
    combine(found, multi_node_nvlink=bool(len(text) % 2))


def read_with_order(text, order):
    texts = [Text("topologies", order, "order"), Text("kubernetes", text, "nodes")]
    combine(read_all(texts), multi_node_nvlink=True)


def check(problems):
    if problems is not None:
        assert 1 <= len(problems) <= 21
        assert all(problem.message for problem in problems)


@pytest.mark.parametrize(("name", "text"), [*cases.TEXTS.items(), *cases.MORE_TEXTS])
def test_mutated_texts(name, text):
    """Mutants of every format's small files: a result or an error."""
    chance = random.Random(text)
    for _ in range(100):
        check(outcome(read_and_combine, name, mutated(text, chance)))


JSON = [name for name, text in cases.TEXTS.items() if text[:1] in "[{"]


@pytest.mark.parametrize("name", JSON)
def test_mutated_values(name):
    """Well-formed JSON with other values than it should have: a result or an error."""
    chance = random.Random(f"{name} values")
    for _ in range(80):
        text = mutated_values(cases.TEXTS[name], chance)
        check(outcome(read_and_combine, name, text))


@pytest.mark.parametrize("text", [cases.KUBERNETES, cases.LABELS])
def test_mutated_orders_of_labels(text):
    """Objects of any order beside nodes: a result or an error."""
    chance = random.Random(text)
    for _ in range(80):
        order = mutated(cases.ORDER, chance)
        check(outcome(read_with_order, mutated_values(text, chance), order))


@pytest.mark.parametrize("name", cases.TEXTS)
def test_mutated_files(name, tmp_path):
    """The whole way in, from a file without a prefix, ends the same ways."""
    chance = random.Random(f"{name} as a file")
    path = tmp_path / "source"
    for _ in range(20):
        text = mutated(cases.TEXTS[name], chance)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        options = {"hardware": cases.GB200, "note": lambda _: None}
        check(outcome(read_topology, path, **options))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("slurm", "SwitchName=s{} Nodes=n{}-[1-99999]\n"),
        ("slurm", "BlockName=b{} Nodes=n{}-[1-99999]\n"),
        ("slurm", "SwitchName=s{} Switches=n{}-[1-99999]\n"),
        ("scontrol", "SwitchName=s{} Level=0 Nodes=n{}-[1-99999]\n"),
        ("scontrol", "BlockName=b{} BlockIndex={} Nodes=n[1-99999]\n"),
    ],
)
def test_many_host_lists(name, line):
    """A hundred lists of the longest kind are refused before they are all expanded."""
    text = "".join(line.format(i, i) for i in range(100))
    problem = outcome(read, name, text, "source")[0]
    assert "more than 262144 hosts in all" in problem.message


def test_list_of_millions():
    """A list that no machine needs is refused as a whole, not item by item."""
    (problem,) = outcome(read, "gcp", "[" + "0," * 300_000 + "0]", "source")
    assert "the most is 262144" in problem.message


def test_many_includes(tmp_path):
    """Files that include others many times over are refused after a few."""
    for name, other in (("a", "b"), ("b", "c"), ("c", "d")):
        (tmp_path / name).write_text(f"Include {other}\n" * 50)
    (tmp_path / "d").write_text("SwitchName=s Nodes=n\n")
    path = tmp_path / "a"
    problems = outcome(read, "slurm", path.read_text(), str(path))
    assert any("more than 16 includes" in problem.message for problem in problems)


LONG = 300_000
LONG_LINES = {
    "fabric": f"    Fabric\n        State {' ' * LONG}: x{' ' * LONG}y\n",
    "topo-m": "\tGPU0\tGPU1\nGPU0\tX" + "\tNV18" * LONG + "\n",
    "rocm-smi": "=" * LONG + " Link Type between two GPUs " + "=" * LONG + " x\n",
    "nccl": "<system>" + "<cpu " + "a" * LONG + "='1'>" + "<!--" + "-" * LONG,
    "ibnetdiscover": 'Switch 1 "S-1" # "' + "a" * LONG + "\n[1]" + " " * LONG + "x\n",
    "bandwidth": "GB/s," + "a:" * LONG + "x,b\n",
    "hosts": "n[" + "1," * LONG + "\n",
}


@pytest.mark.parametrize("name", LONG_LINES)
def test_long_lines(name):
    """Lines of 300,000 repeats are refused, in time that grows with their length."""
    check(outcome(read_and_combine, name, LONG_LINES[name]))
    for prefix in ("", "n1: "):
        check(outcome(read_and_combine, name, prefix + LONG_LINES[name]))
        recognise(prefix + LONG_LINES[name], FORMATS.values())


# Not ru_maxrss: that begins with the memory of the process that started this one.
LIMITED = """
import json, resource, sys
from tests.readers.test_fuzz import check, outcome, read_and_combine
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
for line in sys.stdin:
    check(outcome(read_and_combine, *json.loads(line)))
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.slow
def test_memory_and_time():
    """The largest mutants take less than 256 MB, and a second of processor each.

    Read one after the other in a process of its own: its peak is above that of each.
    """
    texts = [*LONG_LINES.items(), ("topo-m", "a\n" * 2_000_000)]
    for name, text in cases.TEXTS.items():
        chance = random.Random(name)
        mutants = (mutated(text, chance) for _ in range(200))
        texts += [(name, mutant) for mutant in sorted(mutants, key=len)[-3:]]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(len(texts))],
        cwd=Path(__file__).parents[2],
        input="".join(json.dumps(text) + "\n" for text in texts),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) * 1024 < 256e6


def test_many_deep_devices():
    """A thousand devices below fifty bridges are placed in time that adds up."""
    devices = "<pci class='0x0302'/><pci class='0x0207'/>" * 512
    text = f"<system>{'<pci>' * 50}{devices}{'</pci>' * 50}</system>"
    start = time.process_time()
    assert "nearest to a GPU: 512 on 512 GPUs" in read("nccl", text, "s").notes[0]
    assert time.process_time() - start < 1
