"""A unified diff against the script that the job was read from.

The smallest change after which the script's own launcher takes the plan's order: its
launcher's file, a new one beside the script, and the options that would undo it.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from placer.emit import deepspeed, openmpi, slurm_hostfile, torchrun
from placer.emit.nodes import nodes_of
from placer.emit.script_lines import Script
from placer.errors import EmitError
from placer.files import read_text
from placer.placement.started import started_of

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_AGENT = r"torchrun|python[\d.]*(?: +-u)? +-m +torch\.distributed\.run"
_PORT = re.compile(r':(\$\{\w+\}|\$\w+|[1-9]\d*)"?$')
_HOSTS = "placer-hosts.txt"
_SCRIPT = "placer-torchrun.sh"

# Script, plan and path of the new file -> the new file's text, the script changed.
_Change = Callable[[Script, "Plan", str], str]


def render(plan: Plan) -> str:
    """The diff, for ``patch -p1`` or ``git apply`` in the folder it names.

    Raises
    ------
    EmitError
        If no script is known, it was changed, its launcher cannot express the plan, or
        an option that must change cannot be found.
    InputError
        If the script cannot be read.
    """
    started = started_of(plan)
    if started is None:
        raise EmitError(
            "the plan knows no script that starts its job: read the job from one "
            "(-j megatron:pretrain.sh), or take the format of your launcher"
        )
    if started.name not in _CHANGES:
        raise EmitError(
            f"{started} takes its hosts from a file: placer emit PLAN {started.name}"
        )
    file, change = _CHANGES[started.name]
    path = Path(started.source)
    text = read_text(started.source)
    folder, name = Path.cwd(), os.path.relpath(path)
    if name.startswith(".."):
        folder, name = path.resolve().parent, path.name
    script = Script(text, name, started.line)
    new = change(script, plan, quote(str(folder / file)))
    here = "" if folder == Path.cwd() else f" -d {quote(str(folder))}"
    return "".join(
        [
            f"The plan's order for {started}. Apply with: patch -p1{here}\n",
            *_diff(f"a/{name}", f"b/{name}", text, "\n".join(script.lines)),
            *_diff("/dev/null", f"b/{file}", "", new),
        ]
    )


def _diff(before: str, after: str, old: str, new: str) -> Iterator[str]:
    """Lines of a unified diff; they say where a file ends without a newline."""
    first, second = (text.splitlines(keepends=True) for text in (old, new))
    for line in difflib.unified_diff(first, second, before, after):
        ends = line.endswith("\n")
        yield line if ends else f"{line}\n\\ No newline at end of file\n"


def _torchrun(script: Script, plan: Plan, file: str) -> str:
    """The agent is started by a script that knows the node rank of its host."""
    new = torchrun.render(plan)
    backend = script.option("--rdzv[-_]backend")
    if backend is not None:
        script.set_value(backend, "static")
    first = f"${{PLACER_MASTER_ADDR:-{quote(nodes_of(plan)[0].host)}}}"
    endpoint = script.option("--rdzv[-_]endpoint")
    if endpoint is not None:
        port = _PORT.search(script.value(endpoint))
        script.set_value(endpoint, f"{first}:{port[1] if port else 29500}")
    address = script.option("--master[-_]addr")
    if address is not None:
        script.set_value(address, first)
    rank = script.option("--node[-_]rank")
    if rank is not None:
        script.remove(rank)
    agent = script.replace_word(_AGENT, f"bash {file}")
    return new.replace("exec torchrun ", f"exec {agent} ")


def _srun(script: Script, plan: Plan, file: str) -> str:
    """The step reads its tasks' hosts from a file."""
    new = slurm_hostfile.render(plan)
    _remove(
        script, "-m|--distribution", "-N|--nodes", "-n|--ntasks", "--ntasks-per-node"
    )
    kept = f"env -u SLURM_NTASKS_PER_NODE SLURM_HOSTFILE={file}"
    options = f"--distribution=arbitrary --ntasks={plan.world_size}"
    script.replace_word("srun", f"{kept} {{}} {options}")
    return new


def _mpirun(script: Script, plan: Plan, file: str) -> str:
    """Ranks take the lines of a host file one by one."""
    new = openmpi.render_seq(plan)
    _remove(
        script,
        "--?(?:default-)?hostfile|--?machinefile|--?host|-H",
        "--?map-by|--?rank-by|--?bind-to",
        "--?npernode|-N",
    )
    options = f"--map-by seq --hostfile {file} --bind-to none"
    script.replace_word("mpirun|mpiexec", f"{{}} {options}")
    return new


def _deepspeed(script: Script, plan: Plan, file: str) -> str:
    """The runner reads its hosts from a file, in its order."""
    new = deepspeed.render(plan)
    chosen = script.own_option("-i|--include|-e|--exclude")
    if chosen is not None:
        raise EmitError(
            f"{script.name}:{chosen.line + 1} chooses hosts besides the host file: "
            "take --include or --exclude out"
        )
    _remove(script, "-H|--hostfile")
    script.replace_word("deepspeed", f"{{}} --hostfile {file}")
    return new


def _remove(script: Script, *options: str) -> None:
    """Take options of the launcher out, wherever they stand in its command."""
    for names in options:
        while (found := script.own_option(names)) is not None:
            script.remove(found)


_CHANGES: dict[str, tuple[str, _Change]] = {
    "torchrun-c10d": (_SCRIPT, _torchrun),
    "torchrun-static": (_SCRIPT, _torchrun),
    "slurm": (_HOSTS, _srun),
    "openmpi": (_HOSTS, _mpirun),
    "deepspeed": (_HOSTS, _deepspeed),
}
