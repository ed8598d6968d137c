"""What `tune` found, as rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placer.report.words import gap_text
from placer.solve.run.solution import is_reached

if TYPE_CHECKING:
    from placer.degrees.search import Found, Row
    from placer.degrees.space import Space
    from placer.job.model import Job
    from placer.topology.model import Topology


@dataclass(frozen=True, eq=False)
class Tuning:
    """The best degrees of a job on a machine.

    Attributes
    ----------
    machine : Topology
        The allocation.
    job : Job
        That was tuned.
    space : Space
        What could be chosen.
    found : Found
    refused : mapping of str to int
        How many choices each rule of the framework refused.
    memory_limit : float, bytes
        Of a GPU; 0 when unknown.
    """

    machine: Topology
    job: Job
    space: Space
    found: Found
    refused: Mapping[str, int]
    memory_limit: float

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A plain mapping a choice, best first."""
        return [self._row(row) for row in self.found.rows]

    @property
    def best(self) -> Job:
        """The job with the best degrees."""
        return self.found.rows[0].choice.applied(self.job)

    @property
    def lower_bound_s(self) -> float:
        """No choice has a placement with a shorter step, s."""
        bounds = [row.answer.lower_bound_s for row in self.found.placed]
        return min([self.found.least_s, *bounds])

    @property
    def proof(self) -> str:
        """What is proved of the first row, in a sentence."""
        best, least = self.found.rows[0].answer.step_time_s, self.lower_bound_s
        if is_reached(best, least):
            return (
                "optimal under the model: every other legal choice that fits has a "
                "lower bound no better"
            )
        worst = gap_text((best - least) / best)
        return f"no legal choice that fits can be better by more than {worst}"

    def to_dict(self) -> dict[str, Any]:
        """As ``placer tune --format json`` prints it."""
        found = self.found
        asked = len(found.placed) + found.too_large + found.infeasible
        return {
            "gpus": list(self.space.gpus) or self.machine.num_gpus,
            "global_batch": self.space.global_batch,
            "framework": self.space.framework,
            "considered": found.considered + sum(self.refused.values()),
            "pruned": {
                "rules": sum(self.refused.values()),
                "memory": found.too_large,
                "infeasible": found.infeasible,
                "bound": found.considered - asked,
            },
            "refused": dict(self.refused),
            "rows": self.rows,
            "best": 0,
            "lower_bound_s": self.lower_bound_s,
            "memory_limit_bytes": self.memory_limit or None,
            "proof": self.proof,
        }

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
            "parts_s": dict(answer.parts),
            "status": "optimal" if reached else "feasible",
        }
