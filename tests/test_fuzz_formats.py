"""Damaged files of other programs: something is read, or an `InputError` says why."""

import json
import random
import time

import pytest

from placer.base.errors import InputError
from placer.documents.recognise import Text, recognise
from placer.formats.jobs.job import Opened, Options, open_job
from placer.formats.machines.combine import combine
from placer.formats.machines.joined import settled
from placer.formats.machines.machine import read_topology
from placer.formats.machines.registry import FORMATS, read
from placer.formats.machines.sources import read_all
from placer.logs.nccl_tests import read as read_tables
from placer.logs.steps import LOGS
from tests.commands import python
from tests.marks import slow
from tests.mutants import TOKENS, mutated, mutated_values
from tests.readers import cases
from tests.sources.reading import SCRIPT, SMALL, TEXTS, with_neighbours
from tests.texts import content, data

JUNK = (
    *"'\"`()[]{}\\\n\t<>|&;#$=*!", "$(", "${", "$((", "[[", "<<E\n", "fi\n", "é", "if ",
    "case x in ", "0", "-1", "9" * 30, "1e9", "null", ": ", "+=(", "\x01",
)  # fmt: skip
# Captured files and the format that each is read as.
SAMPLES = content("sources/damaged.yaml")
SETTINGS = {"job.sequence": "1024", "job.micro_batch": "1", "job.micro_batches": "2"}


def problems(call, *arguments, **options):
    """What a call refuses; any exception but `InputError` goes on."""
    try:
        call(*arguments, **options)
    except InputError as error:
        found = error.problems
        assert 1 <= len(found) <= 21
        assert all(problem.message for problem in found)
        return found
    return ()


def read_machine(name, text):
    found = [read(name, text, "source")]
    if name in cases.NO_NODES or (name in cases.ONE_NODE and found[0].join):
        found.append(read("hosts", cases.HOSTS, "hosts"))
    found = settled(found)
    for findings in found:
        list(findings.remarks())
    combine(found, multi_node_nvlink=bool(len(text) % 2))


def read_beside_order(text, order):
    texts = [Text("topologies", order, "order"), Text("kubernetes", text, "nodes")]
    combine(read_all(texts), multi_node_nvlink=True)


@pytest.mark.parametrize("count", [50, *slow([1000])])
@pytest.mark.parametrize(("name", "text"), [*cases.TEXTS.items(), *cases.MORE_TEXTS])
def test_damaged_machines(tmp_path, name, text, count):
    """Of every format, JSON with other values too; some as files, the whole way in."""
    chance, path = random.Random(text), tmp_path / "source"
    options = {"hardware": cases.GB200, "note": lambda _: None}
    for turn in range(count):
        by_value = text[:1] in "[{" and chance.random() < 0.4
        wrong = (mutated_values if by_value else mutated)(text, chance)
        if turn % 6 == 0:
            path.write_bytes(wrong.encode("utf-8", "surrogatepass"))
            problems(read_topology, path, **options)
        elif name == "kubernetes" and turn % 2:
            problems(read_beside_order, wrong, mutated(cases.ORDER, chance))
        else:
            problems(read_machine, name, wrong)


def read_job(specs, options):
    opened = open_job(specs, options)
    assert isinstance(opened, Opened)
    opened.job()
    assert opened.text()


def damaged_jobs(path, name, text, count):
    """Read so many mutations of a text, by itself and joined with a shape."""
    shape = path.parent / "shape-beside.json"
    shape.write_text(TEXTS["SHAPE"])
    for seed in range(count):
        chance = random.Random(f"{name}{seed}")
        changed = mutated(text, chance, chance.choice((TOKENS, JUNK)))
        path.write_text(changed, encoding="utf-8", errors="surrogatepass")
        joined = [f"{name}:{path}", f"hf:{shape}"]
        gpus, given = chance.choice((None, 8, 64, 512)), chance.choice((SETTINGS, {}))
        options = Options(
            gpus, 400.0, None, given, chance.choice((None, "deepseek_v3_16b"))
        )
        found = problems(read_job, joined[: chance.randint(1, 2)], options)
        assert all(problem.message.isprintable() for problem in found)


@pytest.mark.parametrize("count", [15, *slow([1000])])
@pytest.mark.parametrize(("name", "text"), SMALL)
def test_damaged_jobs(tmp_path, name, text, count):
    """A small text of each format, and a script with most that people write."""
    # Most ways to be wrong are those of scripts.
    damaged_jobs(tmp_path / "source", name, text, count * (1 + 3 * (text == SCRIPT)))


@pytest.mark.parametrize("count", [4, *slow([200])])
@pytest.mark.parametrize("pattern", SAMPLES)
def test_damaged_samples(samples, tmp_path, pattern, count):
    """Captured files with what stands beside them; of each kind the first, or all."""
    found = sorted((samples / "jobs").glob(pattern))
    for path in found if count > 4 else found[:1]:
        own = with_neighbours(path, tmp_path)
        damaged_jobs(own, SAMPLES[pattern], path.read_text(), count)


@pytest.mark.parametrize("count", [30, *slow([2000])])
@pytest.mark.parametrize("name", ["megatron", "mlperf", "torchtitan", "nccl-tests"])
def test_damaged_logs(name, count):
    """Steps or tables come of them."""
    text = data(f"logs/{name}.log")
    reader = LOGS[f"{name}-log"][1] if f"{name}-log" in LOGS else read_tables
    for seed in range(count):
        problems(reader, mutated(text, random.Random(seed)), "x")


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
    first, *_ = problems(read, name, text, "source")
    assert "more than 262144 hosts in all" in first.message


def test_list_of_millions():
    """A list that no machine needs is refused as a whole, not item by item."""
    (problem,) = problems(read, "gcp", "[" + "0," * 300_000 + "0]", "source")
    assert "the most is 262144" in problem.message


def test_many_includes(tmp_path):
    """Files that include others many times over are refused after a few."""
    for name, other in (("a", "b"), ("b", "c"), ("c", "d")):
        (tmp_path / name).write_text(f"Include {other}\n" * 50)
    (tmp_path / "d").write_text("SwitchName=s Nodes=n\n")
    path = tmp_path / "a"
    found = problems(read, "slurm", path.read_text(), str(path))
    assert any("more than 16 includes" in problem.message for problem in found)


LONG = 100_000
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
    """Lines of 100,000 repeats are refused, in time that grows with their length."""
    for prefix in ("", "n1: "):
        problems(read_machine, name, prefix + LONG_LINES[name])
        recognise(prefix + LONG_LINES[name], FORMATS.values())


# Not ru_maxrss: that begins with the memory of the process that started this one.
LIMITED = """
import json, resource, sys
from tests.test_fuzz_formats import problems, read_machine
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
for line in sys.stdin:
    problems(read_machine, *json.loads(line))
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
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = python("-c", LIMITED, len(texts), input=lines)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) * 1024 < 256e6


def test_many_deep_devices():
    """A thousand devices below fifty bridges are placed in time that adds up."""
    devices = "<pci class='0x0302'/><pci class='0x0207'/>" * 512
    text = f"<system>{'<pci>' * 50}{devices}{'</pci>' * 50}</system>"
    start = time.process_time()
    assert "nearest to a GPU: 512 on 512 GPUs" in read("nccl", text, "s").notes[0]
    assert time.process_time() - start < 1
