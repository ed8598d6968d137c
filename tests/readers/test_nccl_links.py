"""What the links of NCCL's topology XML join: islands, a switch, or nothing told."""

from __future__ import annotations

import pytest

from placer.formats.machines.registry import read
from tests.readers.cases import H100, HOSTS, machine_of, node_xml, refusal, ring
from tests.texts import table

SWITCH = "fffffff:ffff:ff"


def test_islands():
    """Two rings of four GPUs are two islands."""
    findings = read("nccl", node_xml({**ring(0, 1, 3, 6), **ring(2, 4, 5, 7)}), "f")
    assert findings.nvlink is True
    assert findings.islands == ((0, 1, 3, 6), (2, 4, 5, 7))
    words = "GPUs: 8, 2 XGMI islands: GPU[0-1,3,6]; GPU[2,4-5,7], NICs: 0"
    assert findings.notes[0] == words


def test_islands_of_different_sizes():
    """Three GPUs and five are no islands of a node."""
    problem = refusal("nccl", node_xml({**ring(0, 1, 2), **ring(3, 4, 5, 6, 7)}))
    assert problem.message == (
        "the 8 GPUs are XGMI islands of different sizes: GPU[0-2]; GPU[3-7]"
    )
    assert "gpus_per_node=8" in problem.hint


@pytest.mark.parametrize("link", ["xgmi", "nvlink"])
def test_ring_is_one_island(link):
    """Opposite GPUs of a ring have no link of their own; the links go round: noted."""
    findings = read("nccl", node_xml(ring(*range(6)), link=link), "source")
    assert findings.nvlink is True
    assert {"xgmi": "XGMI", "nvlink": "NVLink"}[link] in findings.notes[0]
    assert "of their own: 9, taken for one island" in findings.notes[1]


def test_links_told_by_one_end_only():
    """A chain whose links only their first GPU lists joins them as well."""
    findings = read("nccl", node_xml({0: [1], 1: [2], 2: []}), "source")
    assert findings.nvlink is True


@pytest.mark.parametrize("pci", ["0x120000", "0x038000", "0x030200", "0x088000", ""])
def test_gpus_of_any_class(pci):
    """AMD's accelerators are GPUs, and so is all that has a gpu element."""
    findings = read("nccl", node_xml(ring(0, 1, 2), pci=pci), "source")
    assert "GPUs: 3, XGMI" in findings.notes[0]


@pytest.mark.parametrize("pci", ["0x120000", "0x030200"])
def test_no_links_do_not_tell(tmp_path, pci):
    """NCCL writes nothing where it could not ask: the hardware decides, with a note."""
    text = node_xml({0: [], 1: []}, pci=pci)
    findings = read("nccl", text, "source")
    assert findings.nvlink is None
    assert "NVLink not told" in findings.notes[0]
    assert "those of the hardware" in findings.notes[1]
    machine, _ = machine_of(tmp_path, HOSTS, text, hardware=H100)
    assert machine.num_gpus == 8


@pytest.mark.parametrize(
    ("target", "target_class"),
    [("0000:c4:00.0", "0x068000"), (SWITCH, None), ("0000:c4:00.0", None)],
)
def test_switch_joins_all(target, target_class):
    """Links that end at no GPU end at the NVSwitch, which all GPUs share."""
    links = {gpu: [target] for gpu in range(4)}
    text = node_xml(links, link="nvlink", target_class=target_class)
    findings = read("nccl", text, "source")
    assert findings.nvlink is True
    assert len(findings.notes) == 1


def test_gpu_that_lost_its_links():
    """Of four GPUs one has no link to the switch of the others: no single node."""
    links = {0: [SWITCH], 1: [SWITCH], 2: [], 3: [SWITCH]}
    problem = refusal("nccl", node_xml(links, link="nvlink", target_class=None))
    assert "islands of different sizes: GPU[0-1,3]; GPU2" in problem.message
    assert "may have lost its links" in problem.hint


@pytest.mark.parametrize(*table("readers/nccl_links.yaml", "links_that_join_no_gpus"))
def test_links_that_join_no_gpus(target, target_class, where):
    """Links to a CPU, or to GPUs that the file leaves out, join nothing in it."""
    links = {0: [target], 1: [target]}
    text = node_xml(links, link="nvlink", target_class=target_class)
    findings = read("nccl", text, "source")
    assert findings.nvlink is None
    assert f"{where}, not counted: 2" in findings.notes


def test_links_without_lanes():
    """A link of which no lane is up joins nothing."""
    text = node_xml(ring(0, 1, 2)).replace('count="1"', 'count="0"')
    assert read("nccl", text, "source").nvlink is None


def test_busids_in_other_words():
    """Busids are compared as numbers, as NCCL does."""
    text = node_xml({0: ["00000000:1A:00.0"], 1: []})
    text = text.replace("0000:11:00.0", "0000:1a:00.0")
    assert read("nccl", text, "source").nvlink is True


def test_busid_of_two_gpus():
    """Links to a busid that two GPUs have could be to either."""
    text = node_xml(ring(0, 1, 2)).replace("0000:12:00.0", "0000:11:00.0")
    assert "two GPUs have the busid 0000:11:00.0" in refusal("nccl", text).message


def test_hosts_of_one_file():
    """Hosts have busids of their own; one whose islands are not the same is named."""
    pair, apart = ring(0, 1, 2, 3), {**ring(0, 1), **ring(2, 3)}

    def cpu(links, host):
        text = node_xml(links, host_hash=host)
        return text[text.index("<cpu") : text.index("</system>")]

    whole = f"<system>{cpu(pair, '0xa')}{cpu(pair, '0xb')}</system>"
    findings = read("nccl", whole, "source")
    assert findings.nvlink is True
    assert "hosts: 2, each with GPUs: 4" in findings.notes[0]
    torn = f"<system>{cpu(pair, '0xa')}{cpu(apart, '0xb')}</system>"
    assert (
        'the 4 GPUs of "host 2" are other XGMI islands' in refusal("nccl", torn).message
    )
    alike = f"<system>{cpu(apart, '0xa')}{cpu(apart, '0xb')}</system>"
    assert read("nccl", alike, "source").islands == ((0, 1), (2, 3))


def test_gpus_without_an_element():
    """A GPU without a gpu element, which would hold its links, leaves them open."""
    text = node_xml(ring(0, 1)).replace(
        "</cpu>", '<pci busid="0000:77:00.0" class="0x120000"/></cpu>'
    )
    findings = read("nccl", text, "source")
    assert findings.nvlink is None
    assert "GPUs whose links it does not tell: 1" in findings.notes
