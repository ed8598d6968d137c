"""What Megatron-Core derives, and refuses, whoever configures it.

Rules are called with the joined findings. Source: NVIDIA/Megatron-LM d98e8a64,
``megatron/core/``: ``transformer/transformer_config.py`` (heads, stages, experts),
``distributed/distributed_data_parallel.py`` (buckets), ``parallel_state.py``
(instances of the optimizer), ``transformer/moe/moe_layer.py``.
"""

from __future__ import annotations

from placer.formats.jobs.findings import EVEN_PARTS, Findings, Place
from placer.formats.jobs.fsdp import model_of
from placer.job.models import total_parameters

REFUSES = "Megatron refuses this: "
BUCKET = "data_parallel.bucket_parameters"
_USUAL_BUCKET = 40_000_000


def apply_rules(found: Findings, overlap: bool, even: bool) -> None:
    """Derive what follows from the sizes of all sources."""
    messages(found, overlap=overlap)
    sequence_parallel(found)
    if even:
        stages(found)
    cuts(found)
    experts(found)
    buckets(found)


def refuse_fact(found: Findings, key: str, message: str, hint: str = "") -> None:
    """Record that Megatron refuses the fact of a key, at its place.

    Nothing while a value is asked for, on which it may depend.
    """
    if not found.unsure:
        found.problem(key, REFUSES + message, hint)


def sequence_parallel(found: Findings) -> None:
    """Drop sequence parallelism at tp 1."""
    key = "tensor_parallel.sequence"
    if found.integer("parallelism.tp", 1) == 1:
        place = found.facts[key].place if found.has(key) else None
        _forget(found, key)
        found.derive(key, False, "dropped at tp 1", place)


def precision(
    found: Findings, kind: str, recipe: str, place: Place, ends: int = 0
) -> None:
    """Matrix products in ``fp8`` or ``fp4``, in which their inputs are kept.

    ``ends`` layers at the start and the end stay in bf16.
    """
    gemm = {"fp4": "nvfp4"}.get(kind, "mxfp8" if recipe.startswith("mx") else kind)
    rule = f"{kind} {recipe}".rstrip()
    found.derive("memory.gemm", gemm, rule, place)
    if ends:
        found.later(_other_layers, ends, place)


def _other_layers(joined: Findings, ends: int, place: Place) -> None:
    layers = joined.integer("model.layers") - ends
    if layers > 0:
        joined.derive("memory.gemm_layers", layers, f"{ends} layers in bf16", place)


def messages(found: Findings, *, overlap: bool) -> None:
    """Overlap messages between stages where these are virtual."""
    if found.integer("parallelism.vp", 1) == 1:
        found.derive("overlap.pp", False, "no p2p overlap without virtual stages")
    else:
        found.derive("overlap.pp", overlap, "p2p overlap of virtual stages")


def stages(found: Findings) -> None:
    """Refuse layers that even stages do not divide."""
    pp, vp = (found.integer(f"parallelism.{axis}", 1) for axis in ("pp", "vp"))
    layers = found.integer("model.layers")
    ends = found.integer("stages.embedding") + found.integer("stages.loss")
    what = "layers, embedding and loss" if ends else "layers"
    total = layers + ends
    if layers and total % (pp * vp):
        virtual = vp > 1 and not total % pp
        by = f"pp x vp = {pp} x {vp}" if virtual else f"pp {pp}"
        refuse_fact(found, "model.layers", f"{total} {what} are not divisible by {by}")


def cuts(found: Findings, *, by_heads: bool = False) -> None:
    """Refuse heads and sequences that tp and cp cannot cut.

    ``by_heads``: cp shares out heads (Ulysses), not the two ends of a sequence.
    """
    heads = found.integer("model.heads")
    if not heads:
        return
    tp, cp = found.integer("parallelism.tp", 1), found.integer("parallelism.cp", 1)
    if heads % tp:
        refuse_fact(found, "model.heads", f"{heads} heads are not divisible by tp {tp}")
    groups = found.integer("model.kv_heads", heads)
    if groups % tp and tp % groups:
        words = f"{groups} query groups and tp {tp} do not divide each other"
        refuse_fact(found, "model.kv_heads", words)
    sequence = found.integer("sequence")
    if cp > 1 and sequence % (2 * cp) and not by_heads:
        words = f"sequence {sequence} is not divisible by 2 x cp {cp}"
        refuse_fact(found, "sequence", words)


def experts(found: Findings, *, sequence: bool = True) -> None:
    """Set what experts have where nothing says it, and refuse what they cannot.

    ``sequence``: tensor ranks must share sequences out too.
    """
    count, ep = found.integer("model.experts"), found.integer("parallelism.ep", 1)
    if not count:
        if not found.integer("model.layers"):  # no shape yet: it is asked for
            return
        found.facts.pop("parallelism.etp", None)
        if ep > 1:
            refuse_fact(found, "parallelism.ep", "expert parallelism without experts")
        return
    if count % ep:
        words = f"{count} experts are no multiple of ep {ep}"
        refuse_fact(found, "parallelism.ep", words)
    tp = found.integer("parallelism.tp", 1)
    found.derive("parallelism.etp", tp, f"tp {tp}")
    found.derive("model.top_k", 2, "Megatron's default")
    if ffn := found.integer("model.ffn"):
        found.derive("model.expert_ffn", ffn, f"ffn {ffn}")
    if sequence and tp > 1 and not found.integer("tensor_parallel.sequence"):
        words = "experts with tensor and without sequence parallelism"
        refuse_fact(found, "model.experts", words)


def equal_parts(found: Findings, backend: str, place: Place) -> None:
    """What a back end for experts asks of their groups: HybridEP asserts it.

    NVIDIA/Megatron-LM, ``megatron/core/transformer/moe/fused_a2a.py``.
    """
    if backend.lower() == "hybridep":
        found.read(EVEN_PARTS, "HybridEP", place)


def optimizer_instances(found: Findings, instances: int, place: Place) -> None:
    """Share the optimizer out inside each of several groups of replicas.

    FSDP shares out all it has inside a group: hybrid sharding.
    """
    if instances < 2:
        return
    key = "data_parallel.sharding"
    sharding = found.text(key)
    members = found.integer("parallelism.dp") * found.integer("parallelism.cp", 1)
    if sharding == "ddp":
        words = f"{instances} optimizer instances without the distributed optimizer"
        refuse_fact(found, key, words)
    elif members % instances:
        words = f"{instances} optimizer instances do not divide dp x cp = {members}"
        refuse_fact(found, key, words)
    elif sharding == "zero3":
        rule = f"dp x cp {members} / {instances} instances"
        _forget(found, key)
        found.derive(key, "hsdp", rule, place)
        found.derive("data_parallel.shard_size", members // instances, rule, place)
    else:
        found.read("data_parallel.optimizer_instances", instances, place)


def buckets(found: Findings, count: int = 0, place: Place | None = None) -> None:
    """Set the parameters of a gradient bucket.

    All of a rank without overlap, or their share of ``count`` buckets, else the larger
    of 40 M and 1 M for each member of the gradients' group.
    """
    if found.text("data_parallel.sharding") not in ("ddp", "zero1", "zero2"):
        return
    members = found.integer("parallelism.dp") * found.integer("parallelism.cp", 1)
    whole = _parameters_of_rank(found)
    if not found.integer("data_parallel.overlap_reduce"):
        if whole:
            _forget(found, BUCKET)
            found.derive(BUCKET, whole, "one bucket without overlap")
    elif count and whole:
        rule = f"{whole:,} parameters of a rank / {count} buckets"
        found.derive(BUCKET, max(1, whole // count), rule, place)
    elif members:
        size = max(_USUAL_BUCKET, 1_000_000 * members)
        found.derive(BUCKET, size, f"the larger of 40 M and 1 M x dp x cp {members}")


def _forget(found: Findings, key: str) -> None:
    """Drop a fact that a rule replaces, unless an option gives it."""
    if found.has(key) and found.facts[key].kind != "given":
        del found.facts[key]


def _parameters_of_rank(found: Findings) -> int:
    """Parameters of a rank on average; 0 where the shape is not known."""
    model, needed = model_of(found), ("layers", "hidden", "ffn", "heads", "vocab")
    if model is None or not all(found.integer(f"model.{key}") for key in needed):
        return 0
    ranks = found.integer("parallelism.tp", 1) * found.integer("parallelism.pp", 1)
    return max(1, total_parameters(model) // ranks)
