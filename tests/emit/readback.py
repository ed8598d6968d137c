"""Plans built by hand, and readers that turn every launcher file back into a map.

The readers follow the launchers' rules, not the emitters' code: a map is the list of
(host, GPU) by rank.
"""

import csv
import io
import json
import os
import re
import subprocess
from base64 import urlsafe_b64decode
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

from placer.emit.registry import FORMATS
from placer.placement.plan import Plan

# Formats that write any plan; a patch needs the script of its job.
OF_PLANS = [name for name in FORMATS if name != "patch"]

# 4 nodes of 2 GPUs, first in node order n3 n1 n4 n2, then with ranks anywhere.
CONTIGUOUS = [(host, gpu) for host in ("n3", "n1", "n4", "n2") for gpu in (0, 1)]
FREE = [CONTIGUOUS[k] for k in (0, 3, 4, 7, 2, 1, 6, 5)]
# Ranks anywhere, but on every node the lower rank has the lower GPU.
INTERLEAVED = [CONTIGUOUS[k] for k in (0, 2, 4, 6, 3, 1, 7, 5)]


def plan_of(seats, **sizes):
    """A plan that puts rank r on ``seats[r]``; with sizes of axes when given."""
    nodes = tuple(dict.fromkeys(host for host, _ in seats))
    return Plan(
        topology={"name": "t", "sha256": "0"},
        job={"name": "j", "sha256": "0", "order": "tp-cp-ep-dp-pp"}
        | ({"parallelism": sizes} if sizes else {}),
        nodes=nodes,
        domains={},
        node_of_rank=np.array([nodes.index(h) for h, _ in seats], dtype=np.int64),
        gpu_of_rank=np.array([gpu for _, gpu in seats], dtype=np.int64),
    )


def started(seats, name, source, line):
    """A plan whose job is started by a launcher on a line of a script."""
    launcher = {"name": name, "source": source, "line": line}
    return replace(plan_of(seats), inputs={"job": {"launcher": launcher}})


def texts(plan, format):
    """Name and text of every file of a format; the only file has no name."""
    found = FORMATS[format].written(plan)
    return found if FORMATS[format].folder else {"": found}


@st.composite
def seatings(draw):
    """Small maps, many of them contiguous, many with GPUs in order."""
    names = st.from_regex(r"[a-z][0-9]{1,2}(\.x)?", fullmatch=True)
    hosts = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    permute = draw(st.booleans())
    seats = []
    for host in hosts:
        gpus = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True))
        seats += [(host, g) for g in (gpus if permute else range(len(gpus)))]
    if draw(st.booleans()):
        seats = draw(st.permutations(seats))
    return seats


def is_contiguous(seats):
    """Whether no host comes back after another one."""
    hosts = [host for host, _ in seats]
    starts = [h for k, h in enumerate(hosts) if k == 0 or hosts[k - 1] != h]
    return len(starts) == len(set(starts))


def has_gpus_in_order(seats):
    """Whether the k-th rank of every host is on GPU k."""
    return seats == counted([host for host, _ in seats])


def counted(hosts):
    """The map of a launcher that gives a host's k-th rank GPU k."""
    seen = Counter()
    seats = []
    for host in hosts:
        seats.append((host, seen[host]))
        seen[host] += 1
    return seats


def read_json(text):
    """The map in a ``placer/rank-map`` document."""
    data = json.loads(text)
    assert (data["format"], data["version"]) == ("placer/rank-map", 1)
    assert data["world_size"] == len(data["ranks"])
    assert [row["rank"] for row in data["ranks"]] == list(range(data["world_size"]))
    return [(row["host"], row["gpu"]) for row in data["ranks"]]


def read_csv(text):
    """The map in a CSV table."""
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["rank"] for row in rows] == [str(k) for k in range(len(rows))]
    return [(row["host"], int(row["gpu"])) for row in rows]


def read_hostfile(text):
    """The map Slurm makes of a host file: line k is task k, local ids count up."""
    assert text.endswith("\n")
    return counted(text.splitlines())


def read_rankfile(text):
    """The map Open MPI makes of a rankfile: local ranks count up, slots never clash."""
    line = re.compile(r"rank (\d+)=([\w.-]+) slot=(\d+)")
    rows = [line.fullmatch(row) for row in text.splitlines()]
    hosts = [row[2] for row in rows if row]
    assert [row[1] for row in rows if row] == [str(k) for k in range(len(rows))]
    slots = [(row[2], row[3]) for row in rows if row]
    assert len(set(slots)) == len(rows)
    return counted(hosts)


def write_script(folder, text):
    """The script in a file, next to a ``torchrun`` that shows how it was called."""
    script = folder / "script.sh"
    script.write_text(text)
    for name in ("torchrun", "probe"):
        stub = folder / name
        stub.write_text('#!/bin/sh\nprintf "%s\\0" "$#" "$@"\nexec env -0\n')
        stub.chmod(0o755)
    return script


def run_script(script, *arguments, **environment):
    """Run a script with nothing in its environment but what is given.

    What it made of its command, by the first stub: arguments and environment.
    """
    path = f"{script.parent}:{os.defpath}"
    done = subprocess.run(
        ["bash", str(script), *arguments],
        cwd=script.parent,
        env={"PATH": path, **environment},
        capture_output=True,
        text=True,
    )
    count, *fields = done.stdout.split("\0")
    words = fields[: int(count or 0)]
    pairs = (field.split("=", 1) for field in fields[len(words) :] if "=" in field)
    shown = {"arguments": words, "environment": dict(pairs)}
    return SimpleNamespace(status=done.returncode, error=done.stderr, **shown)


def read_node_map(text):
    """The map torchrun makes of a node map: workers numbered node by node."""
    data = json.loads(text)
    assert (data["format"], data["version"]) == ("placer/node-map", 1)
    return [(n["host"], k) for n in data["nodes"] for k in range(n["processes"])]


def read_deepspeed(text):
    """The map DeepSpeed makes of its host file; a host twice is an error there.

    ``LOCAL_RANK`` is the rank modulo the slots of its host.
    """
    line = re.compile(r"([\w.-]+) slots=([1-9][0-9]*)")
    rows = [line.fullmatch(row) for row in text.splitlines()]
    assert Counter(row[1] for row in rows if row).most_common(1)[0][1] == 1
    slots = [(row[1], int(row[2])) for row in rows if row for _ in range(int(row[2]))]
    return [(host, rank % count) for rank, (host, count) in enumerate(slots)]


def deepspeed_node_seats(script, seats):
    """The map of DeepSpeed's launcher: ``LOCAL_RANK`` is the rank modulo processes.

    It numbers the ranks in the order of the hosts in ``--world_info``, and a local rank
    sees the GPUs of its host in the order listed there.
    """
    (script.parent / "torchrun").rename(script.parent / "python")
    runs = {}
    for host in dict.fromkeys(host for host, _ in seats):
        run = run_script(script, "train.py", "a b", PLACER_HOST=host)
        launch, options = run.arguments[:3], run.arguments[3:]
        assert launch == ["-u", "-m", "deepspeed.launcher.launch"]
        assert options[-2:] == ["train.py", "a b"]
        given = dict(option.split("=", 1) for option in options[:-2])
        assert given["--master_addr"] == seats[0][0]
        assert given["--master_port"] == "29500"
        runs[int(given["--node_rank"])] = (host, given["--world_info"])
    ((_, text), *_) = runs.values()
    assert {other for _, other in runs.values()} == {text}
    info = json.loads(urlsafe_b64decode(text))
    assert list(info) == [runs[node_rank][0] for node_rank in range(len(runs))]
    found = []
    for host, gpus in info.items():
        for _ in gpus:
            found.append((host, gpus[len(found) % len(gpus)]))
    return found


def array_of(text, name):
    """The words of an array that a text gives bash."""
    shell = f'{text}printf "%s\\n" "${{{name}[@]}}"\n'
    run = subprocess.run(
        ["bash", "-euc", shell], capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()


TIERS = ("node", "rack", "block", "cluster")


def tiered(racks, blocks=None, *, gpus=1, scale_up=1, order="tp-cp-ep-dp-pp", **sizes):
    """Nodes n0, n1, ... in these racks and blocks, ranks on them one after another."""
    seats = [(f"n{k}", gpu) for k in range(len(racks)) for gpu in range(gpus)]
    plan = plan_of(seats, **sizes)
    domains = {"rack": tuple(racks)}
    domains["block"] = tuple(blocks or ["b"] * len(racks))
    return replace(
        plan,
        topology={"name": "t", "sha256": "", "tiers": TIERS, "scale_up": scale_up},
        job={**plan.job, "order": order},
        domains=domains,
    )


@st.composite
def tiered_plans(draw):
    """Up to 12 nodes in some racks of some blocks, in any order."""
    block_of_rack = draw(st.lists(st.sampled_from("AB"), min_size=1, max_size=4))
    rack = st.integers(0, len(block_of_rack) - 1)
    racks = draw(st.lists(rack, min_size=1, max_size=12))
    return tiered(
        [f"r{k}" for k in racks],
        [block_of_rack[k] for k in racks],
        gpus=draw(st.integers(1, 3)),
        scale_up=draw(st.integers(1, 4)),
    )
