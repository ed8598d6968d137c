"""What `tune` found, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from placer.assumed import all_assumed, assumed_entry
from placer.base.errors import EmitError
from placer.draw.picture import Picture, ThemeName
from placer.emit.job_flags import job_flags
from placer.job.decode import job_digest
from placer.job.fixed import fixed_share
from placer.job.model import Job
from placer.report.tune_table import tune_csv, tune_html, tune_text
from placer.report.tune_words import degrees, verdict
from placer.report.words import gap_text
from placer.solve.run.solution import is_reached
from placer.topology.model import Topology
from placer.tune.choice import Choice
from placer.tune.found import Found, Own, Row
from placer.tune.kinds import differing, gain, methods, rated
from placer.tune.space import Space


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """The best degrees of a job on a machine.

    It shows itself in a notebook. ``pandas.DataFrame(tuning.rows)`` takes its rows.

    Attributes
    ----------
    machine : Topology
        The allocation.
    job : Job
        That was tuned.
    space : Space
        What could be chosen.
    found : Found
    own : Own or None
        The degrees that the job had.
    refused : mapping of str to int
        How many choices each rule of the framework refused.
    memory_limit : float, bytes
        Of a GPU.
    seed : int
        Of the search.
    """

    machine: Topology
    job: Job
    space: Space
    found: Found
    own: Own | None
    refused: Mapping[str, int]
    memory_limit: float
    seed: int

    def __repr__(self) -> str:
        return f"<placer.Tuning: {verdict(self.to_dict())}>"

    def _repr_html_(self) -> str:
        return tune_html(self.to_dict())

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A plain mapping a choice, best first; no two choices are alike."""
        found, model = self.found, self.job.model
        has_experts = model is not None and model.experts > 0
        return [
            self._row(row)
            | {
                "methods": list(methods(row.choice)),
                "alike": len(alike),
                "alike_in": differing([row, *alike], has_experts),
                "is_own_kind": index == found.of_kind,
                "rated": rated(row.choice, self.job)._asdict(),
            }
            for index, (row, alike) in enumerate(
                zip(found.rows, found.alike, strict=True)
            )
        ]

    @property
    def placed_rows(self) -> list[dict[str, Any]]:
        """A row for every choice that was placed."""
        return self._rows(self.found.placed)

    @property
    def best(self) -> Job:
        """The job with the best degrees."""
        return self.job_of(0)

    def job_of(self, index: int) -> Job:
        """The job with the degrees of a row, by its place in `rows`."""
        chosen = self.found.rows[index].choice.applied(self.job)
        said = f"{degrees(self._row(self.found.rows[index]))}, chosen by placer tune"
        return replace(chosen, description=said, sha256=job_digest(chosen))

    @property
    def unusable_gpus(self) -> list[int]:
        """Numbers of GPUs that were asked for, on which no legal choice fits."""
        front = self.found.by_gpus
        if not front or self.found.is_cut:
            return []
        return sorted(n for n in self.space.gpus if n < front[-1].choice.gpus)

    @property
    def is_proved(self) -> bool:
        """Whether no legal choice that fits is better than the first row."""
        best = self.found.rows[0].answer.step_time_s
        return is_reached(best, self.lower_bound_s)

    @property
    def lower_bound_s(self) -> float:
        """No choice has a placement with a shorter step, s."""
        bounds = [row.answer.lower_bound_s for row in self.found.placed]
        return min([self.found.least_s, *bounds])

    @property
    def proof(self) -> str:
        """What is proved of the first row, in a sentence."""
        if self.is_proved:
            return (
                "optimal under the model: every other legal choice that fits has a "
                "lower bound no better"
            )
        if not self.lower_bound_s:
            return "nothing is proved: time was up before all choices were listed"
        best, least = self.found.rows[0].answer.step_time_s, self.lower_bound_s
        worst = gap_text((best - least) / best)
        return f"no legal choice that fits can be better by more than {worst}"

    def summary(
        self, *, explain: bool = False, row: int = 0, place: Iterable[str] = ()
    ) -> str:
        """The result as text for people, at most 80 columns wide but for the table.

        Parameters
        ----------
        explain : bool
            Also say why the first row is better than the second, and than the degrees
            that the job had.
        row : int
            Of which the flags are shown.
        place : iterable of str
            Lines that say how the job with them is placed.
        """
        return tune_text(self.to_dict(), explain=explain, row=row, place=place)

    def draw(self, theme: ThemeName = "auto") -> Picture:
        """Step time over memory, and over GPUs where they differ, as a picture."""
        from placer.tune.plot import tune_plot

        return Picture(tune_plot(self, theme), lambda: self.placed_rows)

    def to_csv(self) -> str:
        """The rows as CSV: a header, then a line a row; numbers as in JSON."""
        return tune_csv(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """As ``placer tune --format json`` prints it."""
        found = self.found
        # Where the search was cut short some may be better, and nobody knows which.
        is_open = found.least_s < found.rows[0].answer.step_time_s
        return {
            "gpus": list(self.space.gpus) or self.machine.num_gpus,
            "available_gpus": self.machine.num_gpus,
            "global_batch": self.space.global_batch,
            "framework": self.space.framework,
            "considered": found.considered + sum(self.refused.values()),
            "pruned": {
                "rules": sum(self.refused.values()),
                "memory": found.too_large,
                "infeasible": found.infeasible,
                "bound": 0 if is_open else found.beaten,
                "undecided": found.beaten if is_open else 0,
            },
            "refused": dict(self.refused),
            "rows": self.rows,
            "best": 0,
            "own": self._own(),
            "gain": self._gain,
            "fronts": {
                "gpus": self._rows(found.by_gpus),
                "memory": self._rows(found.by_memory),
            },
            "unusable_gpus": self.unusable_gpus,
            "is_cut": found.is_cut,
            "is_short": found.is_short,
            "lower_bound_s": self.lower_bound_s,
            "memory_limit_bytes": self.memory_limit,
            "proof": self.proof,
            **assumed_entry(all_assumed(self.machine, self.job)),
            "fixed_share": fixed_share(self.job, found.rows[0].answer.step_time_s),
        }

    @cached_property
    def _gain(self) -> dict[str, Any] | None:
        """What the first row saves of the job's own step, and how sure that is."""
        best, own = self.found.rows[0], self.own
        if own is None or own.row is None or own.row.choice == best.choice:
            return None
        found = gain(self.machine, self.job, own.row, best, self.seed)
        return None if found is None else found.to_dict()

    def _own(self) -> dict[str, Any] | None:
        if self.own is None:
            return None
        choice = self.own.choice
        found = {
            "methods": list(methods(choice)),
            "rated": rated(choice, self.job)._asdict(),
        }
        if self.own.row is not None:
            return self._row(self.own.row) | found
        return (
            choice.to_dict()
            | found
            | {
                "flags": self._flags(choice),
                "status": "infeasible",
                "error": self.own.refusal,
            }
        )

    def _rows(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        return [self._row(row) for row in rows]

    def _row(self, row: Row) -> dict[str, Any]:
        choice, answer = row.choice, row.answer
        tokens = choice.global_batch * self.job.sequence
        reached = is_reached(answer.step_time_s, answer.lower_bound_s)
        return {
            **choice.to_dict(),
            "step_time_s": answer.step_time_s,
            "lower_bound_s": answer.lower_bound_s,
            "tokens_per_s_per_gpu": tokens / answer.step_time_s / choice.gpus,
            "memory_bytes": row.memory,
            "exposed_scale_out_s": answer.exposed_scale_out_s,
            "scale_up_domains": answer.domains,
            "restart_bytes": row.restart,
            "parts_s": dict(answer.parts),
            "flags": self._flags(choice),
            "status": "optimal" if reached else "feasible",
        }

    def _flags(self, choice: Choice) -> list[str]:
        """Words of the flags that choose it; none where there are none."""
        try:
            return list(job_flags(choice.applied(self.job), self.space.framework))
        except EmitError:
            return []
