"""Ranks by the plan: every seat finds its own, nothing finds another's."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import InputError
from placer.launch import (
    device_of_rank,
    node_rank_of_this_process,
    rank_of_this_process,
    torch_arguments,
)
from placer.launch.jax_mesh import mesh_array, mesh_axes
from placer.placement.plan_file import write_plan
from tests.emit.readback import FREE, plan_of, seatings
from tests.texts import table


def environment(host, **more):
    return {"PLACER_HOST": host} | {key: str(value) for key, value in more.items()}


def ranks_on(seats, host):
    """(GPU, rank) of one host, by GPU."""
    return sorted((gpu, r) for r, (name, gpu) in enumerate(seats) if name == host)


@given(seatings())
def test_every_process_finds_its_rank(seats):
    """Process k of a host, seeing all GPUs, is the rank of the host's k-th GPU."""
    plan = plan_of(seats)
    for host in plan.nodes:
        for k, (_, rank) in enumerate(ranks_on(seats, host)):
            env = environment(host, SLURM_PROCID=0, SLURM_LOCALID=k)
            assert rank_of_this_process(plan, env) == rank


@given(seatings(), st.randoms())
def test_permuted_devices_decide(seats, random):
    """With devices listed in any order, the listed device decides the rank."""
    plan = plan_of(seats)
    for host in plan.nodes:
        rank_of_gpu = dict(ranks_on(seats, host))
        gpus = list(rank_of_gpu)
        random.shuffle(gpus)
        listed = ",".join(map(str, gpus))
        for k, gpu in enumerate(gpus):
            env = environment(host, LOCAL_RANK=k, CUDA_VISIBLE_DEVICES=listed)
            env |= {"RANK": "99", "TORCHELASTIC_RUN_ID": "x"}
            if len(gpus) > 1:
                assert rank_of_this_process(plan, env) == rank_of_gpu[gpu]


def test_devices_the_job_was_given():
    """GPU k of the plan is the k-th of devices 4 and 6, whatever their order."""
    plan = plan_of([("a", 1), ("a", 0)])
    for listed, expected in (("4,6", [1, 0]), ("6,4", [0, 1])):
        envs = [
            environment("a", LOCAL_RANK=k, RANK=9, CUDA_VISIBLE_DEVICES=listed)
            for k in (0, 1)
        ]
        assert [rank_of_this_process(plan, env) for env in envs] == expected


def test_emitted_environment_is_kept():
    """Where LOCAL_RANK is the GPU's index, as the env script sets it, RANK holds."""
    plan = plan_of([("a", 2), ("a", 1)])
    env = environment("a", RANK=1, LOCAL_RANK=1, WORLD_SIZE=2)
    agent = env | {"TORCHELASTIC_RUN_ID": "x"}
    for given_env in (env, agent, agent | {"CUDA_VISIBLE_DEVICES": "0,1,2"}):
        assert rank_of_this_process(plan, given_env) == 1
    # The same numbers from torchrun itself, on devices in another order.
    whole = plan_of([("a", 0), ("a", 1)])
    agent |= {"CUDA_VISIBLE_DEVICES": "1,0"}
    assert rank_of_this_process(whole, agent) == 0


@pytest.mark.parametrize(*table("launch/ranks.yaml", "refusals"))
def test_refusals(env, message):
    """A process the plan does not know never gets a rank."""
    with pytest.raises(InputError, match=message):
        rank_of_this_process(plan_of(FREE), env)


def test_plan_file_and_hand_made_index(tmp_path):
    """The plan may be a file; PLACER_LOCAL_INDEX counts the plan's GPUs."""
    write_plan(plan_of(FREE), tmp_path / "plan.json")
    env = environment("n1", PLACER_LOCAL_INDEX=0, LOCAL_RANK=1, CUDA_VISIBLE_DEVICES=7)
    assert rank_of_this_process(tmp_path / "plan.json", env) == 4
    assert node_rank_of_this_process(str(tmp_path / "plan.json"), env) == 1


def test_a_host_with_one_rank():
    """Its only process needs no local rank; a second one gets none."""
    plan = plan_of([("a", 3), ("b", 0)])
    for more in ({}, {"JOB_COMPLETION_INDEX": "1"}, {"CUDA_VISIBLE_DEVICES": "0"}):
        assert rank_of_this_process(plan, environment("a", **more)) == 0
    with pytest.raises(InputError, match="process 1 of a"):
        rank_of_this_process(plan, environment("a", SLURM_PROCID=1, SLURM_LOCALID=1))


def test_device_of_rank():
    """The index of the plan's GPU among those the process sees."""
    plan = plan_of(FREE)
    seen = [None, "0,1", "1,0", "4,6", "6,4", "3", "GPU-a,GPU-b"]
    envs = [{} if s is None else {"CUDA_VISIBLE_DEVICES": s} for s in seen]
    assert [device_of_rank(plan, 5, env) for env in envs] == [1, 1, 0, 1, 0, 0, 1]
    with pytest.raises(InputError, match="GPU 3 is not in"):
        device_of_rank(plan_of([("a", 3)]), 0, {"CUDA_VISIBLE_DEVICES": "0,1"})
    for rank in (-1, 1):
        with pytest.raises(InputError, match="not one of the plan's 1"):
            device_of_rank(plan_of([("a", 3)]), rank, {})


def test_torch_arguments():
    """Rank 0 keeps the store on its own host; under torchrun the agents do."""
    plan = plan_of(FREE)
    env = environment("n1", LOCAL_RANK=1, RANK=0, MASTER_ADDR="n1", MASTER_PORT=1234)
    assert torch_arguments(plan, env) == {
        "init_method": "tcp://n3:1234",
        "rank": 1,
        "world_size": 8,
    }
    agent = env | {"TORCHELASTIC_USE_AGENT_STORE": "True"}
    assert torch_arguments(plan, agent)["init_method"] == "env://"
    named = env | {"PLACER_MASTER_ADDR": "10.0.0.3", "MASTER_PORT": ""}
    assert torch_arguments(plan, named)["init_method"] == "tcp://10.0.0.3:29500"


def meshed(seats, order, **sizes):
    plan = plan_of(seats)
    plan.job.update(order=order, parallelism=sizes)
    return plan


def test_mesh_counts_ranks_as_the_order_says():
    """Position (dp, pp, tp) holds rank tp + 2 pp + 4 dp of tp-cp-ep-pp-dp."""
    plan = meshed(FREE, "tp-cp-ep-pp-dp", tp=2, pp=2, dp=2)
    assert mesh_axes(plan) == {"dp": 2, "pp": 2, "cp": 1, "tp": 2}
    devices = [SimpleNamespace(process_index=r, id=r) for r in range(8)]
    ranks = np.vectorize(lambda d: d.id)(mesh_array(plan, devices))
    for dp, pp, tp in np.ndindex(2, 2, 2):
        assert ranks[dp, pp, 0, tp] == tp + 2 * pp + 4 * dp
    with pytest.raises(InputError, match="sizes of its axes"):
        mesh_axes(plan_of(FREE))
