"""Plans that name racks and blocks, for the formats that speak of them."""

from dataclasses import replace

from hypothesis import strategies as st

from tests.emit.readback import plan_of

TIERS = ("node", "rack", "block", "cluster")


def tiered(
    racks,
    blocks=None,
    *,
    gpus=1,
    scale_up=1,
    order="tp-cp-ep-dp-pp",
    **sizes,
):
    """Nodes n0, n1, ... in these racks and blocks, ranks on them one after another."""
    seats = [(f"n{k}", gpu) for k in range(len(racks)) for gpu in range(gpus)]
    plan = plan_of(seats, **sizes)
    domains = {"rack": tuple(racks)}
    domains["block"] = tuple(blocks or ["b"] * len(racks))
    return replace(
        plan,
        topology={"name": "t", "sha256": "", "tiers": TIERS, "scale_up": scale_up},
        job={**plan.job, "order": order},
        domains=domains,
    )


@st.composite
def tiered_plans(draw):
    """Up to 12 nodes in some racks of some blocks, in any order."""
    block_of_rack = draw(st.lists(st.sampled_from("AB"), min_size=1, max_size=4))
    rack = st.integers(0, len(block_of_rack) - 1)
    racks = draw(st.lists(rack, min_size=1, max_size=12))
    return tiered(
        [f"r{k}" for k in racks],
        [block_of_rack[k] for k in racks],
        gpus=draw(st.integers(1, 3)),
        scale_up=draw(st.integers(1, 4)),
    )
