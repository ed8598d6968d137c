"""What launchers do instead of a plan, in words, and what to do about each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Habit:
    """What a launcher did instead of the plan, and what to do about it."""

    name: str
    text: str
    hint: str


BY_TEXT = Habit(
    "text-order",
    "hosts are numbered by their names sorted as text, as torchrun's c10d rendezvous "
    "and `sort` do",
    "take the order of the hosts from the plan; torchrun needs static rendezvous for "
    "that: placer emit PLAN torchrun",
)
NODE_ID = Habit(
    "slurm-nodeid",
    "the node rank is SLURM_NODEID, which counts hosts by name",
    "look the host up in the plan (placer emit PLAN torchrun), or use SLURM_PROCID",
)
BY_NAME = Habit(
    "name-order",
    "hosts are numbered by their names with digits as numbers, as scontrol lists them",
    "take the order of the hosts from the plan",
)
NO_HOSTFILE = Habit(
    "slurm-block",
    "Slurm dealt blocks of tasks to hosts by name: it did not use the host file",
    "set SLURM_HOSTFILE for the step and give it -m arbitrary",
)
CYCLIC = Habit(
    "cyclic",
    "ranks are dealt to the hosts by name in turn, one by one (cyclic distribution)",
    "set SLURM_HOSTFILE for the step and give it -m arbitrary",
)
CYCLIC_PLANNED = Habit(
    "cyclic-planned",
    "ranks are dealt to the plan's hosts in turn, one by one (mapping by node)",
    "map ranks by the plan: --map-by seq, a rankfile, or slots of a host file",
)
BY_LABEL = Habit(
    "label-order",
    "hosts are numbered by their domains' names sorted as text, tier by tier, as "
    "Kueue's topology-aware scheduling does",
    "let the pod look its host up in the plan: placer emit PLAN kubernetes-job",
)
BY_TOPOLOGY = Habit(
    "slurm-topology",
    "Slurm dealt blocks of tasks to hosts in topology order, one domain after the "
    "other: it did not use the host file",
    "set SLURM_HOSTFILE for the step and give it -m arbitrary",
)
CONSECUTIVE = Habit(
    "consecutive",
    "hosts are in the plan's order, but each has consecutive ranks: the launcher "
    "numbers ranks host by host",
    "give RANK from the plan: placer emit PLAN env",
)
OWN_HOST_FIRST = Habit(
    "own-host-first",
    "mpirun put the host it was started on first, then the others in the order of the "
    "host file",
    "start mpirun on the plan's first host, or map ranks by the plan: placer emit PLAN "
    "openmpi-seq, with --map-by seq",
)
REVERSED = Habit(
    "reversed",
    "the plan's hosts are in reverse order",
    "do not reverse the host list",
)
UNPERMUTED = Habit(
    "gpus-by-local-rank",
    "hosts are right, but local rank k uses GPU k: CUDA_VISIBLE_DEVICES is not in the "
    "plan's order",
    "let the plan set it: placer emit PLAN torchrun, or env",
)
GPUS_REVERSED = Habit(
    "gpus-reversed",
    "hosts are right, but their GPUs are in reverse order",
    "list CUDA_VISIBLE_DEVICES in the plan's order",
)
ONE_GPU = Habit(
    "one-gpu",
    "all processes of a host use its first GPU: the local rank they see is 0 for all, "
    "as MPICH's MPI_LOCALRANKID is when a host's lines are apart",
    "pick the GPU from the global rank: placer emit PLAN env with PLACER_LOCAL_INDEX",
)
ALONE = Habit(
    "no-world",
    "every process is rank 0 of 1: they were started apart and know nothing of "
    "each other",
    "start them with one launcher, or check that it passes its environment on",
)
