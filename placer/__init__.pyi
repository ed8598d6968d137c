# The public names for type checkers, which do not see what `__getattr__` gives.
# isort: off
from placer.allocate.allocation import Allocation as Allocation
from placer.api.allocate import allocate as allocate
from placer.api.check import check as check
from placer.api.explain import explain as explain
from placer.api.place import place as place
from placer.api.predict import predict as predict
from placer.api.replace import Replacement as Replacement, replace as replace
from placer.api.report import report_html as report_html
from placer.api.result import Result as Result
from placer.api.score import score as score
from placer.api.tune import tune as tune
from placer.base.errors import (
    CheckError as CheckError,
    EmitError as EmitError,
    InfeasibleError as InfeasibleError,
    InputError as InputError,
    OutputError as OutputError,
    PlacerError as PlacerError,
    Problem as Problem,
    StoppedError as StoppedError,
)
from placer.draw import draw as draw
from placer.draw.picture import Picture as Picture
from placer.emit import emit as emit
from placer.formats.jobs.job import read_job as read_job
from placer.formats.machines.machine import read_topology as read_topology
from placer.injob.meshes import jax_mesh as jax_mesh, torch_mesh as torch_mesh
from placer.injob.ray_nodes import ray_nodes as ray_nodes
from placer.job.model import Job as Job
from placer.job.rules import Pin as Pin, Rules as Rules
from placer.placement.plan import Plan as Plan
from placer.placement.plan_file import read_plan as read_plan
from placer.placement.plan_file import write_plan as write_plan
from placer.placement.score import Score as Score
from placer.report.diff import PlanDiff as PlanDiff, diff as diff
from placer.sweep import sweep as sweep
from placer.sweep.result import Sweep as Sweep
from placer.topology.model import Topology as Topology
from placer.tune.tuning import Tuning as Tuning
from placer.version import __version__ as __version__
