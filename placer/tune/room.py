"""What choices need of a GPU's memory, worked out only where it matters.

Of choices with the same degrees and sharding none needs less than that of one sample a
micro-batch and full recomputation, layer by layer or as the job has it (`_floor`):

- States do not depend on either.
- A layer keeps no less than its input. What it keeps and what comes back when it is
  computed again are the whole layer together, so ``n`` layers that keep ``k`` each take
  ``n k + whole - k`` at work, which grows with ``k``. Layers that share one input take
  more at work and keep fewer inputs, so the job's own number of them is asked too.
- A micro-batch of b samples is b times as large. A rank holds as many as its schedule
  runs ahead, or all there are, ``B / b``: ``min(ahead b, B)`` samples.

So where that does not fit, nothing of these fits, and none of it is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf

from placer.cost.footprint.stages import footprint
from placer.job.model import Job
from placer.tune.choice import Choice


@dataclass
class Room:
    """Memory of a GPU, and what is known of choices."""

    job: Job
    limit: float  # bytes: 0 when unknown: all fits
    _needs: dict[Choice, float] = field(default_factory=dict)
    _least: dict[Choice, float] = field(default_factory=dict)
    _unseen: dict[Choice, list[Choice]] = field(default_factory=dict)

    def is_hopeless(self, choice: Choice) -> bool:
        """Whether nothing with its degrees and sharding fits; it is not looked at."""
        if not self.limit:
            return False
        samples = choice.micro_batch * choice.micro_batches
        slightest = choice._replace(
            micro_batch=1, micro_batches=samples, recompute="full"
        )
        if self._floor(slightest) <= self.limit:
            return False
        self._unseen.setdefault(slightest, []).append(choice)
        return True

    def holds(self, choice: Choice, job: Job) -> bool:
        """Whether a choice fits; ``job`` is the job with it."""
        self._needs[choice] = needs = needed(job)
        return not self.limit or needs <= self.limit

    def needs(self, choice: Choice) -> float:
        """Bytes of a choice that was looked at."""
        return self._needs[choice]

    def least(self) -> tuple[float, Choice]:
        """The least that a choice needs which was asked about, bytes, and it."""
        found = [(needs, choice) for choice, needs in self._needs.items()]
        most = min(found)[0] if found else inf
        for slightest in sorted(self._unseen, key=self._least.__getitem__):
            if self._least[slightest] > most:
                break
            unseen = self._unseen[slightest]
            found += [(needed(one.applied(self.job)), one) for one in unseen]
            most = min(found)[0]
        return min(found)

    def _floor(self, slightest: Choice) -> float:
        """Bytes below which no choice of these degrees and this sharding gets."""
        if slightest not in self._least:
            job = slightest.applied(self.job)
            usual = replace(job.memory, recompute_method="uniform", recompute_layers=1)
            self._least[slightest] = needed(replace(job, memory=usual))
            if job.memory != usual:
                self._least[slightest] = min(self._least[slightest], needed(job))
        return self._least[slightest]


def needed(job: Job) -> float:
    """Bytes of a GPU of the fullest stage; 0 without a model."""
    needs = footprint(job)
    return needs.total if needs else 0.0
