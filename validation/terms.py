"""What each term of the model does to the errors on every kind of public data.

A term is taken out, all is calibrated and predicted again, and the errors stand beside
those with it. Data on which no error moves say nothing of the term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from placer.calibrate.fit import calibrate
from placer.calibrate.text import rms
from placer.cost.step import Step
from placer.job import pace
from validation import pairs, steps
from validation.files import RATES, series
from validation.markdown import table

if TYPE_CHECKING:
    from placer.job.model import Job

# Shares of a step that are no difference.
ALIKE = 5e-4
AXES = ("tp", "cp", "ep", "pp")


class Found(NamedTuple):
    """Errors on every kind of data, as shares of a step.

    Attributes
    ----------
    series : float
        Rms of the points of the four series, each from the others.
    rates : float
        Of Table 4 of Llama 3 the worst of the two rows that are predicted.
    median, within : float
        Of the pairs the median, and the share within `pairs.MOST`.
    each : tuple of tuple of float
        All errors of the series, of the rows and of the pairs.
    """

    series: float
    rates: float
    median: float
    within: float
    each: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Term:
    """How one term is taken out.

    Attributes
    ----------
    name : str
    without : mapping of str to object
        What stands in for a name of the package.
    axes : tuple of str
        Whose exposed time is 0.
    job : callable
        The job without it.
    is_fixed : bool
        Whether it is the fixed time, which series fit.
    """

    name: str
    without: Mapping[str, Any] = field(default_factory=dict)
    axes: tuple[str, ...] = ()
    job: Callable[[Job], Job] = lambda job: job
    is_fixed: bool = False


def _zero(*_args: Any, **_kwargs: Any) -> float:
    return 0.0


def _one_rate(job: Job) -> Job:
    return replace(job, compute=replace(job.compute, attention_rate=1.0))


def _no_fixed(job: Job) -> Job:
    return replace(job, compute=replace(job.compute, fixed_time=0.0))


def _free(job: Job) -> Job:
    gradients = replace(job.data_parallel, sm_share=0.0)
    experts = replace(job.expert_parallel, sm_share=0.0)
    return replace(job, data_parallel=gradients, expert_parallel=experts)


def _whole(_job: object, **_sizes: int) -> float:
    return 1.0


_BESIDE, _PACE = "placer.job.beside.", "placer.job.pace."
TERMS = (
    Term("memory of routed experts' weights", {_BESIDE + "expert_bytes": _zero}),
    Term("launches of local experts", {_BESIDE + "EXPERT_TIME": 0.0}),
    Term("multiprocessors of hidden traffic", job=_free),
    Term("waiting for the host", {_BESIDE + "host_seconds": _zero}),
    Term("fixed time", job=_no_fixed, is_fixed=True),
    Term("efficiency of small products", {_PACE + "product_efficiency": _whole}),
    Term("memory of norms and activations", {_BESIDE + "elementwise_bytes": _zero}),
    Term("attention's own rate", job=_one_rate),
    Term("outputs' own rate", {"placer.cost.work.OUTPUT_SHARE": 0.0}),
    *(Term(f"exposed {axis}", axes=(axis,)) for axis in (*AXES, "dp")),
    Term("all communication", axes=(*AXES, "dp")),
)


def found(term: Term | None = None) -> Found:
    """Errors with all terms, or without one."""
    with _taken_out(term):
        own = [each for name in steps.JUDGED for each in _left_out(name, term)]
        of_rates = [
            steps.published_error(each)
            for each in _calibrated(RATES, term).predictions[1:]
        ]
        change = term.job if term else lambda job: job
        of_pairs = [
            pairs.error(replace(pair, jobs=tuple(map(change, pair.jobs))))
            for pair in pairs.pairs()
            if not pair.untested
        ]
    each = tuple(own), tuple(of_rates), tuple(of_pairs)
    return Found(rms(each[0]), max(map(abs, of_rates)), *pairs.judged(of_pairs), each)


def _left_out(name: str, term: Term | None) -> tuple[float, ...]:
    return _calibrated(name, term).left_out_errors


def _calibrated(name: str, term: Term | None) -> Any:
    """The fit of a series, whose jobs lack the term."""
    measured, change = series(name), term.job if term else (lambda job: job)
    points = tuple(replace(p, job=change(p.job)) for p in measured.points)
    return calibrate(replace(measured, job=change(measured.job), points=points))


@contextmanager
def _taken_out(term: Term | None) -> Iterator[None]:
    whole = Step.pipeline_s
    with ExitStack() as stack:
        if term is not None:
            for name, value in term.without.items():
                stack.enter_context(patch(name, value))
            if term.is_fixed:
                differ = "placer.calibrate.fit._differ"
                stack.enter_context(patch(differ, lambda *_args: False))
            left = set(AXES) - set(term.axes)
            stack.enter_context(
                patch.object(
                    Step,
                    "pipeline_s",
                    lambda self, axes: whole(self, tuple(a for a in axes if a in left)),
                )
            )
            if "dp" in term.axes:
                none = property(lambda _self: {"reduction": 0.0})
                stack.enter_context(patch.object(Step, "exposed_sync_s", none))
        pace._known.cache_clear()
        yield
    pace._known.cache_clear()


@cache
def term_table() -> str:
    """A row a term; "untested" where nothing moves."""
    usual = found()
    rows = [("all terms", *_shown(usual, usual, is_usual=True))]
    rows += [(f"without {one.name}", *_shown(found(one), usual)) for one in TERMS]
    head = (
        "",
        "four series, rms",
        "Table 4, worst",
        "pairs, median",
        f"pairs within {pairs.MOST:.0%}",
    )
    return table(head, rows)


def _shown(values: Found, usual: Found, *, is_usual: bool = False) -> tuple[str, ...]:
    """Errors, or that they are as before."""
    alike = [
        all(abs(a - b) < ALIKE for a, b in zip(one, other, strict=True))
        for one, other in zip(values.each, usual.each, strict=True)
    ]
    same = [*alike, alike[-1]]
    shown = (f"{v:.2%}" if i < 3 else f"{v:.0%}" for i, v in enumerate(values[:4]))
    texts = list(shown)
    return tuple(
        "untested" if none and not is_usual else text.replace("%", " %")
        for text, none in zip(texts, same, strict=True)
    )
