"""Local search on the busiest port and uplink, for traffic of the user's own.

The step waits for the busiest of all ports and uplinks, and a change seldom touches
that one. So what is annealed is a sum over all of them of the power ``p`` of how busy
they are, relative to the busiest one at the start; ``p`` grows from round to round, and
the sum comes ever closer to the maximum (the p-norm does). Half of the units that are
tried to move have a part in what is busiest.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.cost.custom import TRAFFIC
from placer.solve.improve.anneal import anneal
from placer.solve.improve.port_loads import Added, Messages, PortLoads
from placer.solve.improve.region import flow_region
from placer.solve.tree.base import paced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from placer.job.model import Group
    from placer.solve.improve.region import MoveRegion
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
