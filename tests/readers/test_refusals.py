"""What no reader of machines takes: the reason is told, whatever the format."""

import json

import pytest

from placer import read_job
from placer.base.errors import InputError
from placer.formats.machines.machine import read_topology
from tests.readers import cases
from tests.readers.cases import all_joined, link_types, node, nodes, refusal
from tests.texts import table

THREE, ANSWER = link_types(3, all_joined), cases.LINK_TYPES_JSON
INDENTED = "".join(f"    {line}\n" for line in cases.TREE.splitlines())
CONFIGMAP = f"- kind: ConfigMap\n  data:\n   topology.conf: |\n{INDENTED}"
COLUMNS, TEXTS = table("readers/refusals.yaml", "texts")
PAIR = "(Topology) Link type between DRM devices 0 and 1"
CARDS = {f"card{i}": {} for i in range(300)} | {"system": {PAIR: "XGMI"}}
# Names that fit into a glued one in many ways: each place is looked at once.
GLUED = f"GPU0 GPU1 {'a' * 5000}b\n" + "\n".join("a" * n + " PIX" for n in range(1, 60))
# Texts that are long, or made.
MADE = [
    ("bandwidth", "GB/s," + ",".join(map(str, range(3000))), "3000 columns, the most"),
    ("nccl", "<system>" + "<pci>" * 100, "deeper than 64"),
    ("nccl", "<system>" + "<pci class='0x0302'/>" * 600, "more than 512 devices"),
    ("nccl", "<system>" + " " * (1 << 22), "characters, a node has at most"),
    ("topo-m", GLUED, "run together"),
    ("configmap", "items:\n" + CONFIGMAP * 2, "2 ConfigMaps with a Slurm topology"),
    ("kubernetes", nodes(node("a", {}), node("a", {})), '"a" is listed twice'),
    ("rocm-smi", json.dumps(CARDS), "300 devices, the most is 256"),
    ("rocm-smi", THREE * 2, "several matrices"),
    ("rocm-smi", THREE.partition("GPU0         0            X")[0], "cut"),
    ("rocm-smi", THREE.replace("XGMI", "XXXX"), "GPU0 and GPU1 was not"),
    ("rocm-smi", THREE.replace("XGMI", "PCIE", 1), "GPU0 to GPU1 is PCIE"),
    ("rocm-smi", THREE.replace("XGMI", "0   "), "GPU1 to GPU0 is 0"),
    ("rocm-smi", ANSWER.replace('"XGMI"', "2"), "expected a text"),
    ("rocm-smi", ANSWER.replace("devices 1 and 2", ""), "GPU1 and GPU2: cut?"),
]


@pytest.mark.parametrize(COLUMNS, [*TEXTS, *MADE])
def test_what_is_refused(name, text, message):
    """What is cut, doubled, malformed or too large is refused with the reason."""
    assert message in refusal(name, text)


@pytest.mark.parametrize(*table("readers/refusals.yaml", "changed"))
def test_what_is_refused_of_a_good_file(name, sample, old, new, message):
    """One thing that is wrong in a good file is told as such."""
    good = getattr(cases, sample)
    assert old in good
    assert message in refusal(name, good.replace(old, new, 1))


@pytest.mark.parametrize(*table("readers/refusals.yaml", "by_name"))
@pytest.mark.parametrize("prefix", ["", "slurm-yaml:", "scontrol:", "kubernetes:"])
def test_refused_by_name(tmp_path, text, message, prefix):
    """Outputs without a tree are called by their name, whatever they are taken for."""
    (tmp_path / "file").write_text(text)
    if prefix not in ("", "slurm-yaml:") and "topology: " in text:
        message = "it is not of the format"
    with pytest.raises(InputError, match=message):
        read_topology(f"{prefix}{tmp_path}/file", hardware=cases.H100)


@pytest.mark.parametrize("other", ["job", "topology"])
def test_what_the_other_option_takes_is_sent_there(tmp_path, other):
    """A script given as the machine, and switches given as the job."""
    script = "torchrun pretrain_gpt.py --tensor-model-parallel-size 8\n"
    (tmp_path / "file").write_text(script if other == "job" else cases.TREE)
    with pytest.raises(InputError, match=f'give it as {other}="'):
        (read_topology if other == "job" else read_job)(tmp_path / "file")
