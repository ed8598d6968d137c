"""A workload becomes one job: its roles' ranks in a row, its transfers as flows."""

import itertools
from collections import Counter

import numpy as np
import pytest

from placer.base.errors import InputError
from placer.documents import parse_document
from placer.job.read import decode_job
from placer.job.resize import reordered, resized
from tests.job.flows import flows
from tests.problems import problems_of
from tests.texts import file_text, table

ROLES = [
    {"name": "trainer", "job": {"parallelism": {"tp": 2, "pp": 2, "dp": 2}}},
    {"name": "rollout", "instances": 2, "job": {"parallelism": {"tp": 4}}},
]


def of_roles(roles, *transfers, source="w.yaml"):
    """A workload of these roles and transfers."""
    text = file_text("workload", roles=roles, transfers=transfers)
    return decode_job(parse_document(text, source))


def workload(*transfers):
    """A trainer of eight ranks and two rollouts of four."""
    sent = [{"from": "trainer", "to": "rollout", **row} for row in transfers]
    return of_roles(ROLES, *sent)


def held(job, rank, shape, sharded):
    """Cells of a (layers, width, replica) grid that a rank of a role holds."""
    axes, at = job.parallelism, job.parallelism.coordinates
    cells = []
    for cell in itertools.product(*map(range, shape)):
        stage, part, copy = (
            c * n // s
            for c, n, s in zip(
                cell, (axes.pp, axes.tp, axes.dp if sharded else 1), shape, strict=True
            )
        )
        mine = at["pp"][rank], at["tp"][rank], at["dp"][rank] if sharded else 0
        if (stage, part, copy) == mine:
            cells.append(cell)
    return set(cells)


@pytest.mark.parametrize("sharding", ["zero1", "zero3"])
@pytest.mark.parametrize("sizes", [(2, 2, 2, 4, 1), (4, 1, 2, 2, 2), (1, 4, 1, 3, 1)])
def test_a_reshard_brings_every_receiver_all_of_its_slice_once(sizes, sharding):
    tp, pp, dp, to_tp, to_pp = sizes
    sender = {"parallelism": {"tp": tp, "pp": pp, "dp": dp}}
    sender["data_parallel"] = {"sharding": sharding}
    receiver = {"parallelism": {"tp": to_tp, "pp": to_pp}}
    roles = [
        {"name": "a", "job": sender},
        {"name": "b", "instances": 3, "job": receiver},
    ]
    shape = (12, 12, 12)
    transfer = {"from": "a", "to": "b", "bytes": float(np.prod(shape))}
    job = of_roles(roles, transfer)
    first, second = job.roles
    found = flows(job)
    for offset in second.offsets:
        for rank in range(second.job.world_size):
            needs = held(second.job, rank, shape, sharded=False)
            got = {s: size for (s, r), size in found.items() if r == offset + rank}
            assert sum(got.values()) == pytest.approx(len(needs))
            for sender, size in got.items():
                has = held(first.job, sender, shape, sharded=sharding == "zero3")
                assert size <= len(has & needs) + 1e-6


def test_a_broadcast_passes_one_copy_on_from_rank_to_rank():
    """In four parts, each from another rank of the sender and to another receiver.

    What all send to all is shared out evenly.
    """
    sent = flows(workload({"bytes": "8GB", "pattern": "broadcast"}))
    expected = Counter()
    for turn, start in enumerate(([0], [0, 1], [0, 2], [0, 3])):
        blocks = [[8, 9, 10, 11], [12, 13, 14, 15]]
        order = [rank for block in blocks for rank in block[turn:] + block[:turn]]
        expected.update(dict.fromkeys(itertools.pairwise([*start, *order]), 2e9))
    assert sent == pytest.approx(expected)
    sent = flows(workload({"bytes": 64, "pattern": "all_to_all"}))
    assert len(sent) == 64
    assert set(sent.values()) == {1.0}


def test_a_paired_transfer_is_sent_once():
    roles = [
        {"name": "prefill", "instances": 2, "job": {"parallelism": {"tp": 2, "dp": 4}}},
        {"name": "decode", "instances": 4, "job": {"parallelism": {"tp": 1, "dp": 2}}},
    ]
    rate = {"bytes_per_token": 1000, "tokens_per_s": 4e6, "pattern": "paired"}
    transfer = {"from": "prefill", "to": "decode", **rate}
    job = of_roles(roles, transfer)
    sent = flows(job)
    assert sum(sent.values()) == pytest.approx(4e9)
    pairs = {(s // 8, (r - 16) // 2) for s, r in sent}
    assert pairs == {(0, 0), (1, 1), (0, 2), (1, 3)}


TEXT = """\
format: placer/workload
version: 1
name: w
roles:
  # the one that learns
  - {name: trainer, job: {parallelism: {tp: 2, dp: 2}}, require: {tp: node}}
  - {name: rollout, job: {parallelism: {tp: 4}}}
transfers:
  - {from: trainer, to: rollout, bytes: 8GB, every: 4}
"""


def test_gpus_of_a_role_set_its_replicas():
    roles = [
        {"name": "a", "gpus": 16, "job": {"parallelism": {"tp": 4}}},
        {"name": "b", "job": {"parallelism": {"tp": 4}}},
    ]
    job = of_roles(roles, {"from": "a", "to": "b", "bytes": 1})
    assert job.roles[0].job.parallelism.dp == 4


@pytest.mark.parametrize(*table("job/workload.yaml", "problems_name_their_place"))
def test_problems_name_their_place(old, new, words):
    document = parse_document(TEXT.replace(old, new), "w.yaml")
    assert words in "\n".join(map(str, problems_of(decode_job, document)))


def test_problems_of_a_roles_file_have_their_place_there(tmp_path):
    """A file that is not there is named where the role names it."""
    (tmp_path / "trainer.yaml").write_text(
        "format: placer/job\nversion: 1\nname: a\nparallelism: {dp: x}\n"
    )
    named = ["trainer.yaml", "none.yaml", "quickstrat"]
    roles = [{"name": f"r{i}", "job": job} for i, job in enumerate(named)]
    transfer, path = {"from": "r0", "to": "r1", "bytes": 1}, f"{tmp_path}/w.json"
    found = problems_of(of_roles, roles, transfer, source=path)
    told = {problem.key: str(problem) for problem in found}
    own, missing, unknown = (
        told[key] for key in ("parallelism.dp", "roles[1].job", "roles[2].job")
    )
    assert own.startswith(f"{tmp_path}/trainer.yaml:4:19: parallelism.dp: expected")
    assert missing.startswith(f"{path}:1:")
    assert f": {tmp_path}/none.yaml: cannot be read" in missing
    assert 'did you mean "quickstart"?' in unknown


def test_a_role_may_name_a_file_beside_or_a_preset(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "format: placer/job\nversion: 1\nname: mine\nparallelism: {tp: 2}\n"
        "weights: {tp: 1}\n"
    )
    text = TEXT.replace("{parallelism: {tp: 4}}", "mine.yaml")
    text = text.replace("{parallelism: {tp: 2, dp: 2}}", "quickstart")
    job = decode_job(parse_document(text, str(tmp_path / "w.yaml")))
    assert [role.world_size for role in job.roles] == [16, 2]


@pytest.mark.parametrize(
    "change", [lambda job: resized(job, dp=2), lambda job: reordered(job, "auto")]
)
def test_a_workload_has_no_size_and_no_order_of_its_own(change):
    with pytest.raises(InputError, match="roles: a workload has no size"):
        change(workload({"bytes": 8}))


def test_a_value_that_is_read_twice_is_wrong_once():
    """The cycle and the size of a transfer both need its steps."""
    assert len(problems_of(workload, {"bytes": 8, "every": "20 steps"})) == 1


def test_a_cycle_lasts_from_one_of_the_rarest_transfers_to_the_next():
    """Digests of workloads are of these figures, so plans of before stay theirs."""
    job = workload({"bytes": 8, "every": 20}, {"bytes": 8, "every": 5})
    assert [role.steps for role in job.roles] == [20, 20]
    assert [transfer.size_bytes for transfer in job.transfers] == [8, 32]
    job = workload({"bytes": 1e11, "every": 3}, {"bytes": 1e9, "every": 5})
    assert 1e11 * 5 / 3 != 1e11 * (5 / 3)
    assert job.transfers[0].size_bytes == 1e11 * 5 / 3


def test_digests_outlive_keys_that_say_nothing_new():
    """A workload of 0.1.0 has the digest that its plans carry."""
    sent = {"from": "trainer", "to": "rollout", "bytes": 8e9}
    old, new = (
        decode_job(parse_document(file_text("workload", **keys), "w.yaml"))
        for keys in (
            {"name": "rl", "roles": ROLES, "transfers": [sent | more]}
            for more in ({}, {"fixed_time": 1.0})
        )
    )
    assert old.sha256 == (
        "a1da00ee356d780af3735d11413b0f4922e880c65372fd39bfc14538dd0b1e8b"
    )
    assert new.sha256 != old.sha256
