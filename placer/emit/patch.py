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

from placer.base.errors import EmitError
from placer.documents.files import read_text
from placer.emit import deepspeed, openmpi, shell, slurm, torchrun
from placer.emit.nodes import nodes_of, require
from placer.emit.script_lines import Script
from placer.placement.baselines import started_of
from placer.placement.parts import part_environment
from placer.placement.plan import Plan

_AGENT = r"torchrun|python[\d.]*(?: +-u)? +-m +torch\.distributed\.run"
_PORT = re.compile(r':(\$\{\w+\}|\$\w+|[1-9]\d*)"?$')
_HOSTS = "placer-hosts.txt"
_SCRIPT = "placer-torchrun.sh"
_WRAPPER = "placer-gpu-wrapper.sh"
# What ms-swift and accelerate take where torchrun takes PET_ variables.
_SWIFT = """\
exec env NNODES="$PET_NNODES" NODE_RANK="$PET_NODE_RANK" \\
  NPROC_PER_NODE="$PET_NPROC_PER_NODE" MASTER_ADDR="$PET_MASTER_ADDR" \\
  MASTER_PORT="${MASTER_PORT:-$PET_MASTER_PORT}" AGENT """
_ACCELERATE = """\
exec AGENT \\
  --num_machines "$PET_NNODES" --machine_rank "$PET_NODE_RANK" \\
  --num_processes "$((PET_NNODES * PET_NPROC_PER_NODE))" --rdzv_backend static \\
  --main_process_ip "$PET_MASTER_ADDR" --main_process_port "$PET_MASTER_PORT" """
_LAUNCH = r"accelerate +launch|python[\d.]*(?: +-u)? +-m +accelerate\.commands\.launch"

_OF_SWIFT = r"(?:swift|megatron)(?= +(?:sft|pt|rlhf|[\"$]))"

# Script, plan and folder -> names and texts of new files there, the script changed.
_Change = Callable[[Script, "Plan", Path], dict[str, str]]


def render(plan: Plan) -> str:
    """The diff, for ``patch -p1`` or ``git apply`` in the folder it names.

    Raises `EmitError` if no script is known, it was changed, its launcher cannot
    express the plan, or an option that must change cannot be found.
    """
    started = started_of(plan)
    if started is None:
        raise EmitError(
            "the plan knows no script that starts its job: read the job from one "
            "(megatron:pretrain.sh), or take the format of your launcher"
        )
    if started.name in _BY_HAND:
        raise EmitError(
            f"no patch can say the plan to {started}{_BY_HAND[started.name]}"
        )
    change = _CHANGES[started.name]
    path = Path(started.source)
    text = read_text(started.source)
    folder, name = Path.cwd(), os.path.relpath(path)
    if name.startswith(".."):
        folder, name = path.resolve().parent, path.name
    script = Script(text, name, started.line)
    new = change(script, plan, folder)
    here = "" if folder == Path.cwd() else f" -d {quote(str(folder))}"
    return "".join(
        [
            f"The plan's order for {started}. Apply with: patch -p1{here}\n",
            *_diff(f"a/{name}", f"b/{name}", text, "\n".join(script.lines)),
            *(
                line
                for file, own in new.items()
                for line in _diff("/dev/null", f"b/{file}", "", own)
            ),
        ]
    )


def _diff(before: str, after: str, old: str, new: str) -> Iterator[str]:
    """Lines of a unified diff; they say where a file ends without a newline."""
    first, second = (text.splitlines(keepends=True) for text in (old, new))
    for line in difflib.unified_diff(first, second, before, after):
        ends = line.endswith("\n")
        yield line if ends else f"{line}\n\\ No newline at end of file\n"


def _torchrun(script: Script, plan: Plan, folder: Path) -> dict[str, str]:
    """The agent is started by a script that knows the node rank of its host."""
    new = torchrun.render(plan)
    first = f"${{PLACER_MASTER_ADDR:-{quote(nodes_of(plan)[0].host)}}}"

    def endpoint(value: str) -> str:
        port = _PORT.search(value)
        return f"{first}:{port[1] if port else 29500}"

    script.set_option("--rdzv[-_]backend", lambda _: "static")
    script.set_option("--rdzv[-_]endpoint", endpoint)
    script.set_option("--master[-_]addr", lambda _: first)
    script.remove_option("--node[-_]rank")
    return _agent(script, new, folder, _AGENT, "exec AGENT ")


def _swift(script: Script, plan: Plan, folder: Path) -> dict[str, str]:
    """ms-swift is started by a script that sets its variables."""
    new = torchrun.render(plan)
    return _agent(script, new, folder, _OF_SWIFT, _SWIFT)


def _accelerate(script: Script, plan: Plan, folder: Path) -> dict[str, str]:
    """``accelerate launch`` is started by a script that gives it the node's rank."""
    new = torchrun.render(plan)
    require(nodes_of(plan), "accelerate", {"equal"})
    hosts = script.option("--deepspeed[-_]hostfile")
    if hosts is not None:
        raise EmitError(
            f"{script.name}:{hosts.line + 1}: DeepSpeed starts the ranks: give "
            "--deepspeed_hostfile the file of placer emit PLAN deepspeed"
        )
    for names in ("machine[-_]rank", "main[-_]process[-_]ip", "rdzv[-_]backend"):
        script.remove_option(f"--{names}")
    return _agent(script, new, folder, _LAUNCH, _ACCELERATE)


def _agent(
    script: Script, new: str, folder: Path, word: str, start: str
) -> dict[str, str]:
    """A script of the plan takes the place of the agent, and starts it."""
    agent = script.replace_word(word, f"bash {quote(str(folder / _SCRIPT))}")
    return {_SCRIPT: new.replace("exec torchrun ", start.replace("AGENT", agent))}


def _srun(script: Script, plan: Plan, folder: Path) -> dict[str, str]:
    """The step reads its tasks' hosts from a file."""
    new = slurm.render_hostfile(plan)
    script.remove_own(
        "-m|--distribution", "-N|--nodes", "-n|--ntasks", "--ntasks-per-node"
    )
    file = quote(str(folder / _HOSTS))
    kept = f"env -u SLURM_NTASKS_PER_NODE SLURM_HOSTFILE={file}"
    if any("MASTER_ADDR" in line for line in script.lines):  # the first host by name
        kept += f" MASTER_ADDR=$(head -n 1 {file})"
    kept += "".join(f" {k}={v}" for k, v in part_environment(plan).items())
    options = f"--distribution=arbitrary --ntasks={plan.world_size}"
    script.replace_word("srun", f"{kept} {{}} {options}")
    return {_HOSTS: new}


def _mpirun(script: Script, plan: Plan, folder: Path) -> dict[str, str]:
    """Ranks take the lines of a host file one by one."""
    new = openmpi.render_seq(plan)
    script.remove_own(
        "--?(?:default-)?hostfile|--?machinefile|--?host|-H",
        "--?map-by|--?rank-by|--?bind-to",
        "--?npernode|-N",
    )
    options = f"--map-by seq --hostfile {quote(str(folder / _HOSTS))} --bind-to none"
    script.replace_word("mpirun|mpiexec", f"{{}} {options}")
    return {_HOSTS: new}


def _hydra(script: Script, plan: Plan, folder: Path) -> dict[str, str]:
    """Ranks take the lines of a machine file, and their GPUs from a script.

    Where every node holds consecutive ranks on its GPUs in order, the local ranks of
    Hydra say the GPUs.
    """
    files = shell.hydra_files(plan)
    found = {_HOSTS: files["machines.txt"]}
    script.remove_own(
        "--?f|--?machinefile|--?hostfile", "--?hosts?", "--?ppn|--?perhost"
    )
    if not all(n.consecutive and n.gpus_in_order for n in nodes_of(plan)):
        found[_WRAPPER] = files["gpu-wrapper.sh"]
        script.run_by(f"bash {quote(str(folder / _WRAPPER))}")
    machines = f"-f {quote(str(folder / _HOSTS))}"
    script.replace_word(r"mpiexec\.hydra|mpiexec|mpirun", f"{{}} {machines}")
    return found


def _deepspeed(script: Script, plan: Plan, folder: Path) -> dict[str, str]:
    """The runner reads its hosts from a file, in its order."""
    new = deepspeed.render(plan)
    chosen = script.own_option("-i|--include|-e|--exclude")
    if chosen is not None:
        raise EmitError(
            f"{script.name}:{chosen.line + 1} chooses hosts besides the host file: "
            "take --include or --exclude out"
        )
    script.remove_own("-H|--hostfile")
    options = f"--hostfile {quote(str(folder / _HOSTS))}"
    script.replace_word("deepspeed", f"{{}} {options}")
    return {_HOSTS: new}


_CHANGES: dict[str, _Change] = {
    "torchrun-c10d": _torchrun,
    "torchrun-static": _torchrun,
    "swift": _swift,
    "accelerate": _accelerate,
    "accelerate-c10d": _accelerate,
    "slurm": _srun,
    "openmpi": _mpirun,
    "hydra": _hydra,
    "deepspeed": _deepspeed,
}

# What has to be changed in the program or in the cluster, after the launcher's name.
_BY_HAND = {
    "verl": (
        ", which sorts nodes by their addresses. Change by hand: make the placement "
        "groups of its resource pools with the bundles of placer emit PLAN ray, in the "
        "order of its file, without sort_placement_group_by_node_ip; or run on nodes "
        "whose addresses, as text, are in the order of the plan's hosts"
    ),
    "ray": (
        ", for Ray starts ranks where its placement groups are. Change by hand: start "
        'every node with ray start --labels "placer-host=$(uname -n)", and take group '
        "and ranks in the program from the files of placer emit PLAN ray"
    ),
    "kubernetes": (
        ", for the scheduler chooses the nodes of pods. Change by hand: apply what "
        "placer emit PLAN kubernetes-jobset writes, with the command and image of that "
        "manifest; or take its ConfigMap with the volume, its command, PLACER_HOST and "
        "its affinity into yours"
    ),
}
