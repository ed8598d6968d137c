"""Host names nobody should have: refused, or carried through unharmed."""

import re
import string

import pytest

from placer.base.errors import EmitError
from placer.emit import emit
from placer.emit.manifest import object_name
from tests.emit.readback import OF_PLANS, plan_of, run_script, texts, write_script
from tests.emit.test_formats_agree import MANIFESTS, PLACING, READERS, read_back

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
SHELL_WORDS = [
    "esac",
    "in",
    "done",
    "function",
    "exec",
    "0",
    "007",
    "_",
    "n1-",
    "a.b.c",
]


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
