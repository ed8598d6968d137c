"""Mutated topologies, jobs, plans and host lists: exit codes 0 to 4, time and memory.

By hand, in an empty folder, a series of 10,000 with its slowest and its largest:
``python -m tests.test_fuzz_documents 10000``.
"""

import json
import os
import random
import re
import resource
import sys
from collections import Counter
from pathlib import Path
from time import process_time

import pytest
import yaml
from click.testing import CliRunner

from placer.cli.main import main as program
from tests.commands import ROOT, python
from tests.mutants import mutated

MOST_SECONDS, MOST_BYTES = 2.0, 500e6
JOB = """\
format: placer/job
version: 1
name: j
parallelism: {tp: 2, cp: 2, pp: 2, dp: 4, vp: 2, order: tp-cp-ep-pp-dp}
model: {layers: 8, hidden: 512, ffn: 2048, heads: 8, kv_heads: 8, vocab: 1000}
sequence: 2048
micro_batches: 8
bytes: {activation: 2, gradient: 4}
data_parallel: {sharding: zero1, bucket_parameters: 1000000}
overlap: {tp: false, pp: true}
compute: {micro_batch_time: 12ms, fixed_time: 1ms}
require: {tp: node, ring: rack}
groups:
  - {name: ring, collective: all_to_all, bytes: 64MB, ranks: [[0, 1], [2, 3]]}
  - {name: every, collective: all_reduce, bytes: 1MB, ranks: all}
weights: {tp: 4000, cp: 400, pp: 40, dp: 4}
rules:
  pin: [{ranks: 0-1, nodes: "n[01-02]"}]
  avoid: ["n[09-16]"]
  at_most: {rack: 2}
  spares: {rack: 1}
"""
MACHINE = """\
format: placer/topology
version: 1
name: two-racks
sources: ["made up"]
tiers:
  - {name: node, size: 4, bandwidth: 450GB/s, latency: 1us, scale_up: true}
  - {name: rack, bandwidth: 400Gb/s, latency: 4us, efficiency: 0.9}
  - {name: cluster, bandwidth: 400Gb/s, latency: 8us, oversubscription: 4}
nodes:
  - {names: "n[01-07]", rack: a}
  - {names: "n08", rack: a, gpus: 3, bandwidth_factor: 0.5}
  - {names: "n[09-16]", rack: b, compute_factor: 0.9}
links:
  - {between: [a, b], bandwidth: 10Gb/s, latency: 1ms}
unavailable: {"n[03-04]": "xid 79"}
"""
LAYOUT = re.sub(
    "nodes:.*", 'layout: "cluster:1 rack:4 node:18"\n', MACHINE, flags=re.DOTALL
)
HOSTS = "n[01-02,05-08] slots=4\nn09 # comment\n\nn1[0-5],n16\n"
NUMBERS = ("0", "-1", "7", "64", "99999", "1048576", "999999999", "1e9", "1e-9", "0x1F")
PREDICT = ("predict", "-t", "good.yaml", "-j", "quickstart", "--launcher", "slurm")
# File, the command that reads it, and its content; the plan is made on the spot.
SERIES = {
    "topology.yaml": (("topo", "validate", "{}"), MACHINE),
    "layout.yaml": (("topo", "validate", "{}"), LAYOUT),
    "topology.json": (("topo", "validate", "{}"), MACHINE),
    "job.yaml": (("jobs", "show", "{}"), JOB),
    "job.json": ((*PREDICT[:3], "-j", "{}", *PREDICT[5:]), JOB),
    "plan.json": (("check", "{}", "-t", "good.yaml", "-j", "quickstart"), ""),
    "hosts.txt": ((*PREDICT, "--hosts", "@{}"), HOSTS),
}


def mutant(text, chance):
    """The text after random edits, or with other numbers, or a part many times over."""
    kind = chance.randrange(4)
    if kind == 0:
        found = [*re.finditer(r"[0-9]+", text)]
        for number in chance.sample(found, min(len(found), chance.randint(1, 3))):
            start, end = number.span()
            text = text[:start] + chance.choice(NUMBERS) + text[end:]
        return text
    if kind == 1:
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        lines[at:at] = lines[at : at + chance.randint(1, 3)] * chance.choice(
            (1, 9, 300)
        )
        return "\n".join(lines)
    return mutated(text, chance)


def run(name, text):
    """Exit code, seconds of processor and output of the command on this content."""
    command, _ = SERIES[name]
    Path(name).write_bytes(text.encode("utf-8", "surrogatepass"))
    start = process_time()
    done = CliRunner().invoke(program, [word.format(name) for word in command])
    return done.exit_code, process_time() - start, done.output


def seeds():
    """The good content of every file; the machine of the others is beside them."""
    Path("good.yaml").write_text(MACHINE)
    place = ["place", "-q", "-t", "good.yaml", "-j", "quickstart", "-o", "plan.json"]
    # On its own: a search that its time limit cannot end takes the process with it.
    python("-m", "placer", *place, "--time-limit", "1", cwd=Path.cwd(), check=True)
    texts = {name: text for name, (_, text) in SERIES.items()}
    for name in ("topology.json", "job.json"):
        texts[name] = json.dumps(yaml.safe_load(texts[name]), indent=1)
    texts["plan.json"] = Path("plan.json").read_text()
    return texts


def main():
    """Try so many mutants in turn; print what was outside the limits."""
    each = int(sys.argv[1]) // len(SERIES)
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    texts, bad = seeds(), []
    for name, text in texts.items():
        chance = random.Random(f"{name} {each}")
        codes, slowest = Counter([run(name, text)[0]]), 0.0
        assert codes[0], f"{name} is no good seed"
        for _ in range(each):
            wrong = mutant(text, chance)
            code, seconds, output = run(name, wrong)
            codes[code] += 1
            slowest = max(slowest, seconds)
            if code not in range(5) or seconds > MOST_SECONDS:
                bad.append([name, code, seconds, output[-300:], wrong[:3000]])
        print(name, dict(codes), f"{slowest:.2f} s at most", file=sys.stderr)
    status = Path("/proc/self/status").read_text()
    memory = int(status.split("VmHWM:")[1].split()[0]) * 1024
    print(json.dumps({"bad": bad, "memory": memory}))


@pytest.mark.parametrize("mutants", [100, pytest.param(1500, marks=pytest.mark.slow)])
def test_mutated_documents(mutants, tmp_path):
    """Whatever a file holds, commands end with 0 to 4 in 2 s and 500 MB each."""
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    words = ("-m", "tests.test_fuzz_documents", mutants)
    done = python(*words, cwd=tmp_path, env=environ)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["bad"] == []
    assert found["memory"] < MOST_BYTES


if __name__ == "__main__":
    main()
