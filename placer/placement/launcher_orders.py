"""The order in which launchers number hosts when nobody tells them one.

Every rule names its source. Ranks then fill the hosts one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError
from placer.documents import known_hint
from placer.topology.model import Topology

_DIGITS = re.compile(r"([0-9]+)")
_TOKEN = re.compile(r"[0-9]+|[^0-9]")


def natural_key(name: str) -> tuple[list[str | int], str]:
    """Key that compares runs of digits as numbers: ``n2`` before ``n10``.

    Names that differ only in leading zeros fall back to their text.
    """
    # Splitting at digits gives text, number, text, ...: the types always meet alike.
    parts = _DIGITS.split(name)
    return [int(p) if i % 2 else p for i, p in enumerate(parts)], name


def slurm_key(name: str) -> list[tuple[int, int, str]]:
    """Key of Slurm's order of node names, character by character.

    Numbers compare by value, but one that starts with 0 is text and comes before the
    others: ``n010 n09 n2 n10`` (Slurm, ``src/common/strnatcmp.c``).
    """
    return [_slurm_token(token) for token in _TOKEN.findall(name)]


def _slurm_token(token: str) -> tuple[int, int, str]:
    """Sorts a number among other characters where its first digit is."""
    if not "0" <= token[0] <= "9":
        return ord(token), 0, ""
    return (ord("0"), 0, token) if token[0] == "0" else (ord("1"), int(token), "")


def in_natural_order(hosts: Iterable[str]) -> list[str]:
    """The names with runs of digits compared as numbers."""
    return sorted(hosts, key=natural_key)


def text_order_surprise(hosts: Sequence[str]) -> str:
    """Two names that sort as text against their numbers, ``n10 before n9``, or empty.

    It happens when numbers in the names are not all of one width.
    """
    by_text = sorted(hosts)
    if by_text == in_natural_order(hosts):
        return ""
    first, second = next(
        (one, two)
        for one, two in pairwise(by_text)
        if natural_key(one) > natural_key(two)
    )
    return f"{first} before {second}"


# Usable hosts in the order given, and the whole machine -> by what an index is sorted.
_Key = Callable[["Topology", "Topology"], Callable[[int], Any]]


@dataclass(frozen=True)
class Launcher:
    """How one launcher orders hosts."""

    key: _Key
    rule: str  # the order in words, for people
    source: str  # where the rule is written
    sorts_text: str = ""  # what is compared as text: ``host names`` or ``labels``


def launcher_called(name: str) -> Launcher:
    """The launcher of this name."""
    if name in LAUNCHERS:
        return LAUNCHERS[name]
    if name in _UNPREDICTABLE:
        message = f"{name}: {_UNPREDICTABLE[name]}"
        hint = "start the job and let `placer verify` compare it with a plan"
        raise InputError(message, key="launcher", hint=hint)
    hint = known_hint(name, LAUNCHERS)
    message = f'there is no launcher "{name}"'
    raise InputError(message, key="launcher", hint=hint)


def launch_order(launcher: Launcher, hosts: Topology, machine: Topology) -> IntArray:
    """Indices of ``hosts`` as the launcher orders them; shape (hosts,).

    ``hosts``: the hosts of the job, in the order given. ``machine``: the machine they
    are a part of, in the order of its file.
    """
    key = launcher.key(hosts, machine)
    return np.array(sorted(range(hosts.num_nodes), key=key), dtype=np.int64)


def _given(_hosts: Topology, _machine: Topology) -> Callable[[int], Any]:
    return int


def _by(key: Callable[[str], Any]) -> _Key:
    """Hosts by a key of their names."""
    return lambda hosts, _machine: lambda node: key(hosts.node_names[node])


_by_text, _by_number, _by_slurm = _by(str), _by(natural_key), _by(slurm_key)


def _as_in_file(hosts: Topology, machine: Topology) -> Callable[[int], Any]:
    position = {name: i for i, name in enumerate(machine.node_names)}
    return _by(position.__getitem__)(hosts, machine)


def _by_file(tiers: Callable[[Topology], range]) -> _Key:
    """Domains as the machine's file first names them, nodes in them by name."""

    def key(hosts: Topology, machine: Topology) -> Callable[[int], Any]:
        where, names = _as_in_file(hosts, machine), hosts.node_names
        rows = [_first_nodes(machine, tier) for tier in tiers(machine)]
        return lambda n: ([int(row[where(n)]) for row in rows], slurm_key(names[n]))

    return key


def _by_label(hosts: Topology, _machine: Topology) -> Callable[[int], Any]:
    names, rows = hosts.domain_names, hosts.domain_of_node
    inwards = [(names[t], rows[t]) for t in _inwards(hosts)]
    return lambda n: [*(own[row[n]] for own, row in inwards), hosts.node_names[n]]


def _by_appearance(hosts: Topology, _machine: Topology) -> Callable[[int], Any]:
    rows = [_first_nodes(hosts, tier) for tier in _inwards(hosts)]
    return lambda node: [int(row[node]) for row in rows]


def _inwards(machine: Topology) -> range:
    """The tiers above the node, outermost first."""
    return range(len(machine.tiers) - 1, 0, -1)


def _first_nodes(machine: Topology, tier: int) -> IntArray:
    """First node of the domain of every node; shape (N,)."""
    _, first, domain = np.unique(
        machine.domain_of_node[tier], return_index=True, return_inverse=True
    )
    found: IntArray = first[domain]
    return found


_TORCH = "torch/distributed/elastic/rendezvous/dynamic_rendezvous.py"
_ACCELERATE = "https://huggingface.co/docs/accelerate/package_reference/cli"
_SRUN = "https://slurm.schedmd.com/srun.html (--distribution)"

# The keys of `LAUNCHERS`.
LauncherName = Literal[
    "torchrun-c10d",
    "torchrun-natural",
    "torchrun-static",
    "swift",
    "accelerate",
    "accelerate-c10d",
    "slurm",
    "slurm-node-table",
    "slurm-node-rank",
    "slurm-26.05",
    "cluster-toolkit",
    "kueue",
    "openmpi",
    "hydra",
    "deepspeed",
    "verl",
]

LAUNCHERS: dict[str, Launcher] = {
    "torchrun-c10d": Launcher(
        _by_text,
        "host names sorted as text (c10d and etcd rendezvous)",
        f"PyTorch, {_TORCH}",
        sorts_text="host names",
    ),
    "torchrun-natural": Launcher(
        _by_number,
        "host names sorted with digits as numbers (proposed for c10d)",
        "https://github.com/pytorch/pytorch/issues/191190",
    ),
    "torchrun-static": Launcher(
        _given,
        "hosts as given: node rank k is the k-th",
        "https://docs.pytorch.org/docs/stable/elastic/run.html",
    ),
    "swift": Launcher(
        _given,
        "hosts as given: NODE_RANK k is the k-th (swift and megatron of ms-swift)",
        "ms-swift, swift/cli/main.py",
    ),
    "accelerate": Launcher(
        _given,
        "hosts as given: --machine_rank k is the k-th",
        _ACCELERATE,
    ),
    "accelerate-c10d": Launcher(
        _by_text,
        "host names sorted as text (accelerate launch --rdzv_backend c10d)",
        _ACCELERATE,
        sorts_text="host names",
    ),
    "slurm": Launcher(
        _by_slurm,
        "node names with digits as numbers, but one with a leading 0 as text; "
        "tasks in blocks",
        _SRUN,
    ),
    "slurm-node-table": Launcher(
        _as_in_file,
        "nodes as the machine's file lists them (dynamic nodes of Slurm 26.05 "
        "without alpha_step_rank)",
        "Slurm, testsuite/python/tests/test_150_4.py",
    ),
    "slurm-node-rank": Launcher(
        _by_file(lambda _machine: range(1, 2)),
        "leaf switches or blocks in the file's order, nodes in them by name "
        "(SwitchAsNodeRank, BlockAsNodeRank)",
        "https://slurm.schedmd.com/slurm.conf.html (TopologyParam)",
    ),
    "slurm-26.05": Launcher(
        _by_file(_inwards),
        "topology order: a domain is finished before the next begins (a topology "
        "plugin and no --distribution)",
        f"{_SRUN}, CR_NO_DIST_TOPO_BLOCK",
    ),
    "cluster-toolkit": Launcher(
        _by_appearance,
        "domains by the first host given, hosts in them as given",
        "GoogleCloudPlatform/cluster-toolkit, schedmd-slurm-gcp-v6-controller, "
        "tests/test_topology.py",
    ),
    "kueue": Launcher(
        _by_label,
        "topology labels sorted as text, level by level",
        "kubernetes-sigs/kueue, keps/2724-topology-aware-scheduling",
        sorts_text="labels",
    ),
    "openmpi": Launcher(
        _given,
        "hosts as the host file gives them",
        "https://docs.open-mpi.org/en/main/launching-apps/scheduling.html",
    ),
    "hydra": Launcher(
        _given,
        "hosts as the machine file gives them",
        "https://github.com/pmodels/mpich/blob/main/doc/wiki/how_to/"
        "Using_the_Hydra_Process_Manager.md",
    ),
    "deepspeed": Launcher(
        _given,
        "hosts as the host file gives them",
        "DeepSpeed, deepspeed/launcher/runner.py",
    ),
    "verl": Launcher(
        _by_text,
        "addresses of the hosts sorted as text, for which their names stand here",
        "veRL, verl/single_controller/ray/base.py, sort_placement_group_by_node_ip",
        sorts_text="host names",
    ),
}

_UNPREDICTABLE = {
    "kubernetes": "the scheduler chooses the node of every pod index",
    "ray": "Ray promises no order of bundles",
}
