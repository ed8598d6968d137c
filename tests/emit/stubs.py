"""Stub launchers: they do with an emitted file what the real ones do, and show it."""

import json
import re
import shutil
import sys
from base64 import urlsafe_b64decode
from collections import Counter
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import yaml

from tests.emit.readback import (
    Run,
    run_script,
    run_torchrun,
    worker_gpus,
    write_script,
)

# Runs its command once a line of SLURM_HOSTFILE, as a step of arbitrary distribution;
# like Slurm 24.11 it takes no --nodes beside that.
SRUN = f"""\
#!{sys.executable}
import collections, os, subprocess, sys
assert sys.argv[2] == "--distribution=arbitrary"
hosts = open(os.environ["SLURM_HOSTFILE"]).read().splitlines()
assert sys.argv[1] == f"--ntasks={{len(hosts)}}"
seen = collections.Counter()
for rank, host in enumerate(hosts):
    step = dict(SLURM_PROCID=str(rank), SLURM_LOCALID=str(seen[host]))
    step |= dict(SLURMD_NODENAME=host, SLURM_NTASKS=str(len(hosts)))
    seen[host] += 1
    done = subprocess.run(sys.argv[3:], env=os.environ | step, capture_output=True)
    sys.stderr.write(done.stderr.decode())
    if done.returncode:
        sys.exit(done.returncode)
    sys.stdout.write(done.stdout.decode() + "\\0task\\0")
"""


def stub_srun(folder, known="*"):
    """Put a ``srun`` beside a script, and a ``getent`` that finds ``known``."""
    getent = f'#!/bin/sh\ncase "$1 $2" in ("ahosts "{known}) ;; (*) exit 2 ;; esac\n'
    for name, text in (("srun", SRUN), ("getent", getent)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def run_sbatch(script, *arguments, **environment):
    """What every task of a batch script became, by task."""
    stub_srun(script.parent)
    job = {"SLURM_JOB_ID": "7", **environment}
    whole = run_script(script, *arguments, raw=True, **job)
    assert whole.status == 0, whole.error
    return [Run.of(0, text, "") for text in whole.output.split("\0task\0")[:-1]]


def sbatch_seats(script, seats):
    """The map of the env:// tasks that a batch script starts."""
    found = []
    for rank, run in enumerate(run_sbatch(script, "probe", "a b", "")):
        env = run.environment
        assert run.arguments == ["a b", ""]
        assert "SLURM_HOSTFILE" not in env
        assert env["RANK"] == env["SLURM_PROCID"] == str(rank)
        assert env["WORLD_SIZE"] == str(len(seats))
        assert env["MASTER_ADDR"] == seats[0][0]
        host = env["SLURMD_NODENAME"]
        assert env["LOCAL_WORLD_SIZE"] == str(sum(h == host for h, _ in seats))
        found.append((host, int(env["LOCAL_RANK"])))
    return found


def sbatch_torchrun_seats(script, seats):
    """The map of the workers of the agents that a batch script starts."""
    found = []
    runs = run_sbatch(script, "train.py")
    for node_rank, run in enumerate(runs):
        env = run.environment
        assert run.arguments == ["train.py"]
        assert "SLURM_HOSTFILE" not in env
        assert env["PET_NODE_RANK"] == str(node_rank)
        assert env["PET_NNODES"] == str(len(runs))
        assert env["PET_MASTER_ADDR"] == seats[0][0]
        found += [(env["SLURMD_NODENAME"], gpu) for gpu in worker_gpus(env)]
    return found


def torchrun_wrapper_seats(script, seats):
    """The map of a wrapper's workers; the agents number them node by node first."""
    seat_of_rank = {}
    agents = {}
    for host in dict.fromkeys(host for host, _ in seats):
        run = run_script(script, "python", "train.py", PLACER_HOST=host)
        assert run.arguments[:2] == ["--no-python", "bash"]
        assert run.arguments[3:] == ["python", "train.py"]
        assert Path(run.arguments[2]).samefile(script)
        agents[int(run.environment["PET_NODE_RANK"])] = (host, run.environment)
    assert sorted(agents) == list(range(len(agents)))
    for host, agent in agents.values():
        assert agent["PET_NNODES"] == str(len(agents))
        for local_rank in range(int(agent["PET_NPROC_PER_NODE"])):
            worker = {
                "TORCHELASTIC_RUN_ID": "none",
                "PLACER_HOST": host,
                "LOCAL_RANK": str(local_rank),
                "LOCAL_WORLD_SIZE": agent["PET_NPROC_PER_NODE"],
                "WORLD_SIZE": str(len(seats)),
                "MASTER_ADDR": "agent-store",
            }
            env = run_script(script, "probe", **worker).environment
            assert env["MASTER_ADDR"] == "agent-store"
            assert int(env["RANK"]) not in seat_of_rank
            seat_of_rank[int(env["RANK"])] = (host, int(env["LOCAL_RANK"]))
    return [seat_of_rank[rank] for rank in range(len(seats))]


def gpu_wrapper_seats(script, seats):
    """The map of a GPU wrapper, when the launcher has put the ranks on their hosts."""
    found = []
    for rank, (host, _) in enumerate(seats):
        env = run_script(
            script, "probe", PLACER_HOST=host, PMI_RANK=str(rank)
        ).environment
        assert env["RANK"] == str(rank)
        found.append((host, int(env["LOCAL_RANK"])))
    return found


def hydra_seats(folder, seats):
    """The map of Hydra: ``HOST:N`` lines in turn, then the GPU by the rank."""
    line = re.compile(r"([\w.-]+):([1-9][0-9]*)")
    rows = [
        line.fullmatch(row)
        for row in (folder / "machines.txt").read_text().splitlines()
    ]
    hosts = [row[1] for row in rows if row for _ in range(int(row[2]))]
    assert hosts == [host for host, _ in seats]
    (folder / "s").mkdir()
    script = write_script(folder / "s", (folder / "gpu-wrapper.sh").read_text())
    found = gpu_wrapper_seats(script, seats)
    shutil.rmtree(folder / "s")
    return found


def read_node_map(text):
    """The map torchrun makes of a node map: workers numbered node by node."""
    data = json.loads(text)
    assert (data["format"], data["version"]) == ("placer/node-map", 1)
    return [(n["host"], k) for n in data["nodes"] for k in range(n["processes"])]


def read_deepspeed(text):
    """The map DeepSpeed makes of its host file; a host twice is an error there.

    ``LOCAL_RANK`` is the rank modulo the slots of its host.
    """
    line = re.compile(r"([\w.-]+) slots=([1-9][0-9]*)")
    rows = [line.fullmatch(row) for row in text.splitlines()]
    assert Counter(row[1] for row in rows if row).most_common(1)[0][1] == 1
    slots = [(row[1], int(row[2])) for row in rows if row for _ in range(int(row[2]))]
    return [(host, rank % count) for rank, (host, count) in enumerate(slots)]


def deepspeed_node_seats(script, seats):
    """The map of DeepSpeed's launcher: ``LOCAL_RANK`` is the rank modulo processes.

    It numbers the ranks in the order of the hosts in ``--world_info``, and a local rank
    sees the GPUs of its host in the order listed there.
    """
    (script.parent / "torchrun").rename(script.parent / "python")
    runs = {}
    for host in dict.fromkeys(host for host, _ in seats):
        run = run_script(script, "train.py", "a b", PLACER_HOST=host)
        launch, options = run.arguments[:3], run.arguments[3:]
        assert launch == ["-u", "-m", "deepspeed.launcher.launch"]
        assert options[-2:] == ["train.py", "a b"]
        given = dict(option.split("=", 1) for option in options[:-2])
        assert given["--master_addr"] == seats[0][0]
        assert given["--master_port"] == "29500"
        runs[int(given["--node_rank"])] = (host, given["--world_info"])
    ((_, text), *_) = runs.values()
    assert {other for _, other in runs.values()} == {text}
    info = json.loads(urlsafe_b64decode(text))
    assert list(info) == [runs[node_rank][0] for node_rank in range(len(runs))]
    found = []
    for host, gpus in info.items():
        for _ in gpus:
            found.append((host, gpus[len(found) % len(gpus)]))
    return found


class FakeJax:
    """Stands in for JAX: processes of some devices, ids with gaps, in any order."""

    def __init__(self, devices_of_process):
        self._devices = [
            SimpleNamespace(process_index=p, id=2048 * p + k, local_hardware_id=k)
            for p, count in enumerate(devices_of_process)
            for k in range(count)
        ]
        self.sharding = SimpleNamespace(Mesh=lambda array, names: (array, names))

    def devices(self):
        return self._devices[::-1]


def load_module(path):
    """An emitted module."""
    spec = spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_jax(folder, fake):
    """The emitted loader, which imports ``fake`` when it wants JAX."""
    loader = load_module(folder / "placer_mesh.py")
    loader.import_module = lambda name: fake if name == "jax" else import_module(name)
    return loader


def jax_seats(folder, seats):
    """The map of the emitted mesh, when every process sees six GPUs."""
    hosts = json.loads((folder / "devices.json").read_text())["processes"]
    loader = load_jax(folder, FakeJax([6] * len(hosts)))
    array, names = loader.mesh()
    assert (array.shape, names) == ((len(seats),), ("rank",))
    return [(hosts[d.process_index], d.local_hardware_id) for d in array]


def kubernetes_seats(script, seats):
    """The map of a manifest's pods, each started on a node that it may run on."""
    config_map, workload = yaml.safe_load_all(script.read_text())
    write_script(script.parent, config_map["data"]["launch.sh"])
    hosts = list(dict.fromkeys(host for host, _ in seats))
    templates = list(pod_templates(workload))
    if "affinity" in templates[0]["spec"]:
        nodes = templates[0]["spec"]["affinity"]["nodeAffinity"]
        (term,) = nodes["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        assert term["matchExpressions"][0]["values"] == hosts
    else:
        for host, template in zip(hosts, templates, strict=True):
            env = template["spec"]["containers"][0]["env"]
            assert template["spec"]["nodeSelector"] == {"kubernetes.io/hostname": host}
            assert {"name": "PLACER_HOST", "value": host} in env
    command = templates[0]["spec"]["containers"][0]["command"]
    assert command[:2] == ["bash", "/placer/launch.sh"]
    if command[2:] == ["train.py"]:
        return run_torchrun(script, hosts)
    assert command[2:] == ["python", "train.py"]
    return torchrun_wrapper_seats(script, seats)


def kubeflow_seats(script, seats):
    """The map of the pods that Kubeflow Trainer makes of a TrainJob."""
    config_map, runtime, job = yaml.safe_load_all(script.read_text())
    script.write_text(yaml.safe_dump_all([config_map, trained(runtime, job)]))
    return kubernetes_seats(script, seats)


def trained(runtime, job):
    """The JobSet of a TrainJob: its runtime's, with the container's own in place."""
    reference = job["spec"]["runtimeRef"]
    assert reference == {"kind": runtime["kind"], "name": runtime["metadata"]["name"]}
    spec = runtime["spec"]["template"]["spec"]
    (node,) = spec["replicatedJobs"]
    assert node["name"] == "node"
    assert node["template"]["metadata"]["labels"] == {
        "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"
    }
    trainer = job["spec"]["trainer"]
    assert trainer["numNodes"] == runtime["spec"]["mlPolicy"]["numNodes"]
    (container,) = node["template"]["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "node"
    container |= {key: trainer[key] for key in ("image", "command", "env")}
    container["resources"] = trainer["resourcesPerNode"]
    return {"kind": "JobSet", "spec": spec}


def ray_seats(folder, seats):
    """The map of actors that Ray puts on every GPU of bundles, each a node's own."""
    loader = load_module(folder / "placer_ray.py")
    document = json.loads((folder / "bundles.json").read_text())
    labels = document["bundle_label_selector"]
    assert document["strategy"] == "STRICT_SPREAD"
    seat_of_rank = {}
    for bundle, label in zip(document["bundles"], labels, strict=True):
        host = label["placer-host"]
        for gpu in range(bundle["GPU"] + 1):
            rank = loader.rank_on(host, [gpu])
            if rank is not None:
                assert seat_of_rank.setdefault(rank, (host, gpu)) == (host, gpu)
    assert document["world_size"] == len(seat_of_rank)
    return [seat_of_rank[rank] for rank in range(len(seats))]


def pod_templates(workload):
    """Pod templates of a Job or JobSet, by node rank when there are several."""
    if workload["kind"] == "Job":
        yield workload["spec"]["template"]
    else:
        for job in workload["spec"]["replicatedJobs"]:
            assert job["replicas"] == 1
            yield job["template"]["spec"]["template"]
