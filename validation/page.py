"""The page: what is measured, what the model says, what is missed and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from placer.cost import DIFFERENCE
from placer.job.models import flops_per_sample, read_model, total_parameters
from validation import azure, exchanges, fabric, pairs, steps, uplinks
from validation.causal import rate_errors as causal_rate_errors
from validation.files import RATES, SERIES
from validation.markdown import milliseconds, percent, seconds, table
from validation.terms import ALIKE, term_table

INTRODUCTION = """\
# Validation

How well does placer predict the time of a step? This page puts public measurements
beside its predictions, errors included. `python -m validation` writes it from
`validation/`, and the fits into the job presets; a test compares both with what the
code says now. `validation/README.md` in the source says how the measurements were
taken from the logs.

Rules: `placer calibrate` fits micro-batch time and fixed time to all points of a
series; nothing else is fitted. A point is judged by what the other points of its
series predict for it. Rates and efficiencies of machines come from data sheets,
framing and NCCL's table, as for the shipped presets, and are never chosen to match a
step. The hosts of a run are filled in order."""

STEPS = """\
Errors are predicted over measured, less one. Measured steps are medians over the runs
of one configuration, each the median of its run. "Predicted" and "error" are of the
fit to all points, "from the others" is the error when the point is left out, and
"interval" is where a run of it should then lie with 95 % confidence."""

INTERVALS = """\
## How sure the constants are

A measured step differs from the model by what the model misses there, and by the
scatter of runs. The scatter is known from repeated runs; the variance of what is
missed is that with which the weighted squares of the residuals sum to their degrees
of freedom ([Paule and Mandel 1982](https://doi.org/10.6028/jres.087.022)). Constants
are weighted least squares of relative residuals, never negative. Their intervals, and
those of predictions, take Student's t with as many degrees of freedom as there are
points to spare ([Knapp and Hartung 2003](https://doi.org/10.1002/sim.1482)); on
invented series they hold the truth as often as they say
(`tests/calibrate/test_estimate.py`). Of the {all} points below, {inside} lie inside
the interval that the other points give."""

NOISE = """\
## Differences of two placements

The interval of a step is not that of a difference. Two placements of one job share
micro-batch time, fixed time, bubble, and whatever the model misses in them: an error
there moves both steps alike and cancels. What does not cancel is what the model
misses of communication, and the scatter of the two runs that would show the
difference. No public pair of runs differs in its placement alone. The nearest are
runs of one system with the same micro-batches, on more or fewer machines: their
compute is one, their groups, fabric paths and hosts differ. So they bound the noise
of a difference from above.

| what | 95 % of the differences lie within | degrees of freedom |
| --- | ---: | ---: |
| predicted over measured, one system and compute | {model} | {model_degrees} |
| two runs of one configuration | {runs} | {run_degrees} |

`placer tune` and `allocate` take {used} of the step for both (`placer.cost`):
their choices differ in more than a placement. Of two placements `place` and `diff` know
more, and give an interval ([how sure](cost-model.md#how-sure-a-difference-is)). Azure's
112 and 128 racks are such choices: published {published} apart, predicted {predicted}.
The three public runs of its 128 racks differ by 1.9 %, more than all communication
between racks costs: to see one percent takes several runs of each."""

WHY_STEPS = """\
What is missed, and why:

- **GPT-3**: one configuration on two fabrics (Eos and Azure, dp 336) is 1.7 % apart.
  To the model the two are one, so it lies between them.
- **DeepSeek-V3**: no conclusion. An evaluation follows each step, so none of them is
  steady state. They scatter by 3 to 4 % within a run, and the three medians are not on
  a line in micro-batches. The model's exposed communication is a few ms in all three.
- **Llama 3, sequences of 131,072**: the paper does not say whether its rates count all
  of attention or the causal half. {causal}"""

PAIRS = """\
## Pairs

Along a series little changes but the replicas. In a pair something else does: the
micro-batch, degrees, recomputation, overlap. The rate of compute is the one at which
the first step takes what was measured, the fixed time is the one that is assumed where
nothing was calibrated ([assumed](assumed.md)), and the second step is predicted
(`validation/pairs.yaml`). No constant of the model was fitted to any of them. The
median error is {median}, and {within} lie within {most:.0%}."""

WHY_PAIRS = """\
What is missed, and why:

- **gpt-oss, ep 64 -> 8**: the recipe went from all-to-alls to HybridEP with it, and so
  does the pair. On B200 nothing is missed. On B300 the first row is as slow as on B200,
  whose NICs have half the rate: with such NICs the error would be 2.6 %. Not judged.
- **Qwen3 30B, micro-batch 1 -> 4**: the same change of the recipe brought HybridEP, and
  attention in graphs. The first step is as long as if hosts took 6 ms a layer or more;
  from there on the error is -3 %. Where it is known, `host_time` says it. Not judged.
- **Qwen3 30B, overlapped**: of HybridEP's exchanges 37 % run beside products in the
  source's own profile. The model hides all that products have time for, and takes the
  multiprocessors that they hold from them, 32 of 132.
- **Moonlight**: 16 ms a layer for 4,096 tokens on 8 H100 are mostly its host's. Modules
  that are computed again are calls of their own there, which no source times: the one
  dense layer costs 16 ms more, some thirty times its products, two norms 1.5 ms a
  layer.
- **Llama 3.1 8B on 256 B200**: 4, 8, 16 and 32 hosts take 0.188, 0.189, 0.193 and 0.221
  s, with the same files and work. Neither the bytes nor the latency of rings jump so.
  If each of 60 buckets had its ring's latency, the error would be 3 % less.
- **Llama 3.1 8B on 128 H100**: this submitter alone launches without graphs
  (`MCORE_CUDA_GRAPH`), and half the work saves it a third of the step. Launches of 12
  ms a layer would explain it, or 0.23 s of fixed time, four times what is assumed."""

TERMS = """\
## What the data test

Each term is taken out, everything is calibrated again, and the errors stand beside
those with all terms. "Untested" are data on which no error moves by {alike}. The four
series say next to nothing of the network, and nothing of exposed cp, ep and pp: these
hardly change along a series, so constants take them up. Pairs and the rows of Table 4
do say something."""

CAUSAL = """\
Counted causal, rates and work alike, rows 2 and 3 are predicted {} and {} off."""

UNVALIDATED = """\
## What remains unvalidated

No public measurement on this page shows these by themselves: they hide behind compute,
or are small beside the rest. Each stands on what is named beside it.

| term | stands on |
| --- | --- |
| all-gathers in steps, and over 16 nodes or more | the form of a reduce-scatter |
| several transfers on one NIC (`reshard`, `all_to_all`) | that they fill it |
| groups with unequal NICs on one uplink | fair shares, against flow simulations alone |
| gradients under pipeline messages | nothing: kinds of traffic do not slow each other |
| tp in pieces beside its products | the last piece, or what outlasts the product |
| cp by all-to-all | volumes; rings hide in every series, one has all-gathers |
| ep behind compute (`overlap: {ep: true}`) | half a layer's forward hides each |
| ZeRO-2 and ZeRO-3 each micro-batch, HSDP, `sync_every` | volumes, windows of a chunk |
| tied embeddings, adapters | volumes |
| groups and traffic of the user's own, relays | the collectives they are made of |
| slow hosts and NICs (`compute_factor`, `bandwidth_factor`) | time over what is left |
| rails: the detour to another one | an NVLink hop more a message |
| islands in a node | their rates alone |
| links between regions | [a simulator's inputs](#between-regions) |
| latency of hops | [NCCL's table](cost-model.md#collectives), no protocols |
| what one placement saves | [inputs drawn](cost-model.md#how-sure-a-difference-is) |

No public pair of runs differs in its placement alone."""

AZURE = """\
Placed as it ran: a replica a rack, 16 of 18 trays, racks in order. Times fitted on
all five points of its series. The three that are not Azure's alone give {without} for
this step (measured {measured}, {error})."""

VOLUMES = """\
Volumes a GPU and step: from the score, from closed forms, and the time they would
take at 720 GB/s of NVLink or 100 GB/s of one NIC. The score spreads 126 layers over 8
stages (15.75 a stage), the closed form of DP counts embedding and loss as a layer
each (16). Of the pipeline's ring the closed form counts the closing hop for every
chunk, the score for all but the last."""

MISTAKES = """\
Single mistakes on the same run. "Expected" is arithmetic on volumes and rates, not a
result of the model."""

BUS = """\
Bus bandwidths of collectives. The model counts NVLink at 82 % (NVLink 4) or 80 %
(NVLink 5) of the line rate; what the switch reaches when it reduces was set on one node
of 8 H100 and one rack of 72 GB200, and everything between racks is predicted. Short
messages are over-estimated: the model has no launch cost, and SHARP is missing.

Steps mostly gather and reduce-scatter. For nodes of 8 H100 one user gives the bus
bandwidth of reduce-scatters by nodes, but no size (NVIDIA/nccl issue 1229); 8 GB are
assumed. A hop of the model costs less than the 14 us of NCCL's Simple protocol, which
shows on long rings."""

DISPATCH = """\
## Dispatch and combine

GB/s of logical bytes of 4,096 tokens of width 7,168 in BF16, a token once to each GPU
that has one of its eight experts: means of dispatch and combine, as a framework calls
them and of their kernels alone (HybridEP, shifangx/DeepEP 1242eb4f,
`Hybrid-EP_Intra-node_Implementation.md`). The model takes the call: 0.82 of NVLink's
rate and 0.13 ms. Four nodes of 8 H100 send 61 GB/s a NIC (deepseek-ai/DeepEP 0297fc80,
README); the model says 63."""

TRANSFERS = """\
## Transfers between roles

A copy of the weights of a model of 359.6 billion parameters in BF16 from one rack of
GB200 to another, 50 GB/s a GPU (marin-community/marin issue 7695). A GPU reaches
another at about half of its NIC's rate, and a broadcast takes the NICs of a tray: both
constants are from these three, so they say how far the rule is off, 10 %. Bytes alone
are counted: a whole update of Qwen3-235B on 160 H200 takes 2 s (Lequn Chen, le.qun.ch,
2025-09-07), of which the transfer is 0.4 s; gathering, quantizing and loading are what
`fixed_time` of a transfer is for. NeMo-RL has 4.6 to 4.9 s for the same model
(NVIDIA-NeMo/RL pull request 2413)."""

REGIONS = """\
## Between regions

Nothing here is compared with a measurement. HALoS (Kim et al. 2025, arXiv 2506.04531)
publishes rates between four regions and speeds of workers (utnslab/halos 4b5bf737,
`examples/env.yaml`), which `geo-3-regions` takes its links from. They are what its
simulator is given, and its results are of asynchronous training, which no placement
reaches. The simulator takes bytes over the rate of the pair for a transfer, whatever
else is sent; here transfers share the link."""
CONTENTION = """\
Reduce-scatters of 2^28 bytes a group on 8 racks of 4 GPUs, uplinks of 400 GB/s over
the oversubscription. "Event" is an event simulation on the congestion-aware classes
of astra-sim/astra-network-analytical (599a0473), "rule" the bottleneck-link rule with
the latency of the worst hop in every step; the model takes the mean hop."""

SHARES = """\
Rings of 4 to 16 in random and partly shuffled placements, on racks and pods at 1:1 to
1:7, against a flow simulation (`validation/flows.py`: every chunk a transfer, links
shared max-min fairly, no latencies): the slowest group, predicted over simulated, less
one. This simulation shares links as the model does. In an event simulation on
ASTRA-sim's congestion-aware classes links serve one message after the other: of rings
of 16 at 1:4 and 1:7 the model is up to 14 % low."""


@dataclass(frozen=True)
class Aim:
    """One promise: what was asked for and what came out."""

    what: str
    aim: str
    found: str
    met: bool


def page() -> str:
    """The whole page, with a final newline."""
    parts = [INTRODUCTION, "## In short", _aims(), steps.left_out_summary()]
    parts += [_intervals(), "## Step times", STEPS]
    parts += [steps.section(name) for name in SERIES]
    causal = CAUSAL.format(*map(percent, causal_rate_errors()))
    parts += [WHY_STEPS.format(causal=causal)]
    parts += [_pairs(), pairs.pair_table(), WHY_PAIRS]
    parts += [TERMS.format(alike=f"{100 * ALIKE:g} %"), term_table(), _noise()]
    parts += ["## Azure, 8,192 GB200", _azure(), azure.step_parts()]
    parts += [VOLUMES, azure.volumes(), MISTAKES, azure.mistakes(), _split_pair()]
    parts += ["## Bus bandwidths", BUS, fabric.bus_bandwidths()]
    parts += [DISPATCH, exchanges.dispatches(), TRANSFERS, exchanges.transfers()]
    parts += ["## Shared uplinks", CONTENTION, fabric.contention()]
    parts += [SHARES, uplinks.errors()]
    parts += [REGIONS, "## Counts", _counts(), UNVALIDATED]
    return "\n\n".join(parts) + "\n"


def _aims() -> str:
    rows = [
        (aim.what, aim.aim, aim.found, "met" if aim.met else "**missed**")
        for aim in (*_step_aims(), *_azure_aims())
    ]
    return table(("what", "aim", "found", ""), rows)


def _step_aims() -> Iterator[Aim]:
    error = steps.left_out_rms()
    yield Aim(
        "steps of four series, each from the others of its series: rms error",
        "at most 0.65 %",
        percent(error).lstrip("+"),
        error <= 0.0065,
    )
    median, within = pairs.judged(pairs.errors())
    yield Aim(
        "pairs of steps, one from the other: median error",
        f"at most {pairs.MEDIAN:.0%}",
        f"{median:.1%}",
        median <= pairs.MEDIAN,
    )
    yield Aim(
        f"pairs of steps: within {pairs.MOST:.0%}",
        "90%",
        f"{within:.0%}",
        within >= 0.9,
    )
    rates = steps.calibrated(RATES).predictions[1:]
    for prediction, most in zip(rates, (0.03, 0.08), strict=True):
        error = steps.published_error(prediction)
        what = f"Llama 3 Table 4, rate over row 1: {prediction.point.name}"
        yield _within(what, error, most)


def _within(what: str, error: float, most: float) -> Aim:
    return Aim(what, f"within {most * 100:.0f} %", percent(error), abs(error) <= most)


def _azure_aims() -> Iterator[Aim]:
    exposed, share = azure.seen()
    yield Aim(
        "Azure: cross-rack time that is seen (published: about 20 ms, 1.6 %)",
        "16 to 24 ms",
        f"{milliseconds(exposed)}, {share:.1%}",
        0.016 <= exposed <= 0.024,
    )
    measured, predicted = azure.racks_apart()
    yield Aim(
        f"Azure: 128 racks over 112 (published: {percent(measured)})",
        "within 0.3 %",
        percent(predicted),
        abs(predicted - measured) <= 0.003,
    )


def _intervals() -> str:
    inside, every = steps.covered()
    return INTERVALS.format(all=every, inside=inside)


def _pairs() -> str:
    median, within = pairs.judged(pairs.errors())
    return PAIRS.format(median=f"{median:.1%}", within=f"{within:.0%}", most=pairs.MOST)


def _noise() -> str:
    """The noise of a difference: why it is another one, and how large."""
    model, model_degrees = steps.difference_noise()
    runs, run_degrees = steps.run_noise()
    published, predicted = azure.racks_apart()
    return NOISE.format(
        model=f"± {model * 100:.2f} %",
        model_degrees=model_degrees,
        runs=f"± {runs * 100:.2f} %",
        run_degrees=run_degrees,
        used=f"{DIFFERENCE * 100:.2g} %",
        published=percent(published),
        predicted=percent(predicted),
    )


def _azure() -> str:
    step, measured = azure.from_elsewhere()
    return AZURE.format(
        without=seconds(step),
        measured=seconds(measured),
        error=percent(step / measured - 1),
    )


def _split_pair() -> str:
    return (
        "With the CP pair split, the reduction of its gradient group takes "
        f"{azure.split_slowdown():.2f} times as long as before (expected: 2, one NIC "
        "instead of two)."
    )


def _counts() -> str:
    """Parameters, FLOPs and the bubble against published counts and arithmetic."""
    llama, gpt = read_model("llama3.1-405b"), read_model("gpt3-175b")
    deepseek = read_model("deepseek-v3")
    causal = flops_per_sample(llama, 8192, causal=True) / 1e12
    full = flops_per_sample(llama, 8192, causal=False) / 1e12
    rows = [
        _count(
            "Llama 3.1 405B parameters, 1e9", 405.853, total_parameters(llama) / 1e9
        ),
        _count("GPT-3 175B parameters, 1e9", 175.0, total_parameters(gpt) / 1e9),
        _count("DeepSeek-V3 parameters, 1e9", 671.0, total_parameters(deepseek) / 1e9),
        _count("405B, TFLOP a sample, full attention", 21507, full),
        _count("405B, TFLOP a sample, causal", 20676, causal),
    ]
    bubble = azure.scored()["bubble_s"] / azure.scored()["compute_s"] * 100
    rows.append(_count("Azure, % of bubble: (p-1)/(v m)", 700 / 64, bubble))
    return table(("count", "published or by hand", "placer", "apart"), rows)


def _count(what: str, expected: float, found: float) -> tuple[str, ...]:
    return what, f"{expected:,.6g}", f"{found:,.6g}", percent(found / expected - 1)
