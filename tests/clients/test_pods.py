"""The JobSet of a page, its pods as processes: they rank themselves by their nodes."""

import pytest
import yaml

from tests.clients import needs
from tests.clients import processes as local
from tests.clients.definitions import require_valid
from tests.clients.processes import in_domains
from tests.doc_blocks import ROOT, fences

PAGE = ROOT / "docs/how-to/pods-that-rank-themselves.md"
# Shows its seat; once all have, a worker fails, and they start again.
WORKER = """\
first=$([ -d failed ]; echo $?)
echo "seat $first $GROUP_RANK $RANK $WORLD_SIZE $NODE_NAME"
[ $first = 1 ] || exit 0
touch at.$RANK
[ $RANK = 5 ] || exec sleep 600
until [ $(ls at.* | wc -l) = 8 ]; do sleep 0.2; done
mkdir failed
exit 1
"""


@pytest.fixture
def jobset():
    (text,) = (one.body for one in fences(PAGE) if one.file == "jobset.yaml")
    return yaml.safe_load(text)


def test_it_is_what_a_server_takes(jobset):
    """A JobSet with only fields of its kind, and a Job in it with those of its own."""
    require_valid(jobset)


@pytest.mark.slow
def test_pods_take_ranks_by_nvlink_domain(jobset, tmp_path):
    """However the scheduler has spread them, replicas lie in one domain each.

    They stay there when a worker has failed and all meet again.
    """
    needs.torchrun()
    (workers,) = jobset["spec"]["replicatedJobs"]
    pod = workers["template"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (variable,) = container["env"]
    (volume,) = (one for one in pod["volumes"] if "downwardAPI" in one)
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
    assert volume["downwardAPI"]["items"][0]["path"] == "labels"
    (tmp_path / "worker.sh").write_text(WORKER)
    changed = {
        "train-workers-0-0.train:29400": f"127.0.0.1:{local.free_port()}",
        "--nproc-per-node=8": "--nproc-per-node=2",
        "--tensor-model-parallel-size=8": "--tensor-model-parallel-size=2",
    }
    words = container["command"]
    for old, new in changed.items():
        assert any(old in word for word in words)
        words = [word.replace(old, new) for word in words]
    program = words.index("train.py")
    argv = [
        *words[:program],
        # A machine that runs so many is busy.
        *("--rdzv-conf=limit=60", "--local-addr=127.0.0.1", "--no-python", "bash"),
        *(str(tmp_path / "worker.sh"), *words[program + 1 :]),
    ]
    commands = []
    for index in range(4):
        labels = tmp_path / f"labels-{index}"
        labels.write_text(f'app="train"\nbatch.kubernetes.io/index="{index}"\n')
        more = {variable["name"]: f"n{index}", "PLACER_LABELS": str(labels)}
        environ = in_domains(tmp_path, 2, HOSTNAME=f"train-workers-0-{index}", **more)
        commands.append((argv, environ))
    # The stand-in for nvidia-smi tells nodes apart as processes of other tests do.
    smi = tmp_path / "nvidia-smi"
    smi.write_text(smi.read_text().replace("PLACER_HOST", "NODE_NAME"))
    ended = local.run_all(tmp_path / "run", commands)
    rows = [row.split() for row in local.output(ended).splitlines() if "seat " in row]
    first, again = ([row[2:] for row in rows if row[1] == k] for k in "10")
    assert sorted(first) == sorted(again)
    host = {int(row[0]): row[3] for row in first}
    assert sorted(int(row[1]) for row in first) == [*range(8)]
    assert {row[2] for row in first} == {"8"}
    # Ranks of a pipeline are half the nodes apart.
    for replica in range(2):
        stages = {int(host[stage * 2 + replica][1:]) % 2 for stage in range(2)}
        assert len(stages) == 1
    said = "".join(one.error for one in ended)
    assert said.count("4 nodes in order") == 2  # at the start, and again
