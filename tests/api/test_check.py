"""``placer.check``: what a plan says of itself is worked out again and compared."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest

import placer
from placer import testing
from placer.api.check import checked
from placer.api.inputs import inputs_of_plan
from placer.placement.inputs import inputs_of
from placer.placement.plan_file import decode_plan, encode_plan
from placer.solve.bounds import hop_cuts
from placer.solve.bounds.ideal import IdealNetwork
from placer.topology.read import parse_topology

JOB = testing.job(
    "small",
    tp=2,
    pp=2,
    dp=2,
    order="tp-cp-ep-pp-dp",
    model={"layers": 4, "hidden": 256, "ffn": 512, "heads": 4, "vocab": 1000},
    sequence=512,
    micro_batches=4,
    compute={"micro_batch_time": "1ms"},
    weights={"tp": 10, "dp": 1},
    require={"tp": "node"},
)
MACHINE = parse_topology(
    """\
format: placer/topology
version: 1
name: racks
tiers:
  - {name: node, size: 2, bandwidth: 450GB/s, latency: 1us, scale_up: true}
  - {name: rack, bandwidth: 50GB/s, latency: 4us}
  - {name: cluster, bandwidth: 5GB/s, latency: 40us}
layout: "cluster:1 rack:3 node:2"
""",
    "racks.yaml",
)
HOSTS = "r1-n1,r2-n[1-2],r3-n[1-2]"
SECTIONS = ("topology", "job", "score", "baselines", "bound", "rules")


@pytest.fixture(scope="module")
def made():
    """The JSON of a plan made under rules, in an allocation."""
    rules = placer.Rules(at_most={"rack": 1}, avoid=("r1-n1",), spares={"cluster": 1})
    require = {"pp": "rack"}
    plan = placer.place(MACHINE, JOB, hosts=HOSTS, require=require, rules=rules).plan
    return json.loads(encode_plan(plan))


def leaves(value, path=()):
    """Path and value of every text and number."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from leaves(item, (*path, at))
    else:
        yield path, value


def others(value):
    """Values that are not this one, near and far."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int | float):
        return [value * 2 or 1, value / 2 or -1.0, value * (1 + 1e-6) or 1e-3, None]
    return ["junk", None]


def corrupted(data, path, value):
    """The plan with another value at a path; without the key for ``...``."""
    found = deepcopy(data)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return found


def answer(data):
    """What the check says, or why the plan cannot even be read."""
    try:
        plan = decode_plan(data, "plan.json")
        return "\n".join(checked(plan, inputs_of(plan, force=True)).false)
    except placer.InputError as error:
        return str(error)


def proved_again(plan, **options):
    try:
        placer.check(plan, bound=True, **options)
    except placer.CheckError as error:
        return "\n".join(error.violations)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_every_corruption_is_named(made, section):
    """Whatever leaf is changed or left out, the check names its key."""
    count = 0
    for path, value in leaves(made[section], (section,)):
        keys = [part for part in path if isinstance(part, str)]
        changes = [*others(value), *[...] * isinstance(path[-1], str)]
        if section in ("score", "baselines"):  # many and alike: a change each
            changes = [changes[count % len(changes)]]
        if keys[-1] == "argument":
            changes.remove("junk")  # words, which only the proof can tell
        for other in changes:
            found = answer(corrupted(made, path, other))
            named = keys[-1] in found or ".".join(keys[:2]) in found
            assert named, (path, other, found)
            count += 1
    assert count >= 14


HUGE = 10**400


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("score", "worst_group", "groups"), HUGE),
        (("inputs", "rules", "at_most", "rack"), HUGE),
        (("previous",), {"curve": [-HUGE]}),
        (("bound", "objective"), []),
        (("solver", "seed"), "junk"),
        (("bound", "more"), 1),
        (("inputs", "rules", "at_least"), {"rack": 1}),
    ],
)
def test_what_cannot_be_is_named(made, path, value):
    """A value of a wrong type, a huge number, a key or rule unknown."""
    assert ".".join(map(str, path)) in answer(corrupted(made, path, value))


def test_a_false_verdict_is_named(made):
    """Sentence and numbers are those of the plan; an older one has less, and holds."""
    text = made["verdict"]["text"]
    assert "verdict.text" in answer(corrupted(made, ("verdict", "text"), "Keep it"))
    for key, value in (("advice", "wait"), ("saved_s", 9.0), ("ranks_moved", 3)):
        assert f"verdict.{key}" in answer(corrupted(made, ("verdict", key), value))
    assert answer(made | {"verdict": text}) == ""
    reworded = corrupted(made, ("verdict", "text"), "The same in other words")
    assert answer(corrupted(reworded, ("solver", "version"), "0.1.9")) == ""
    assert answer({key: made[key] for key in made if key != "verdict"}) == ""


def test_another_version_is_told(made):
    """Differences of a plan by another version come with both versions."""
    other = made | {"solver": made["solver"] | {"version": "0.0.9"}}
    assert answer(other) == ""
    other["score"] = made["score"] | {"step_time_s": 1.0}
    assert f"placer 0.0.9 made the plan, this is {placer.__version__}" in answer(other)


def test_changed_inputs_are_named(made):
    """Inputs that are not those the plan names, and hosts it does not own."""
    path = ("inputs", "topology", "tiers", 1, "latency")
    assert "made for another topology" in answer(corrupted(made, path, 1e-3))
    path = ("inputs", "job", "sequence")
    assert "made for another job" in answer(corrupted(made, path, 1024))
    path = ("inputs", "hosts")
    found = answer(corrupted(made, path, "r1-n1,r2-n1,r3-n[1-2]"))
    assert "outside the allocation (inputs.hosts): the first is r2-n2" in found
    for key, other in (("hosts", "r["), ("hosts", 3), ("rules", []), ("job", {})):
        assert f"inputs.{key}" in answer(corrupted(made, ("inputs", key), other))


def test_the_library_refuses(made):
    """A halved step time raises `CheckError` with key, expected and found."""
    step = made["score"]["step_time_s"]
    path = ("score", "step_time_s")
    plan = decode_plan(corrupted(made, path, step / 2), "plan.json")
    with pytest.raises(placer.CheckError) as error:
        placer.check(plan)
    named = f"score.step_time_s: expected {step!r}, found {step / 2!r}"
    assert named in error.value.violations


def claimed(plan, objective, value, lower):
    """The plan with a bound that fits together."""
    gap = (value - lower) / value
    bound = {
        "objective": objective,
        "value": value,
        "lower_bound": lower,
        "gap": gap,
        "argument": "because",
        "status": "feasible" if gap else "optimal",
    }
    return replace(plan, bound=bound, verdict={})


def test_a_false_bound(made):
    """A bound above what another placement costs is false, that of the plan is not."""
    plan = decode_plan(made, "plan.json")
    assert proved_again(plan) == answer(made) == ""
    inputs = inputs_of(plan)
    hosts = "r1-n1,r2-n1,r3-n1,r1-n2"
    poor = placer.predict(inputs.topology, inputs.job, "slurm", hosts)
    value = poor.score["step_time_s"]
    poor = claimed(poor, "time", value, value)
    assert placer.check(poor) is None
    assert f"{value!r} is false: a placement was found" in proved_again(poor)


def test_a_bound_that_is_not_reached():
    """A bound above what can be proved in no time is unproved; the check says why."""
    axes = {"tp": 2, "pp": 4, "dp": 5, "order": "tp-cp-ep-pp-dp"}
    job = testing.job("open", **axes, weights={"tp": 10, "dp": 1}, launcher="free")
    topology = placer.read_topology("rack:5 node:3 gpu:4")
    hosts = [host for i, host in enumerate(topology.node_names) if i % 7 != 3]
    plan = placer.place(topology, job, hosts=hosts, effort="quick").plan
    value, lower = plan.bound["value"], plan.bound["lower_bound"]
    assert lower < value
    high = claimed(plan, "hop-cost", value, (value + lower) / 2)
    placer.check(high)
    found = proved_again(high, time_limit=0.0)
    assert "is unproved" in found
    assert "the search did not finish (time-limit)" in found


@pytest.mark.parametrize(
    ("objective", "of", "name", "found_too_high"),
    [
        ("hop-cost", hop_cuts, "rounded_up", lambda found: 1.1 * found),
        ("time", IdealNetwork, "speed", lambda found: found / 1.1),
    ],
)
def test_what_proves_a_bound_refuses_a_higher_one(
    objective, of, name, found_too_high, monkeypatch
):
    """By 1 %, though the code that found it finds it again; as it is, it proves it."""
    plan = placer.place(MACHINE, JOB, hosts=HOSTS, objective=objective).plan
    value, lower = plan.bound["value"], plan.bound["lower_bound"]
    assert proved_again(plan) == ""
    right = getattr(of, name)
    monkeypatch.setattr(of, name, lambda *given: found_too_high(right(*given)))
    high = claimed(plan, objective, value * 1.5, lower * 1.01)
    proved = float(proved_again(high).split(" prove only ")[1])
    assert 0.9 * lower < proved <= lower * (1 + 1e-9)


def test_numbers_of_an_older_model_are_told(made):
    """An older plan whose numbers agree with each other holds; notes name them."""
    other = deepcopy(made)
    for entry in (other["score"], *other["baselines"].values()):
        entry["step_time_s"] *= 1.01
    for key in ("value", "lower_bound"):
        other["bound"][key] *= 1.01
    bare = {key: value for key, value in other.items() if key != "inputs"}
    dated = other | {"solver": made["solver"] | {"version": "0.0.9"}}
    for data, given in ((bare, (MACHINE, JOB)), (dated, (None, None))):
        plan = decode_plan(data, "plan.json")
        assert placer.check(plan, *given, bound=True) is None
        false, older = checked(plan, inputs_of_plan(plan, *given))
        assert not false
        # The allocation, which baselines hang on, is among the inputs.
        usual = made["baselines"] if "inputs" in data else ()
        assert {line.partition(":")[0] for line in older} == {
            "score.step_time_s",
            *(f"baselines.{name}.step_time_s" for name in usual),
        }
        assert all("of an older cost model" in line for line in older)
        moved = data | {"gpu_of_rank": data["gpu_of_rank"][::-1]}
        assert checked(decode_plan(moved, "plan.json"), inputs_of_plan(plan, *given))[0]


def test_an_order_on_hosts_to_avoid_refutes_no_bound():
    """A usual order that uses more hosts to avoid breaks a rule, as any other does."""
    job = testing.job("pair", tp=2, dp=2, weights={"tp": 10, "dp": 1})
    avoid = placer.Rules(avoid=("r1-n2", "r2-n2", "r3-n2"))
    found = placer.place(MACHINE, job, rules=avoid)
    usual = found.plan.baselines["given-order"]
    assert usual["hop_cost"] < found.plan.bound["lower_bound"]
    assert usual["violates"] == [
        "1 of 3 hosts to avoid are used, 0 would do: the first is r1-n2"
    ]
    assert "your order uses nodes to avoid" in found.plan.verdict["text"]
    assert "* uses nodes to avoid" in found.summary()
    placer.check(found.plan, bound=True)
