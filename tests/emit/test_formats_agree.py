"""Every launcher file of a plan, read back, gives the plan's own map.

Host names nobody should have are refused, or carried through unharmed.
"""

import re
import string
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given

from placer.base.errors import EmitError
from placer.emit import emit
from placer.emit.manifest import object_name
from placer.emit.registry import FORMATS
from tests.emit.readback import (
    CONTIGUOUS,
    FREE,
    INTERLEAVED,
    OF_PLANS,
    deepspeed_node_seats,
    has_gpus_in_order,
    is_contiguous,
    plan_of,
    read_csv,
    read_deepspeed,
    read_hostfile,
    read_json,
    read_node_map,
    read_rankfile,
    run_script,
    seatings,
    texts,
    write_script,
)

READERS = {
    "json": read_json,
    "csv": read_csv,
    "slurm-hostfile": read_hostfile,
    "openmpi-seq": read_hostfile,
    "openmpi-rankfile": read_rankfile,
    "deepspeed": read_deepspeed,
    "deepspeed-node": deepspeed_node_seats,
    "torchrun-map": read_node_map,
}
MANIFESTS = (
    "kubernetes-job", "kubernetes-jobset", "kubernetes-pinned", "kubeflow-trainer",
)  # fmt: skip
# What their real launchers make of them is in tests/clients.
SCRIPTS = (
    "env", "torchrun", "torchrun-wrapper", "gpu-wrapper", "sbatch", "sbatch-torchrun",
)  # fmt: skip
REAL = (*SCRIPTS, "hydra", "jax", "ray", *MANIFESTS)
# Every format that places ranks.
PLACING = (*READERS, *REAL)

# What launchers cannot say: ranks of a node that are not consecutive, and GPUs of a
# node in another order than 0, 1, 2 ...
CONSECUTIVE = {
    *("torchrun", "torchrun-map", "sbatch-torchrun", "deepspeed", "deepspeed-node")
}
GPUS_IN_ORDER = {
    *("slurm-hostfile", "openmpi-seq", "openmpi-rankfile"),
    *("torchrun-map", "deepspeed"),
}


def read_back(format, seats):
    """The map that the launcher makes of what is emitted for ``seats``."""
    text = emit(plan_of(seats), format)
    if format != "deepspeed-node":
        return READERS[format](text)
    with TemporaryDirectory() as name:
        return READERS[format](write_script(Path(name), text), seats)


def can_express(format, seats):
    """Whether a launcher can express a map, from the launchers' own rules."""
    if format in CONSECUTIVE and not is_contiguous(seats):
        return False
    if format == "deepspeed" and not is_aligned(seats):
        return False
    if format in MANIFESTS and format != "kubernetes-pinned" and len(reach(seats)) > 1:
        return False
    return format not in GPUS_IN_ORDER or has_gpus_in_order(seats)


def is_aligned(seats):
    """Whether the first rank of every host is a multiple of the number of its ranks."""
    hosts = [host for host, _ in seats]
    return all(hosts.index(host) % hosts.count(host) == 0 for host in hosts)


def reach(seats):
    """How many GPUs the nodes must have, counted from GPU 0."""
    hosts = {host for host, _ in seats}
    return {1 + max(gpu for h, gpu in seats if h == host) for host in hosts}


def labels_clash(seats):
    """Whether two hosts differ by their domain only."""
    hosts = {host for host, _ in seats}
    return len({host.split(".")[0] for host in hosts}) < len(hosts)


def turned(seats):
    """The plan with its nodes listed backwards, behind one that has no rank."""
    plan = plan_of(seats)
    last = len(plan.nodes)
    nodes = ("idle-node", *plan.nodes[::-1])
    return replace(plan, nodes=nodes, node_of_rank=last - plan.node_of_rank)


def check_format(format, seats, folder):
    if can_express(format, seats):
        if format.startswith("openmpi") and labels_clash(seats):
            with pytest.raises(EmitError, match="for one host"):
                emit(plan_of(seats), format, folder)
            return
        assert texts(turned(seats), format) == texts(plan_of(seats), format)
        if format in READERS:
            assert read_back(format, seats) == seats
        return
    with pytest.raises(EmitError) as refusal:
        emit(plan_of(seats), format, folder)
    offered = str(refusal.value).split("formats that can: ")[1].split(", ")
    able = [name for name in FORMATS if can_express(name, seats)]
    assert offered == [name for name in able if name not in HELPERS]


# Where nothing may be written.
NOWHERE = Path("/nonexistent/folder")

# What helps a launcher that has the map, or launches nothing.
SCHEDULERS = ("slurm", "kueue", "kai", "volcano", "grove")
REQUESTS = {f"{scheduler}-request" for scheduler in SCHEDULERS}
REPORTS = {"megatron", "torchtitan", "dlrover", "nccl", "role-map", "patch", *REQUESTS}
HELPERS = {"gpu-wrapper", *REPORTS}


def test_every_format_is_read_back():
    """A format is read back here or by its launcher, or it places no rank."""
    assert {*PLACING, *REPORTS} == {*FORMATS}


@pytest.mark.parametrize("format", PLACING)
@pytest.mark.parametrize(
    "seats",
    [
        *(CONTIGUOUS, FREE, INTERLEAVED, [("one", 0)]),
        *([("a", 2), ("a", 0), ("b", 0)], [("a.x", 0), ("a.y", 0)]),
        # DeepSpeed's local rank is the rank modulo the processes of its node.
        *([("a", 0), ("b", 0), ("b", 1)], [("a", 1), ("b", 2), ("b", 0), ("b", 1)]),
        [*(("a", k) for k in range(4)), ("b", 0), ("b", 1)],
        # Islands of even and of odd GPUs, one after the other.
        [(host, gpu) for host in "ab" for gpu in (0, 2, 1, 3)],
    ],
    ids=[
        *("contiguous", "free", "interleaved", "one", "unequal", "domains"),
        *("unaligned", "turned", "aligned", "islands"),
    ],
)
def test_worked_maps(format, seats):
    """A format gives back the worked maps it can express and refuses the others."""
    check_format(format, seats, NOWHERE)


@pytest.mark.parametrize("format", PLACING)
@given(seats=seatings())
def test_any_map_is_given_back_or_refused(format, seats):
    """A file is refused exactly when its launcher has no words for the map.

    Nodes without ranks, and the order nodes are listed in, change no byte of it.
    """
    check_format(format, seats, NOWHERE)


ODD_CHARACTERS = [
    *map(chr, [*range(32), 127, 0x80, 0x85, 0x9B, 0xA0, 0xAD, 0xE9, 0x0660, 0x200B]),
    *map(chr, [0x2028, 0x202E, 0x2066, 0xFEFF, 0xFF11, 0x1F600, 0xDC80]),
    *(c for c in string.punctuation + " " if c not in "-._"),
]
REFUSED = [
    *(f"n{c}1" for c in ODD_CHARACTERS),
    *(f"{c}n1" for c in ODD_CHARACTERS),
    *(f"n1{c}" for c in ODD_CHARACTERS),
    "", " ", "-", "-n1", "-oProxyCommand=touch pwned", ".", "..", "n1.", ".n1", "a..b",
    "../n1", "/etc/passwd", "n[1-2]", "n3*2", "+n0", "$(touch pwned)", "`touch pwned`",
    "n1;touch pwned", "n1) touch pwned;;", "n1|touch pwned", "n1\ntouch pwned",
    "n1'; touch pwned; '", '";touch pwned;"', "${PATH}", "a" * 64, "a." * 127 + "a",
    "n1\r\nrank 1=n2 slot=0", "=1+1", "<script>", "\x1b[31mn1",
]  # fmt: skip
ACCEPTED = [
    "esac", "if", "case", "in", "do", "done", "function", "exec", "torchrun", "0", "1",
    "007", "1e3", "0x10", "nan", "null", "true", "no", "rank", "slot", "slots", "_",
    "_n", "username", "user-name", "localhost", "n1-", "a" * 63, "127.0.0.1",
    "1n.example", "a.b.c", "A", "EOF", "n1_", "find_node", "host", "x--y", "die",
]  # fmt: skip
SHELL_WORDS = ("esac", "in", "done", "function", "exec", "007", "_", "n1-", "a.b.c")


@pytest.mark.parametrize("format", OF_PLANS)
def test_no_format_writes_a_hostile_name(format, tmp_path):
    """Every format refuses every name that is not a host name, first or last."""
    for name in REFUSED:
        for seats in ([(name, 0), ("n2", 0)], [("n2", 0), (name, 0)]):
            with pytest.raises(EmitError) as refusal:
                emit(plan_of(seats), format, tmp_path / "files")
            assert not re.search(r"[\x00-\x1f\x7f-\x9f]", str(refusal.value))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ACCEPTED)
def test_odd_names_pass_unharmed(name):
    """A name that is a keyword or a number somewhere comes through all files."""
    seats = [("other", 0), (name, 0)]
    for format in PLACING:
        if (refusal := REFUSED_BY.get(format)) and name in refusal[0]:
            with pytest.raises(EmitError, match=refusal[1]):
                texts(plan_of(seats), format)
        elif format in READERS:
            assert read_back(format, seats) == seats


@pytest.mark.parametrize("name", SHELL_WORDS)
def test_arguments_pass_unharmed(tmp_path, name):
    """A host that a shell may take for its own has its rank, and arguments run nothing.

    They go through the scripts as they are.
    """
    plan = plan_of([("other", 0), (name, 0)])
    arguments = [*ACCEPTED, "$(touch pwned)", "a b", "'", ""]
    for format in ("torchrun", "torchrun-wrapper", "env", "gpu-wrapper"):
        script = write_script(tmp_path, emit(plan, format))
        launcher = {"SLURM_LOCALID": "0", "SLURM_PROCID": "1"}
        run = run_script(script, "probe", *arguments, PLACER_HOST=name, **launcher)
        assert run.arguments[-len(arguments) :] == arguments, run.error
        rank = "PET_NODE_RANK" if format.startswith("torchrun") else "RANK"
        assert run.environment[rank] == "1"
    assert not (tmp_path / "pwned").exists()


# Keywords of Open MPI's scanners, bare numbers, dotted names that start with a digit.
OPENMPI_CANNOT = {
    "rank", "slot", "slots", "username", "user-name", "0", "1", "007", "1n.example",
}  # fmt: skip
# Kubernetes wants lower case, no underscore, and letters or digits at both ends.
KUBERNETES_CANNOT = {"_", "_n", "n1-", "A", "EOF", "n1_", "find_node"}
REFUSED_BY = {
    "openmpi-rankfile": (OPENMPI_CANNOT, "in a rankfile"),
    "openmpi-seq": (OPENMPI_CANNOT, "in a host file"),
    "ray": ({"_", "_n", "n1-", "n1_"}, "Ray label"),
    **dict.fromkeys(MANIFESTS, (KUBERNETES_CANNOT, "Kubernetes node")),
}


NAMED = {*MANIFESTS, "volcano-request", "grove-request"}


def test_names_of_job_and_machine_are_not_written():
    """Free texts of a plan reach no launcher file, but as the label of its objects."""
    seats = [("n1", 0), ("n2", 0)]
    plain, nasty = plan_of(seats, dp=2), plan_of(seats, dp=2)
    nasty.job["name"] = nasty.topology["name"] = "x\ntouch pwned\n"
    own = object_name(plain)
    for format in OF_PLANS:
        written = texts(nasty, format)
        if format in NAMED:
            written = {k: t.replace("x-touch-pwned", own) for k, t in written.items()}
        assert written == texts(plain, format)


@pytest.mark.parametrize(
    ("job", "name"),
    [
        ("llama3.1-405b", "llama3-1-405b"),
        ("__", "placer"),
        ("70B", "placer-70b"),
        ("x" * 32, "x" * 32),
        ("x" * 40, "x" * 25 + "-bd913f"),
        ("a" * 24 + "-" + "b" * 10, "a" * 24 + "-57f804"),
        ("Größe", "gr-e"),
    ],
)
def test_objects_are_called_as_the_job(job, name):
    """In letters, digits and "-", as labels and RFC 1035 names want them."""
    plan = plan_of([("n1", 0)])
    plan.job["name"] = job
    assert object_name(plan) == name


@pytest.mark.parametrize("format", [name for name in MANIFESTS if "-j" in name])
@pytest.mark.parametrize("host", ["no", "1e3", "0x10", "007", "null", "127.0.0.1"])
def test_names_stay_texts(format, host):
    """A node called like a number or a truth value is quoted wherever it stands."""
    text = emit(plan_of([(host, 0), ("other", 0)]), format)
    manifest = text[text.rindex("\n---\n") :]
    assert manifest.count(f'"{host}"') == 1
    assert "&id" not in manifest
