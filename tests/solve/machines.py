"""Random machines of 64 to 512 GPUs, fragmented, and jobs of matching size."""

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.topology.model import Tier
from tests.solve.random_cases import machine_of

AXES = (
    {"tp": 4, "pp": 4},
    {"tp": 2, "cp": 2, "pp": 2},
    {"tp": 8},
    {"tp": 2, "pp": 3},
    {"tp": 4, "cp": 2, "pp": 2, "vp": 2},
    {"tp": 2, "ep": 4, "etp": 1},
    {"tp": 1, "ep": 8, "pp": 2},
)
ORDERS = (("tp", "cp", "ep", "dp", "pp"), ("tp", "cp", "ep", "pp", "dp"))
MODEL = Model("m", 24, 4096, 8192, 32, 8, 32000)
SPARSE = Model("s", 24, 2048, 4096, 32, 8, 32000, True, False, 16, 2, 0, 1024, 12)


def tiers(rng, count):
    """Slower tiers further out, NVLink in the node or in the rack as well."""
    up_to = rng.choice((1, 2))
    names = ("node", "rack", "block")[: count - 1]
    speed = (450e9, 450e9 if up_to == 2 else 50e9, 50e9, rng.choice((50e9, 25e9)))
    return [
        Tier(
            name,
            speed[t],
            (1 + 2 * t) * 1e-6,
            t < up_to,
            rng.choice((1.0, 2.0)) if t == count - 1 else 1.0,
            1.0,
            450e9 / speed[t] + t,
        )
        for t, name in enumerate((*names, "cluster"))
    ]


def fragmented(rng):
    """A machine of equal nodes of which some racks miss a few, others are whole."""
    size = rng.choice((4, 8))
    count = rng.choice((3, 4))
    rack_size = rng.choice((4, 6, 9))
    gpus = []
    rack = []
    racks = rng.randint(3, 9)
    for r in range(racks):
        held = rack_size if rng.random() < 0.5 else rng.randint(1, rack_size)
        gpus += [size] * held
        rack += [r] * held
    while sum(gpus) < 64:
        gpus.append(size)
        rack.append(racks - 1)
    if rng.random() < 0.3:
        gpus = [g - rng.choice((0, 0, 0, 1, 2)) for g in gpus]
    if rng.random() < 0.3:
        order = list(range(len(gpus)))
        rng.shuffle(order)
        gpus, rack = [gpus[i] for i in order], [rack[i] for i in order]
    first = {}
    rack = [first.setdefault(r, len(first)) for r in rack]
    blocks = [[r // 2 for r in rack]] if count == 4 else []
    return machine_of(gpus, [rack, *blocks, [0] * len(gpus)], tiers(rng, count))


def matching_job(rng, topology, objective):
    """A job that takes up to all GPUs of the machine."""
    sizes = dict(rng.choice(AXES))
    replica = sizes.get("tp", 1) * sizes.get("cp", 1) * sizes.get("pp", 1)
    step = sizes.get("ep", 1)
    most = topology.num_gpus // replica
    dp = rng.choice((most, most, max(1, most - 1), max(1, most // 2))) // step * step
    sizes["dp"] = max(dp, step)
    sizes.setdefault("etp", sizes.get("tp", 1))
    order = ORDERS[0] if step > 1 else rng.choice(ORDERS)
    names = [tier.name for tier in topology.tiers]
    require = {}
    if rng.random() < 0.6:
        require["tp"] = rng.choice(names[:2])
    if rng.random() < 0.4:
        axis = "ep" if step > 1 else rng.choice(("cp", "pp"))
        require[axis] = rng.choice(names[1:])
    return Job(
        name="matching",
        parallelism=Parallelism(**sizes, order=order),
        model=None if objective == "hop-cost" else SPARSE if step > 1 else MODEL,
        sequence=4096,
        micro_batches=sizes.get("pp", 1) * 2,
        compute=Compute(micro_batch_time=0.05),
        require=require,
        launcher=rng.choice(("free", "node-contiguous")),
        weights={"tp": 4000, "cp": 400, "pp": 40, "dp": 4, "ep": 64, "edp": 4},
    )
