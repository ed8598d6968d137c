"""What a command line starts: one process a node or a rank, and what undoes a plan."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple

from placer.base.errors import InputError, Problem
from placer.documents.files import is_file, read_text
from placer.formats.jobs.findings import Asked
from placer.formats.jobs.shell import Command, Script, Text, read_script
from placer.formats.jobs.shell.text import readable
from placer.formats.jobs.starter import options_of, starter

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
_STATIC = (
    "--rdzv-backend=static --node-rank=$SLURM_PROCID --master-addr=$MASTER_ADDR "
    "--master-port=$MASTER_PORT, inside srun bash -c '...'; or start the script of "
    "placer emit PLAN torchrun"
)


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
    if name == "torchrun-c10d":
        message = "torchrun's c10d rendezvous sorts the hosts by name again"
        yield _problem(words, "--rdzv-backend", message, f"write {_STATIC}")
    if name == "accelerate-c10d":
        message = "accelerate's c10d rendezvous sorts the hosts by name again"
        hint = "write --rdzv_backend static --machine_rank $SLURM_PROCID"
        yield _problem(words, "--rdzv_backend", message, hint)
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
