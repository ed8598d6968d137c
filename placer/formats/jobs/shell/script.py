"""A script followed from its first line to its last, or the command of a manifest.

Slurm sets variables of a script by its ``#SBATCH`` lines. A manifest is of Kubernetes:
a Job, a JobSet, a PyTorchJob or whatever else holds a pod. The first container that
says a command counts; its variables come first, on the first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from placer.documents import Value, parse_document
from placer.formats.jobs.findings import Asked, Remark
from placer.formats.jobs.shell.text import Either, Text, text_of_file, unknown
from placer.formats.jobs.shell.ways import JumpError

_SBATCH = re.compile(r"^#SBATCH[ \t]+([^\n]*)", re.MULTILINE)
_OPTION = re.compile(r"(--[a-z-]+|-[NnG])(?:=|[ \t]+|(?<=-[NnG]))(\S+)")
_IMAGE = "--container-image"
_NAME_OF_IMAGE = re.compile(r"[\w./:@-]+")
_COUNT = re.compile(r"(?:^|:)([0-9]{1,7})$")
_NODES = ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")
_TASKS = ("SLURM_NTASKS", "SLURM_NPROCS")
_NAMES = {
    "--nodes": _NODES,
    "-N": _NODES,
    "--ntasks": _TASKS,
    "-n": _TASKS,
    "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "--gpus-per-node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
    "--gres": ("SLURM_GPUS_ON_NODE",),
}
# What Slurm sets for every job, whatever its options.
_ALWAYS = (
    "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NAME", "SLURM_JOB_NODELIST",
    "SLURM_NODELIST", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_JOB_PARTITION",
    "SLURM_JOB_USER", "SLURM_JOB_UID", "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_CPUS_PER_NODE", "SLURM_CPUS_ON_NODE", "SLURM_CLUSTER_NAME",
    "SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST", "SLURM_TASKS_PER_NODE", "SLURM_NODEID",
    "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS", "SLURM_TASK_PID",
    "SLURMD_NODENAME",
)  # fmt: skip


def image_of_batch(text: str) -> str:
    """The image that ``--container-image`` of Pyxis names; empty where none does."""
    options = (o for line in _SBATCH.finditer(text) for o in _OPTION.finditer(line[1]))
    return next((image_called(o[2]) for o in options if o[1] == _IMAGE), "")


def image_called(text: str) -> str:
    """An image as Kubernetes calls it; empty for a file, or where it is not known.

    Pyxis takes ``[docker://][USER@][REGISTRY#]IMAGE[:TAG]`` (NVIDIA/pyxis, README).
    """
    name = text.strip("\"'").removeprefix("docker://").replace("#", "/", 1)
    is_file = name.startswith(("/", ".")) or name.endswith(".sqsh")
    return "" if is_file or not _NAME_OF_IMAGE.fullmatch(name) else name


def batch_variables(text: Text) -> Iterator[tuple[str, Text]]:
    """Names and values of the variables.

    Source: sbatch's page, output environment variables.
    """
    lines = list(_SBATCH.finditer(text.text))
    for line in lines:
        for option in _OPTION.finditer(line[1]):
            count = _COUNT.search(option[2])
            if option[1] in _NAMES and count:
                start = line.start(1) + option.start(2) + count.start(1)
                value = text.part(start, start + len(count[1]))
                for name in _NAMES[option[1]]:
                    yield name, value
    if lines:
        place = text.place_at(lines[0].start())
        for name in _ALWAYS:
            yield name, unknown(name, place, f"${{{name}}}")


# What its first line, but for comments, begins with.
_EMPTY = r"(?:[ \t]*(?:#.*)?\n)*"
_OPENS = re.compile(rf"{_EMPTY}(?:---.*\n{_EMPTY})?(?:apiVersion|kind|metadata|spec):")
_VERSION = re.compile(r"^apiVersion:", re.MULTILINE)
_BETWEEN = re.compile(r"^---.*$", re.MULTILINE)
# A shell, and its option that a script follows.
SHELL, TAKES_SCRIPT = re.compile(r"(?:.*/)?(?:ba|z)?sh"), re.compile(r"-[a-z]*c")
# How a manifest names a variable of the container, where a shell would run a command.
_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)")
_SPECIAL = re.compile(r'[\\"`]|\$(?!\{\w+\})')
_NAME = re.compile(r"[A-Za-z_]\w*")


def manifest_of(text: str, source: str) -> tuple[str, str] | None:
    """Image and command of pods, in a manifest of one or more objects; None in none.

    The command stands on the lines that it has in the manifest.
    """
    if not (_OPENS.match(text) and _VERSION.search(text)):
        return None
    ends = [*(m.start() for m in _BETWEEN.finditer(text)), len(text)]
    starts = [0, *(text.find("\n", end) + 1 or len(text) for end in ends)]
    for start, end in zip(starts, ends, strict=False):
        if not text[start:end].strip():
            continue
        above = "\n" * text.count("\n", 0, start)
        document = parse_document(above + text[start:end], source, aliases=True)
        document.fail_if_problems()
        container = _container(document.top)
        if container is not None:
            script = _script(container, text)
            document.fail_if_problems()
            return _text(container.at("image")), script
    return None


def _container(value: Value) -> Value | None:
    """The first container inside that says a command."""
    inner = value.items() if value.kind == "list" else []
    if value.kind == "mapping":
        listed = value.at("containers")
        for container in listed.items() if listed and listed.kind == "list" else ():
            said = [container.at(key) for key in ("command", "args")]
            if any(one is not None and one.content for one in said):
                return container
        inner = [one for key in value.content if (one := value.at(key)) is not None]
    nested = (_container(one) for one in inner)
    return next((found for found in nested if found is not None), None)


def _script(container: Value, text: str) -> str:
    lines = text.split("\n")
    script = ["" for _ in lines]
    words = [*container.listed("command"), *container.listed("args")]
    called = [_text(word) for word in words]
    flags = [k for k, word in enumerate(called) if TAKES_SCRIPT.fullmatch(word)]
    if flags and SHELL.fullmatch(called[0]) and flags[0] + 1 < len(called):
        inner = flags[0] + 1  # a script for the shell
        at = words[inner].place.line - 1
        at += lines[at].rstrip().endswith(("|", "|-", "|+", ">", ">-"))
        own = _referred(called[inner]).split("\n")
        script[at : at + len(own)] = own
    else:
        rows = [word.place.line - 1 for word in words]
        if rows != sorted(rows):  # arguments above the command
            rows = [rows[0] for _ in rows]
        for row, word in zip(rows, called, strict=True):
            quoted = _quoted(_referred(word).replace("\n", " "))
            script[row] = f"{script[row]} {quoted}".lstrip()
        for row in range(rows[0], rows[-1]) if rows else ():
            script[row] += " \\"
    script[0] = "; ".join([*_exports(container), script[0]])
    return "\n".join(script)


def _exports(container: Value) -> Iterator[str]:
    for entry in container.listed("env"):
        name, value = _text(entry.at("name")), entry.at("value")
        text = _text(value)
        if value is not None and _NAME.fullmatch(name) and "\n" not in text:
            yield f"export {name}={_quoted(_referred(text))}"


def _text(value: Value | None) -> str:
    return "" if value is None else str(value.content)


def _referred(text: str) -> str:
    """The text with variables of the container as a shell has them."""
    return _REFERENCE.sub(
        lambda m: f"${{{m[1]}}}" if m[1].isupper() else m[0], text.replace("$$(", "$(")
    )


def _quoted(word: str) -> str:
    return '"' + _SPECIAL.sub(lambda m: f"\\{m[0]}", word) + '"'


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the script would run."""

    words: tuple[Text, ...]  # its words, expanded
    environment: dict[str, Text]  # variables set for it alone
    # What decides whether it runs and is not known; empty where it runs.
    causes: tuple[str, ...] = ()


@dataclass
class Script:
    """What a script would do."""

    source: str
    # In the order in which they would run.
    commands: list[Command] = field(default_factory=list)
    # At its end; of an array, its elements with blanks between.
    variables: dict[str, Text] = field(default_factory=dict)
    # Names of the variables that it hands to its commands.
    exported: dict[str, None] = field(default_factory=dict)
    # What it writes into files, by their names.
    files: dict[str, Text] = field(default_factory=dict)
    # The alternatives of what is not known.
    either: Either = field(default_factory=Either)
    # Files that it sources and that are not there.
    missing: list[Remark] = field(default_factory=list)
    # What else could not be followed.
    left_out: list[Remark] = field(default_factory=list)
    image: str = ""  # of the container that it runs in; empty where it names none
    is_manifest: bool = False  # whether pods run it, whose manifest it is
    # Where ``exit`` ends it, and the variables that it takes to be empty there.
    ended: JumpError | None = None


def read_script(text: str, source: str, asked: Asked) -> Script:
    """The script of a file, followed.

    Parameters
    ----------
    asked : Asked
        Its settings count more than what the script assigns; files that the script
        names are looked for by its ``include``.
    """
    from placer.formats.jobs.shell.follow import Shell

    script = Script(source, image=image_of_batch(text))
    manifest = manifest_of(text, source)
    if manifest is not None:
        (script.image, text), script.is_manifest = manifest, True
    Shell(script, asked).run(text_of_file(text, source))
    return script
