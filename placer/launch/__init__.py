"""Inside a launched job: which process this is, its rank by the plan, and who is wrong.

Importing this package loads no array library; jobs start thousands of processes.
"""

from placer.launch.jax_mesh import (
    devices_in_plan_order,
    jax_arguments,
    jax_mesh,
    torch_arguments,
)
from placer.launch.process import Process, this_process
from placer.launch.ranks import (
    device_of_rank,
    node_rank_of_this_process,
    rank_of_this_process,
)

__all__ = [
    "Process",
    "device_of_rank",
    "devices_in_plan_order",
    "jax_arguments",
    "jax_mesh",
    "node_rank_of_this_process",
    "rank_of_this_process",
    "this_process",
    "torch_arguments",
]
