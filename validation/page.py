"""The page: what is measured, what the model says, what is missed and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from placer.cost import DIFFERENCE
from validation import azure, exchanges, fabric, pairs, steps, uplinks
from validation.causal import rate_errors as causal_rate_errors
from validation.files import RATES, SERIES
from validation.markdown import milliseconds, percent, seconds, table
from validation.terms import ALIKE, term_table

INTRODUCTION = """\
# Steps beside public measurements

`python -m validation` writes this page from `validation/`, and the fits into the job
presets; a test compares both with what the code says now. `validation/README.md` says
how steps were taken from logs. [Validation](../validation.md) has the conclusions.

`placer calibrate` fits micro-batch time and fixed time to all points of a series, and
nothing else. A point is judged by what the other points of its series predict. Rates of
machines come from data sheets, framing and NCCL's table, never from a step."""

STEPS = """\
Measured steps are medians over the runs of one configuration. The error is predicted
over measured, less one, when the point is left out; of the last series and of Theia's
one point that of the fit. `placer calibrate validation/points/SERIES.yaml` prints every
point."""

INTERVALS = """\
## How sure the constants are

Constants are weighted least squares of relative residuals. The scatter of runs is known
from repeated ones; what the model misses is the variance with which the residuals sum
to their degrees of freedom ([Paule and Mandel
1982](https://doi.org/10.6028/jres.087.022)). Intervals take Student's t ([Knapp and
Hartung 2003](https://doi.org/10.1002/sim.1482)); on invented series they hold the truth
as often as they say (`tests/calibrate/test_estimate.py`). Of the {all} points below,
{inside} lie inside the interval that the other points give."""

NOISE = """\
## Differences of two placements

Two placements of one job share micro-batch time, fixed time, bubble and what the model
misses in them. No public pair of runs differs in its placement alone. The nearest are
runs of one system with the same micro-batches on more or fewer machines, which bound
the noise of a difference from above:

| what | 95 % of the differences lie within | degrees of freedom |
| --- | ---: | ---: |
| predicted over measured, one system and compute | {model} | {model_degrees} |
| two runs of one configuration | {runs} | {run_degrees} |

`tune` and `allocate` take {used} of the step for both; `place` and `diff` give an
interval ([how sure](../cost-model.md#how-sure-a-difference-is)). Azure's 112 and 128
racks: published {published} apart, predicted {predicted}. Its three public runs of 128
racks differ by 1.9 %: to see one percent takes several runs of each."""

WHY_STEPS = """\
- **GPT-3**: one configuration on two fabrics (Eos and Azure, dp 336) is 1.7 % apart; to
  the model the two are one.
- **DeepSeek-V3**: no conclusion. An evaluation follows each step.
- **Theia**: one configuration cannot tell the fixed time; 60 ms are assumed.
- **Llama 3, sequences of 131,072**: the paper does not say whether its rates count all
  of attention or the causal half. {causal}"""

PAIRS = """\
## Pairs

In a pair something else than replicas changes: micro-batch, degrees, recomputation,
overlap. The rate is the one at which the first step takes what was measured, the fixed
time the [assumed](../assumed.md) one, and the second step is predicted
(`validation/pairs.yaml`). No constant was fitted to any. The median error is {median},
and {within} lie within {most:.0%}."""

WHY_PAIRS = """\
- **Qwen3 30B, overlapped**: in the source's profile 37 % of the exchanges run beside
  products; the model hides all that these have time for.
- **Moonlight**: 16 ms a layer are mostly its host's, and modules computed again are
  calls that no source times.
- **Llama 3.1 8B on 256 B200**: 4, 8, 16 and 32 hosts take 0.188, 0.189, 0.193 and 0.221
  s with the same work. Neither bytes nor latency of rings jump so.
- **Llama 3.1 8B on 128 H100**: this submitter launches without graphs; launches of 12
  ms a layer would explain it."""

TERMS = """\
## What the data test

Each term is taken out and everything calibrated again. "Untested" are data on which no
error moves by {alike}. The four series say next to nothing of the network: their
constants take it up. Pairs and the rows of Table 4 do say something."""

CAUSAL = """\
Counted causal, rates and work alike, rows 2 and 3 are predicted {} and {} off."""

UNVALIDATED = """\
## What remains unvalidated

No public measurement shows these by themselves: they hide behind compute or are small.

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
| tied embeddings, adapters, groups of the user's own | volumes |
| slow hosts and NICs (`compute_factor`, `bandwidth_factor`) | time over what is left |
| rails: the detour to another one | an NVLink hop more a message |
| islands in a node | their rates alone |
| links between regions | inputs of a simulator (HALoS, arXiv 2506.04531) |
| latency of hops | [NCCL's table](../cost-model.md#collectives), no protocols |
| what one placement saves | inputs drawn, in the cost model |"""

AZURE = """\
Placed as it ran: a replica a rack, 16 of 18 trays, racks in order. The points that are
not Azure's alone give {without} for this step (measured {measured}, {error})."""

MISTAKES = """\
Single mistakes on the same run. "Expected" is arithmetic on volumes and rates, not a
result of the model."""

BUS = """\
GB/s, measured / predicted. What the switch reaches when it reduces was set on one node
of 8 H100 and one rack of 72 GB200; everything between racks is predicted. Short
messages are over-estimated: the model has no launch cost. SHARP is missing. Sizes of
reduce-scatters are assumed, as their source gives none."""

DISPATCH = """\
## Dispatch and combine

GB/s of logical bytes of 4,096 tokens of width 7,168 in BF16, a token once to each GPU
that has one of its eight experts, as a framework calls them and of kernels alone
(HybridEP, shifangx/DeepEP 1242eb4f, `Hybrid-EP_Intra-node_Implementation.md`). Four
nodes of 8 H100 send 61 GB/s a NIC (deepseek-ai/DeepEP 0297fc80); the model says 63."""

TRANSFERS = """\
## Transfers between roles

A copy of 359.6 billion parameters in BF16 from one rack of GB200 to another, 50 GB/s a
GPU (marin-community/marin issue 7695). Both constants of the rule are from these three,
so they say how far it is off. Bytes alone are counted: a whole update of Qwen3-235B on
160 H200 takes 2 s, of which the transfer is 0.4 (Lequn Chen, le.qun.ch, 2025-09-07)."""


CONTENTION = """\
Reduce-scatters of 2^28 bytes a group on 8 racks of 4 GPUs, uplinks of 400 GB/s at 1:1
to 1:7: groups inside racks, four rail groups, a ring of 32 in two orders. Against an
event simulation on the congestion-aware classes of astra-sim/astra-network-analytical
(599a0473) the model is {} off."""

SHARES = """\
Rings of 4 to 16 on racks and pods at 1:1 to 1:7, against a flow simulation
(`validation/flows.py`, max-min fair as the model): the slowest group, predicted over
simulated, less one. Where links serve one message after the other (ASTRA-sim) the model
is up to 14 % low for rings of 16 at 1:4 and 1:7."""


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
    parts += [steps.fits(SERIES)]
    causal = CAUSAL.format(*map(percent, causal_rate_errors()))
    parts += [WHY_STEPS.format(causal=causal)]
    parts += [_pairs(), pairs.pair_table(), WHY_PAIRS]
    parts += [TERMS.format(alike=f"{100 * ALIKE:g} %"), term_table(), _noise()]
    parts += ["## Azure, 8,192 GB200", _azure(), azure.step_parts()]
    parts += [MISTAKES, azure.mistakes(), _split_pair()]
    parts += ["## Bus bandwidths", BUS, fabric.bus_bandwidths()]
    parts += [DISPATCH, exchanges.dispatches(), TRANSFERS, exchanges.transfers()]
    parts += ["## Shared uplinks", CONTENTION.format(fabric.contention())]
    parts += [SHARES, uplinks.errors()]
    parts += [UNVALIDATED]
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
