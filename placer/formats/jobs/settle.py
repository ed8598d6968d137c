"""What follows for a job once all its sources are joined, and what is assumed then.

The rate of compute is a share of the peak of the machine's GPUs: what matrix products
sustain, without communication, bubbles and fixed time, which the step has besides. A
vocabulary changes the first and the last stage a little, and no traffic in which
placements differ; that of Llama 3 (128,256, Meta's model card) is as good as any.
"""

from __future__ import annotations

from math import lcm, prod

from placer.assumed import RATE
from placer.base.naming import named
from placer.formats.jobs.findings import (
    DP_MULTIPLE,
    EVEN_PARTS,
    GLOBAL_BATCH,
    GPUS,
    Fact,
    Findings,
    Place,
)
from placer.job.memory import PEAK_OF
from placer.topology.model import Topology
from placer.topology.read import usual_gpu_of

_BLOCK = ("parallelism.tp", "parallelism.cp", "parallelism.pp")
_DP = "parallelism.dp"

# What every job needs, in words, with the option that says it.
_NEEDED = {
    "model.layers": "the number of layers",
    "model.hidden": "the width of the model",
    "model.heads": "the number of attention heads",
    "model.ffn": "the width of the feed-forward",
    "model.vocab": "the size of the vocabulary",
    "sequence": "the length of a sequence in tokens",
    "micro_batch": "the number of sequences of a micro-batch",
    "micro_batches": "the number of micro-batches of a replica and step",
}
_VOCABULARY = 128_256
TIME = "compute.micro_batch_time"


def settle(
    found: Findings, machine: Topology | None = None, asks_time: bool = True
) -> None:
    """Derive sizes, apply the rules of the frameworks, and ask for what is missing.

    Problems and questions are added to ``found``. What does not fit where a value is
    asked for may fit once it is told, and is no problem before. Where it is known which
    ``machine`` the job runs on, what is usual there is assumed
    (`assume_usual`); no rate where nobody ``asks_time``.
    """
    in_doubt, sure = bool(found.asked), len(found.problems)
    _replicas(found)
    _micro_batches(found)
    if in_doubt:
        del found.problems[sure:]
    if found.problems:
        return
    for rule in found.rules:
        rule(found)
    if in_doubt:
        found.problems.clear()
    _even_parts(found, machine)
    if not (asks_time or says_time(found)):
        found.derive(RATE, 1.0, "nothing that is asked depends on it")
    if machine is not None:
        assume_usual(found, machine)
    _ask(found)


def _even_parts(found: Findings, machine: Topology | None) -> None:
    """Name the tier of NVLink domains, of which a machine's nodes are the smallest."""
    fact = found.facts.pop(EVEN_PARTS, None)
    if fact is None or found.integer("parallelism.ep", 1) == 1:
        return
    if machine is None:
        found.notes.append(
            f"{fact.value} ({fact.origin}) wants ep groups in equal parts, one an "
            f"NVLink domain: {named('even', {'ep': 'TIER'})} where that is known"
        )
        return
    tier = machine.tiers[max(machine.scale_up_tier, 0)].name
    rule = f"{fact.value} wants equal parts, one a {tier}"
    found.derive("even.ep", tier, rule, fact.place)


def block(found: Findings) -> int:
    """The world size is a multiple of this: ranks of replicas, experts whole."""
    tp, cp, pp = (found.integer(key, 1) for key in _BLOCK)
    etp = found.integer("parallelism.etp", tp)
    ranks = tp * cp * pp * found.integer(DP_MULTIPLE, 1)
    return lcm(ranks, etp * found.integer("parallelism.ep", 1) * pp)


def _replicas(found: Findings) -> None:
    """The data-parallel size, from the GPUs and the sizes of the other axes."""
    sizes = [found.integer(key, 1) for key in _BLOCK]
    ranks, product = prod(sizes), block(found)
    if found.has(_DP):
        _check_given(found, found.integer(_DP) * ranks)
        return
    names = " x ".join(
        f"{key.partition('.')[2]} {size}"
        for key, size in zip(_BLOCK, sizes, strict=True)
        if size > 1
    )
    gpus = found.integer(GPUS)
    multiple = f", a multiple of {product:,}" if product > 1 else ""
    hint = named("gpus", "N") + multiple
    if not gpus and any(question.key == GPUS for question in found.asked):
        return
    if not gpus:
        found.ask(_DP, "how many GPUs the job has is not said", hint)
    elif gpus % product:
        fact = found.facts[GPUS]
        words = _words(found, names, ranks, product)
        message = f"{words} does not divide the {gpus:,} GPUs of {fact.origin}"
        near = max(product, round(gpus / product) * product)
        if fact.kind == "given":
            found.problem(GPUS, message, f"the nearest that fits is {near:,}")
        else:
            found.ask(_DP, message, hint, fact.place)
    else:
        rule = f"{gpus:,} GPUs / ({names})" if names else f"{gpus:,} GPUs"
        found.derive(_DP, gpus // ranks, rule, found.facts[GPUS].place)


def _check_given(found: Findings, world: int) -> None:
    """GPUs that an option gives must be those that the sources say."""
    given = found.facts.get(GPUS)
    if given is not None and given.kind == "given" and given.value != world:
        dp = found.facts[_DP]
        message = f"the sources say {world:,} GPUs: dp {dp.value}, {dp.origin}"
        found.problem(
            GPUS, message, f"leave it out, or {named('settings', {f'job.{_DP}': 'N'})}"
        )
    elif given is None or given.value != world:
        found.facts.pop(GPUS, None)
        found.derive(GPUS, world, "tp x cp x pp x dp")


def _words(found: Findings, names: str, ranks: int, product: int) -> str:
    """What the GPUs must be a multiple of."""
    multiple = found.integer(DP_MULTIPLE, 1)
    if multiple > 1:
        of_replicas = found.facts[DP_MULTIPLE].origin
        names = f"{names} x {of_replicas}" if names else of_replicas
    if product == ranks * multiple:
        return f"{names} = {product:,}"
    tp, _, pp = (found.integer(key, 1) for key in _BLOCK)
    etp = found.integer("parallelism.etp", tp)
    ep = found.integer("parallelism.ep", 1)
    return f"etp {etp} x ep {ep} x pp {pp} = {etp * ep * pp:,}"


def _micro_batches(found: Findings) -> None:
    """The micro-batches of a replica, from the sequences of a step."""
    batch, one = found.integer(GLOBAL_BATCH), found.integer("micro_batch")
    dp = found.integer(_DP)
    if found.has("micro_batches") or not (batch and one and dp):
        return
    if batch % (one * dp):
        message = (
            f"{batch:,} sequences are no multiple of micro_batch x dp = {one} x {dp} = "
            f"{one * dp:,}"
        )
        found.problem(GLOBAL_BATCH, message, _nearest(found, batch, one))
        return
    rule = f"global batch {batch:,} / (micro_batch {one} x dp {dp})"
    place = found.facts[GLOBAL_BATCH].place
    found.derive("micro_batches", batch // (one * dp), rule, place)


def _nearest(found: Findings, batch: int, one: int) -> str:
    """The world size nearest to the one given whose replicas divide the batch."""
    replica = prod(found.integer(key, 1) for key in _BLOCK)
    step, gpus = block(found), found.integer(_DP) * replica
    most = batch // one * replica
    fits = (
        world
        for distance in range(0, max(gpus, most) + step, step)
        for world in (gpus - distance, gpus + distance)
        if 0 < world <= most and batch % (one * (world // replica)) == 0
    )
    near = next(fits, 0)
    return f"the nearest that fits is {named('gpus', str(near))}" if near else ""


def _ask(found: Findings) -> None:
    """Ask for what every job needs and nothing says."""
    asked = {problem.key for problem in found.asked}
    for key, words in _NEEDED.items():
        if found.has(key) or key in asked:
            continue
        if key == "micro_batches" and asked & {_DP, GPUS} and found.has(GLOBAL_BATCH):
            continue  # follows from the GPUs
        hint = named("settings", {f"job.{key}": "N"})
        if key.startswith("model."):
            hint = f"join {named('job', 'hf:config.json')}, or {hint}"
        found.ask(key, f"{words} is not said", hint)
    if not says_time(found):
        message = "how long the work takes is in no source"
        hint = (
            f"{named('micro_batch_time', 'TIME')} (measured), or "
            f"{named('tflops', 'RATE')} of a GPU"
        )
        found.ask("compute", message, hint, Place(found.source))


# Shares of a peak that products sustain: the usual one, the lowest and the highest.
# Nine tenths of the median of dense runs that were published, in whole points, and
# about where nine of ten of them lie (``docs/assumed.md`` has the figures): who
# publishes has tuned, so others reach a little less. Sources: of bf16 arXiv 2407.21783,
# Table 4 (0.53), and four runs more (0.33 to 0.46); of fp8 MLPerf's (0.42, 0.43, 0.47)
# and 27 of NVIDIA's and torchtitan's (median 0.42); of fp4 MLPerf's (0.27, 0.34) and
# four of NVIDIA's (0.25 to 0.33).
_SHARES = {
    "bf16": (0.40, 0.30, 0.55),
    "fp8": (0.38, 0.25, 0.52),
    "fp4": (0.25, 0.15, 0.35),
}


def says_time(found: Findings) -> bool:
    """Whether anything says how long the work takes."""
    return found.has(TIME) or found.has(RATE)


def assume_usual(found: Findings, machine: Topology) -> None:
    """Set what is usual on a machine where no source says it."""
    _assume_rate(found, machine)
    if found.has("model.layers") and not found.has("model.vocab"):
        found.assume("model.vocab", _VOCABULARY, "Llama 3's: no source says it")


def _assume_rate(found: Findings, machine: Topology) -> None:
    """The rate that its GPUs reach."""
    if says_time(found):
        return
    gpu, whose = machine.gpu, machine.gpu.name or "its GPUs"
    if "bf16" not in gpu.peak:
        gpu, whose = usual_gpu_of(machine)
    precision = PEAK_OF[found.text("memory.gemm", "bf16")]
    if precision not in gpu.peak:
        precision = "bf16"
    shares, peak = _SHARES[precision], gpu.peak[precision] / 1e12
    usual, low, high = (float(f"{share * peak:.3g}") for share in shares)
    why = f"{100 * shares[0]:g} % of the {precision} peak of {whose}"
    place = Place(found.source)
    found.facts[RATE] = Fact(usual, "assumed", why, place, (low, high))
