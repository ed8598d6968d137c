"""The job's hop-cost graph as products of rings, chains and cliques.

Dense ranks are the product of axes tp x cp x pp x dp, expert ranks that of
ep x etp x pp x edp over the same ranks. Each product is cut the same way: a *stage*
(what one pipeline stage of one replica holds), a *chain* of stages, and *copies* of the
chain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placer.solve.problem.axes import EXPERT, Axis, axis_of

if TYPE_CHECKING:
    from placer.job.axes import Parallelism
    from placer.job.model import Job


@dataclass(frozen=True)
class Product:
    """A product graph on all ranks of a job.

    Attributes
    ----------
    stage : tuple of Axis
        Factors inside one pipeline stage of one copy, a clique only at the front.
    chain : Axis
        The pipeline; its edges form a path.
    copies : Axis
        Data parallel copies; a ring.
    """

    stage: tuple[Axis, ...]
    chain: Axis
    copies: Axis

    @property
    def has_edges(self) -> bool:
        """Whether any axis has a weight and more than one member."""
        return any(
            axis.size > 1 and axis.weight > 0
            for axis in (*self.stage, self.chain, self.copies)
        )

    def with_chain_share(self, share: float) -> Product:
        """The same product with only a share of the chain's weight."""
        chain = replace(self.chain, weight=share * self.chain.weight)
        return replace(self, chain=chain)


def chain_splits(job: Job) -> list[tuple[Product, ...]]:
    """Ways to write the job's graph as a sum of products; each is a valid reading.

    The pipeline's edges belong to both products, so their weight may be divided between
    them. Edges that no product can represent are left out, which only lowers a bound.
    """
    dense = _product(job, ("tp", "cp", "pp", "dp"))
    expert = _product(job, ("ep", "etp", "pp", "edp"))
    alone = replace(expert, chain=replace(expert.chain, weight=0.0))
    if not alone.has_edges or not _is_product(job.parallelism):
        return [(dense,)]
    if not _same_chains(job.parallelism):
        return [(dense, alone)]
    if not dense.with_chain_share(0.0).has_edges:
        return [(expert,)]
    return [
        tuple(
            product.with_chain_share(part)
            for product, part in ((dense, share), (expert, 1.0 - share))
        )
        for share in (0.0, 0.5, 1.0)
    ]


def _product(job: Job, names: tuple[str, str, str, str]) -> Product:
    # Edges of etp are those of tp, which the dense product has.
    weights = {**job.weights, "etp": 0.0}
    first, second, chain, copies = (axis_of(job, name, weights) for name in names)
    return Product((first, second), chain, copies)


def _is_product(parallelism: Parallelism) -> bool:
    """Whether expert coordinates name every rank once, with alike ``edp`` rings."""
    at = parallelism.coordinates
    key = np.zeros(parallelism.world_size, dtype=np.int64)
    for name in EXPERT:
        key = key * parallelism.size(name) + at[name]
    if len(np.unique(key)) < parallelism.world_size:
        return False
    along = at["edp"][parallelism.ranks_of_group["edp"]]
    return bool((along == along[0]).all())


def _same_chains(parallelism: Parallelism) -> bool:
    """Whether the ranks of one pipeline share all their other expert coordinates."""
    rows = parallelism.ranks_of_group["pp"]
    return all(
        bool((at[rows] == at[rows[:, :1]]).all())
        for at in (parallelism.coordinates[name] for name in ("ep", "etp", "edp"))
    )
