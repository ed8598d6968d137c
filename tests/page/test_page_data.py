"""What the page of a difference is drawn from."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placer.page.packing import packed
from placer.page.seats import NOWHERE, picture_data
from placer.placement.host_orders import natural_key
from placer.placement.plan import Plan
from tests.report.test_diff import axes_of, replicas, two_plans


@given(two_plans())
def test_seats(plans: tuple[Plan, Plan]) -> None:
    """Every rank has the seat of its plan and its coordinates on every axis."""
    old, new = plans
    data = picture_data(old, new)
    machine, work = data["machine"], data["work"]
    assert set(machine["nodes"]) == set(old.nodes) | set(new.nodes)
    for side, plan in (("old", old), ("new", new)):
        assert work[f"{side}_rank"] == list(range(plan.world_size))
        hosts = [machine["nodes"][node] for node in work[f"{side}_node"]]
        assert hosts == list(plan.host_of_rank)
        assert work[f"{side}_gpu"] == plan.gpu_of_rank.tolist()
        for node, gpu in zip(work[f"{side}_node"], work[f"{side}_gpu"], strict=True):
            assert gpu < machine["gpus"][node]
        for node, rack, block in zip(
            plan.nodes, plan.domains["rack"], plan.domains["block"], strict=True
        ):
            home = machine["home_of_node"][machine["nodes"].index(node)]
            assert machine["homes"][home] == [block, rack]
    axes = axes_of(old)
    for axis, values in data["coordinates"].items():
        assert values == axes.coordinates[axis].tolist()
        assert len(data["colours"][axis]) == max(values) + 1
    sized = [a for a in ("pp", "cp", "tp") if axes.size(a) > 1]
    assert [a for a in data["coordinates"] if a in ("pp", "cp", "tp")] == sized


@given(two_plans())
def test_domains_are_in_the_order_of_their_names(plans: tuple[Plan, Plan]) -> None:
    """Racks follow each other by block and name, nodes by name inside their rack."""
    machine = picture_data(*plans)["machine"]
    keys = [
        [natural_key(name) for name in (*machine["homes"][home], node)]
        for node, home in zip(machine["nodes"], machine["home_of_node"], strict=True)
    ]
    assert keys == sorted(keys)
    assert machine["home_of_node"] == sorted(machine["home_of_node"])


def test_ranks_of_one_plan_alone() -> None:
    """A rank that stops has no new seat, one that starts no old seat."""
    order = "tp-cp-ep-pp-dp"
    work = picture_data(replicas(2, order), replicas(3, order))["work"]
    assert work["old_rank"] == [*range(8), *[NOWHERE] * 4]
    assert work["new_rank"] == list(range(12))
    assert work["old_node"][8:] == work["old_gpu"][8:] == [NOWHERE] * 4
    back = picture_data(replicas(3, order), replicas(2, order))
    assert back["work"]["new_rank"] == [*range(8), *[NOWHERE] * 4]
    assert back["coordinates"]["dp"] == np.repeat([0, 1, 2], 4).tolist()


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
RECORDS = st.lists(
    st.fixed_dictionaries({"a": SCALARS, "b": st.text(max_size=2)}), max_size=40
)
DATA = st.recursive(
    SCALARS | RECORDS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=9), inner),
)


def unpacked(value: Any, texts: list[str]) -> Any:
    """The inverse, as the page's script does it."""
    if isinstance(value, list):
        return [unpacked(item, texts) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("packed") is not True:
        return {key: unpacked(item, texts) for key, item in value.items()}
    columns = dict(value["columns"])
    for key in value["names"]:
        columns[key] = [texts[place] for place in columns[key]]
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


@given(st.dictionaries(st.sampled_from(["x", "y"]), DATA))
def test_packing_loses_nothing(data: dict[str, Any]) -> None:
    """Packed data unpacks to what it was."""
    found = packed(data)
    assert unpacked(found["value"], found["texts"]) == data


def test_packing_saves_names() -> None:
    """Names of keys and texts come once."""
    data = {"rows": [{"rank": i, "host": "a" * 40} for i in range(100)]}
    found = packed(data)
    assert found["texts"] == ["a" * 40]
    assert found["value"]["rows"]["columns"]["rank"] == list(range(100))
