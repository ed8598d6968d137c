"""One choice of degrees, and the job that it makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from placer.job.axes import MEGATRON_DEFAULT_ORDER, Parallelism, pipeline_groups_agree
from placer.job.memory import Memory
from placer.job.model import Job
from placer.job.pace import compute_at
from placer.job.parallel import EndStages, Overlap, default_bucket

# What a choice is made of, but for what follows from the others.
SIZES = ("tp", "cp", "ep", "etp", "pp", "vp", "micro_batch")
# Recomputed modules in one name: ``moe_act+mla_up_proj``.
JOINED = "+"


class Choice(NamedTuple):
    """What `tune` chooses."""

    tp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    pp: int = 1
    vp: int = 1
    dp: int = 1
    micro_batch: int = 1  # samples of a micro-batch
    micro_batches: int = 1  # of a replica and step
    recompute: str = "none"  # ``none``, ``full``, ``op`` or modules joined by ``+``
    sharding: str = "ddp"  # ``ddp``, ``zero1``, ``zero2``, ``zero3`` or ``hsdp``
    shard_size: int = 0  # of ``hsdp``; else 0
    # embedding and loss: layers that the ends of the model count for.
    embedding: float = 0.0
    loss: float = 0.0

    @classmethod
    def of(cls, job: Job) -> Choice:
        """What a job with a model has chosen."""
        axes, mode = job.parallelism, job.data_parallel
        return cls(
            tp=axes.tp,
            cp=axes.cp,
            ep=axes.ep,
            etp=axes.etp if job.model is not None and job.model.experts else axes.tp,
            pp=axes.pp,
            vp=axes.vp,
            dp=axes.dp,
            micro_batch=job.micro_batch,
            micro_batches=job.micro_batches,
            recompute=recompute_name(job),
            sharding=mode.sharding,
            shard_size=mode.shard_size if mode.sharding == "hsdp" else 0,
            embedding=job.stages.embedding,
            loss=job.stages.loss,
        )

    @property
    def gpus(self) -> int:
        """GPUs that it takes."""
        return self.tp * self.cp * self.pp * self.dp

    @property
    def global_batch(self) -> int:
        """Samples of a step."""
        return self.dp * self.micro_batch * self.micro_batches

    @property
    def sizes(self) -> Choice:
        """Its sizes alone, as `Legal.shapes` has them."""
        return self._replace(recompute="none", sharding="ddp", shard_size=0)

    def parallelism(self) -> dict[str, int]:
        """The axes of the choice, as a job file has them."""
        sizes = ("tp", "cp", "ep", "etp", "pp", "vp", "dp")
        return {axis: int(getattr(self, axis)) for axis in sizes}

    def to_dict(self) -> dict[str, Any]:
        """As rows have it."""
        axes = self.parallelism()
        others = {k: v for k, v in self._asdict().items() if k not in axes}
        return {"gpus": self.gpus, "parallelism": axes, **others}

    def applied(self, job: Job) -> Job:
        """The job with these degrees; its work follows the model (`compute_at`)."""
        changed = self.shaped(job)
        return replace(changed, compute=compute_at(job, changed))

    def shaped(self, job: Job) -> Job:
        """The job with these degrees and work as it was.

        The rank order is the job's where experts allow it, else Megatron's. A gradient
        bucket that had its default keeps it.
        """
        sizes: dict[str, Any] = self.parallelism()
        axes = Parallelism(**sizes, order=job.parallelism.order)
        if not pipeline_groups_agree(axes):
            axes = replace(axes, order=MEGATRON_DEFAULT_ORDER)
        mode = replace(
            job.data_parallel, sharding=self.sharding, shard_size=self.shard_size
        )
        if mode.bucket_parameters == default_bucket(job.parallelism.dp):
            mode = replace(mode, bucket_parameters=default_bucket(self.dp))
        if self.sharding not in ("zero3", "hsdp"):
            mode = replace(mode, keep_parameters=False)
        return replace(
            job,
            parallelism=axes,
            micro_batch=self.micro_batch,
            micro_batches=self.micro_batches,
            overlap=overlap_at(job, self),
            data_parallel=mode,
            stages=EndStages(self.embedding, self.loss),
            memory=replace(job.memory, **recompute_keys(self.recompute)),
            sha256="",
        )


def overlap_at(job: Job, choice: Choice) -> Overlap:
    """What of a job's traffic travels beside work with a choice."""
    stages, experts = overlaps_stages(job, choice.vp), overlaps_experts(job, choice)
    return replace(job.overlap, pp=stages, ep=experts)


def overlaps_stages(job: Job, vp: int) -> bool:
    """Whether messages between stages travel beside work, with ``vp`` chunks a rank.

    Megatron-LM overlaps those of interleaved stages alone (d98e8a64,
    ``training/arguments.py``): a job without them that waits says nothing of those.
    """
    return job.overlap.pp or (vp > 1 and job.parallelism.vp == 1)


def overlaps_experts(job: Job, choice: Choice) -> bool:
    """Whether exchanges of experts travel beside work, as the job has them.

    Megatron-LM d98e8a64 overlaps them where a pipeline is interleaved, and neither
    whole layers nor experts are computed again (``overlap_moe_expert_parallel_comm`` of
    ``core/transformer/transformer_config.py``). A job that has both knows better.
    """
    axes = job.parallelism
    own = _can_overlap_experts(axes.pp, axes.vp, recompute_name(job))
    can = _can_overlap_experts(choice.pp, choice.vp, choice.recompute)
    return job.overlap.ep and (can or not own)


def _can_overlap_experts(pp: int, vp: int, recompute: str) -> bool:
    again = {"full", "moe"}.intersection(recompute.split(JOINED))
    return not again and (pp == 1 or vp > 1)


def recompute_keys(name: str) -> dict[str, Any]:
    """Keys of `placer.job.memory.Memory` that a recompute mode sets.

    What only another mode has goes back to its default.
    """
    usual = Memory()
    keys: dict[str, Any] = {
        "recompute": name,
        "recompute_modules": usual.recompute_modules,
    }
    if name == "full":
        return keys
    keys["recompute_method"] = usual.recompute_method
    keys["recompute_layers"] = usual.recompute_layers
    if name not in ("none", "op"):
        keys["recompute"] = "selective"
        keys["recompute_modules"] = tuple(name.split(JOINED))
    return keys


def recompute_name(job: Job) -> str:
    """The mode of a job, as `Choice.recompute` has it."""
    memory = job.memory
    if memory.recompute != "selective":
        return memory.recompute
    return JOINED.join(memory.recompute_modules)
