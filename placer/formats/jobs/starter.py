"""What starts a job: the launcher in a command, its program, and what undoes a plan."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple

from placer.base.errors import InputError, Problem
from placer.documents.files import is_file, read_text
from placer.formats.jobs.findings import Asked, Findings
from placer.formats.jobs.shell import Command, Script, Text, read_script
from placer.formats.jobs.shell.script import image_called
from placer.formats.jobs.shell.text import is_settable, known, named, opens, readable
from placer.job.started import Started

_BACKEND, _IMAGE = "rdzv_backend", "container_image"
# Backends that number hosts by name (PyTorch, dynamic_rendezvous.py).
_SORT = ("c10d", "etcd", "etcd-v2")
_HYDRA_OPTIONS = ("-f", "-ppn", "-hosts", "-launcher", "-bootstrap")
_STEPS = {"srun": "slurm", "deepspeed": "deepspeed"}
_MPI = ("mpirun", "mpiexec", "mpiexec.hydra")
_TORCH = ("torch.distributed.run", "torch.distributed.launch")
_ACCELERATE = "accelerate.commands.launch"
# Launchers that a word behind their own makes.
_SUBCOMMANDS = {
    "accelerate": ("launch",),
    "swift": ("sft", "pt", "rlhf"),
    "megatron": ("sft", "pt", "rlhf"),
    "ray": ("job", "start"),
}
_PROGRAM = re.compile(r"[\w./-]+\.py")
# What the launcher of the plan says, what is of one host, and what no file may hold.
_NOT_KEPT = re.compile(
    r"(?:MASTER_|SLURM|PET_|PLACER_|OMPI_|PMI|JOB_).*|(?:GROUP_|LOCAL_|NODE_)?RANK"
    r"|(?:LOCAL_)?WORLD_SIZE|N?NODES|NPROC_PER_NODE|CUDA_VISIBLE_DEVICES|PATH|HOSTNAME"
    r"|(?:.*_)?(?:KEY|TOKEN|SECRET|PASSWORD)"
)
_SECRET = re.compile(r"--(?:[\w-]*[-_])?(?:key|token|secret|password)", re.IGNORECASE)


def read_starter(
    found: Findings,
    words: Sequence[Text],
    script: Script,
    environment: Mapping[str, Text],
) -> None:
    """Find what starts the job: the innermost launcher of its command.

    A step of Slurm may run a shell that starts the program, ``srun bash -c '...'``.

    Parameters
    ----------
    words : sequence of Text
        Of the command that starts the job.
    environment : mapping of str to Text
        Variables set for that command alone.
    """
    called = starter(words, script.variables)
    if called is None and words:
        for command in reversed(script.commands):
            texts = [PurePath(word.text).name for word in command.words]
            if {"bash", "sh"} & {*texts} and "-c" in texts:
                called = starter(command.words, script.variables)
                break
    if script.is_manifest and words and (called is None or called[0] != "verl"):
        called = "kubernetes", (words[0] if called is None else called[1])
    if called is None:
        return
    name, word = called
    source, line, _ = word.place
    if not line or source.startswith("<"):
        return  # what stands in no file cannot be changed there
    exported = {
        name: script.variables[name]
        for name in script.exported
        if name in script.variables
    }
    found.started = Started(
        name,
        source,
        line,
        program_of(name, words),
        dict(_kept({**exported, **environment})),
        script.image or image_called(dict(options_of(words)).get(_IMAGE, "")),
    )


def starter(
    words: Sequence[Text], variables: Mapping[str, Text]
) -> tuple[str, Text] | None:
    """Name of the innermost launcher of a command, and the word that calls it."""
    found = None
    texts = [word.text for word in words]
    for before, word, after in zip(["", *texts], words, [*texts[1:], ""], strict=False):
        if is_program(word.text):
            break
        called = PurePath(word.text).name
        module = word.text if before == "-m" else ""
        if called == "torchrun" or module in _TORCH:
            sorts = _rendezvous(words, variables) in _SORT
            found = f"torchrun-{'c10d' if sorts else 'static'}", word
        elif module == _ACCELERATE or (
            not module and after in _SUBCOMMANDS.get(called, ())
        ):
            own = "accelerate" if module else called
            name = {"megatron": "swift"}.get(called, own)
            if name == "accelerate" and _rendezvous(words, {}) in _SORT:
                name = "accelerate-c10d"
            found = name, word
        elif module.startswith("verl."):
            found = "verl", word
        elif called in _STEPS:
            found = _STEPS[called], word
        elif called in _MPI:
            hydra = called == _MPI[-1] or {*texts} & {*_HYDRA_OPTIONS}
            found = "hydra" if hydra else "openmpi", word
        if found is not None and found[0] == "swift":
            break  # what follows is the training's
    return found


def is_program(text: str) -> bool:
    """Whether a word is a file of Python."""
    return _PROGRAM.fullmatch(text) is not None


def program_of(name: str, words: Sequence[Text]) -> tuple[str, ...]:
    """The program of which a launcher starts a process a rank, with its arguments.

    It begins with a file of Python, or ``-m`` and a module. Variables that the
    environment must say stand there as ``${NAME}``. Empty where any other part is not
    known, or is not on one line, and of Ray, whose program is one process.
    """
    texts = [word.text for word in words]
    if name == "swift":
        texts = _of_swift(texts)
    start = None
    for number, (text, after) in enumerate(itertools.pairwise([*texts, ""])):
        module = text in ("-m", "--module") and after not in (*_TORCH, _ACCELERATE)
        if is_program(text) or module:
            start = number
            break
    if start is None or name in ("ray", "verl"):
        return ()
    parts = [part for text in texts[start:] for part in opens(text)]
    if not all(is_settable(part.name) and part.name.isidentifier() for part in parts):
        return ()
    command = tuple(map(named, _said(texts[start:])))
    return command if all(map(_is_plain, command)) else ()


def _of_swift(texts: list[str]) -> list[str]:
    """The command with the module that ms-swift starts (``swift/cli/main.py``)."""
    for number, (text, after) in enumerate(itertools.pairwise(texts)):
        called = PurePath(text).name
        if called in ("swift", "megatron") and after in _SUBCOMMANDS[called]:
            folder = "_megatron." if called == "megatron" else ""
            return ["-m", f"swift.cli.{folder}{after}", *texts[number + 2 :]]
    return texts


def _said(texts: Sequence[str]) -> Iterator[str]:
    """Words without those that are all of a variable that nobody sets.

    Behind an option it is the option's value.
    """
    for before, text in itertools.pairwise(["", *texts]):
        is_empty = opens(text) and not known(text)
        is_unset = all(part.is_unset for part in opens(text))
        if _SECRET.fullmatch(before) and not text.startswith("-"):
            yield f"${{{before[2:].replace('-', '_').upper()}}}"
        elif not (is_empty and is_unset and not before.startswith("-")):
            yield text


def options_of(words: Sequence[Text]) -> Iterator[tuple[str, str]]:
    """Long options with their values, names with ``_`` for ``-``."""
    for word, following in itertools.pairwise([*words, *words[:1]]):
        if word.text.startswith("--"):
            name, equals, value = word.text[2:].partition("=")
            yield name.replace("-", "_"), value if equals else following.text


def _rendezvous(words: Sequence[Text], variables: Mapping[str, Text]) -> str:
    """The backend of torchrun's rendezvous, static by default."""
    backend = variables.get("PET_RDZV_BACKEND")
    default = backend.text if backend is not None else ""
    return dict(options_of(words)).get(_BACKEND, default)


def _kept(environment: Mapping[str, Text]) -> Iterator[tuple[str, str]]:
    """Variables that are known and do not say where a process is."""
    for name, text in environment.items():
        is_kept = (
            name.isascii() and name.isidentifier() and not _NOT_KEPT.fullmatch(name)
        )
        if is_kept and _is_plain(text.text) and not text.is_open:
            yield name, text.text


def _is_plain(text: str) -> bool:
    return bool(text.strip()) and text.isprintable()


_BY_NODE = (
    *("torchrun-c10d", "torchrun-static", "accelerate", "accelerate-c10d"),
    *("swift", "deepspeed", "ray", "verl"),
)
# nvidia-resiliency-ext's launcher, and the module that is it.
FT_LAUNCHER = ("ft_launcher", "nvidia_resiliency_ext.fault_tolerance.launcher")
_AGENTS = ("deepspeed.launcher.launch", *FT_LAUNCHER)
# It numbers hosts by this, before Slurm's blocks and Slurm's tasks (utils.py).
_FT_RANK = "CROSS_SLURM_PROCID"
_RAY = (
    "Ray starts the ranks where its placement groups are, whatever the order of the "
    "nodes: give the program those of placer emit PLAN ray"
)
_SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm")
# Of launchers that sort hosts by name, the option that says it and what to write.
_INSTEAD = {
    "torchrun-c10d": (
        "--rdzv-backend",
        "--rdzv-backend=static --node-rank=$SLURM_PROCID --master-addr=$MASTER_ADDR "
        "--master-port=$MASTER_PORT, inside srun bash -c '...'; or start the script of "
        "placer emit PLAN torchrun",
    ),
    "accelerate-c10d": (
        "--rdzv_backend",
        "--rdzv_backend static --machine_rank $SLURM_PROCID",
    ),
}


class Launched(NamedTuple):
    """What a command line starts."""

    per_node: bool  # whether an agent a node starts the ranks
    # What would undo the plan's order of the hosts, with what to write instead.
    problems: list[Problem]
    remark: str = ""  # what a user should know; may be empty
    # Nodes of an NVLink domain that nvidia-resiliency-ext takes together; else 0.
    segment: int = 0


def launched(command: Sequence[str]) -> Launched:
    """What a command line starts, so far as it and the scripts that it names tell."""
    problems: list[Problem] = []
    per_node = by_ray = False
    segment = 0
    for script in _scripts(command):
        for one in script.commands:
            name = (starter(one.words, script.variables) or ("",))[0]
            called = {PurePath(word.text).name for word in one.words}
            per_node |= name in _BY_NODE or bool(called & {*_AGENTS})
            if called & {*FT_LAUNCHER}:
                said = dict(options_of(one.words)).get("ft_segment", "")
                segment = int(said) if said.isdecimal() else segment
            by_ray |= name in ("ray", "verl")
            problems += _undone(name, one, script)
    return Launched(per_node, problems, _RAY * by_ray, segment)


def _scripts(command: Sequence[str]) -> Iterator[Script]:
    """The command line as a script, and the scripts of shells among its words.

    What cannot be followed is left to whoever runs it.
    """
    with suppress(InputError):
        yield read_script(shlex.join(command), "COMMAND", Asked())
    for word in command:
        if PurePath(word).suffix in _SCRIPTS and is_file(word):
            with suppress(InputError):
                text = read_text(word)
                yield read_script(text, str(Path(word)), Asked())


def _undone(name: str, command: Command, script: Script) -> Iterator[Problem]:
    words = command.words
    options = dict(options_of(words))
    if name in _INSTEAD:
        whose, (key, hint) = name.removesuffix("-c10d"), _INSTEAD[name]
        message = f"{whose}'s c10d rendezvous sorts the hosts by name again"
        yield _problem(words, key, message, f"write {hint}")
    variable = command.environment.get("NODE_RANK", script.variables.get("NODE_RANK"))
    ranks = {"--node-rank": "node_rank", "--machine_rank": "machine_rank"}
    said = {key: options.get(option, "") for key, option in ranks.items()}
    if name == "swift" and variable is not None:
        said["NODE_RANK"] = variable.text
    for key, rank in said.items():
        if "SLURM_NODEID" in readable(rank):
            message = "SLURM_NODEID counts hosts by name, whatever the host file says"
            yield _problem(words, key, message, "write $SLURM_PROCID")
    called = [PurePath(word.text).name for word in words]
    if called[:1] == ["srun"]:
        blocks = os.environ.get("SLURM_TOPOLOGY_ADDR_PATTERN", "").lower()
        is_told = any(_FT_RANK in word.text for word in words)
        if blocks == "block.node" and {*called} & {*FT_LAUNCHER} and not is_told:
            message = "ft_launcher numbers the hosts by Slurm's blocks again"
            hint = f"leave srun out, or set {_FT_RANK}=$SLURM_PROCID in front of it"
            yield _problem(words, "ft_launcher", message, hint)
        dealt = _distribution(words)
        if dealt and not dealt.startswith("arbitrary"):
            message = f"{dealt} deals tasks to the hosts by name again"
            hint = "leave it out: placer launch sets arbitrary"
            yield _problem(words, "--distribution", message, hint)


def _distribution(words: Sequence[Text]) -> str:
    """How an ``srun`` is told to deal tasks, in front of its program."""
    texts = [word.text for word in words]
    for text, following in zip(texts, [*texts[1:], ""], strict=True):
        if text in ("bash", "sh", "python", "python3") or text.endswith(".py"):
            break
        if text in ("-m", "--distribution"):
            return following
        if text.startswith("--distribution="):
            return text.partition("=")[2]
    return ""


def _problem(words: Sequence[Text], key: str, message: str, hint: str) -> Problem:
    """The problem at the command, if it stands in a file."""
    source, line, column = words[0].place
    if source == "COMMAND":
        return Problem(message, source, key=key, hint=hint)
    return Problem(message, source, line, column, key, hint)
