"""``nvidia-smi``: the connection matrix of a node, and NVLink domains of hosts."""

from __future__ import annotations

import pytest

from placer.formats.machines.machine import read_topology
from placer.formats.machines.registry import read
from tests.readers import cases
from tests.readers.cases import (
    fabric_query,
    labelled,
    machine_of,
    nodes_of_domains,
    problem_of,
    refusal,
)


def test_matrix_holds_for_every_listed_node(tmp_path):
    """Two GPUs in the matrix, four nodes in the list: eight GPUs."""
    machine, notes = machine_of(tmp_path, cases.HOSTS, cases.MATRIX)
    assert machine.gpus_of_node.tolist() == [2, 2, 2, 2]
    (note,) = [note for note in notes if "NV18" in note]
    assert "2 GPUs, 2 NICs, NV18 between all GPUs" in note
    assert "GPU0: NIC0 (PIX); GPU1: NIC1 (PIX)" in note


def test_matrix_alone_names_no_node(tmp_path):
    """A matrix without host names needs a list of nodes, and the error says which."""
    problem = problem_of(machine_of, tmp_path, cases.MATRIX)
    assert problem.message == "no source names a node"
    assert "hosts:FILE" in problem.hint


@pytest.mark.parametrize("prefix", ["{}: ", "  {}: ", "gpu-{}.rack.local: "])
def test_labels_of_hosts(prefix):
    """Lines behind pdsh's or srun's labels, in any order, are put together by host."""
    lines = [
        prefix.format(host) + line
        for line in cases.MATRIX.split("\n")
        for host in (1, 2)
    ]
    findings = read("topo-m", "\n".join(lines), "source")
    names = [prefix.format(host).strip(": ") for host in (1, 2)]
    assert {
        name: facts.gpus for name, facts in findings.nodes.items()
    } == dict.fromkeys(names, 2)
    assert findings.nvlink is True
    assert findings.numbers == names[0].isdecimal()


def test_task_numbers_become_hosts(tmp_path):
    """Host names of the tasks of srun -l come from a names file."""
    names = tmp_path / "names"
    names.write_text("1 n1\n2 n2\n")
    matrix = tmp_path / "matrix"
    matrix.write_text(labelled({"1": cases.MATRIX, "2": cases.MATRIX}))
    notes: list[str] = []
    machine = read_topology(
        [matrix, f"names:{names}"], hardware=cases.H100, note=notes.append
    )
    assert machine.node_names == ("n1", "n2")
    assert not any("tasks of srun -l" in note for note in notes)


def test_task_numbers_without_names_are_noted(tmp_path):
    """Hosts that are still the numbers of tasks are told, whatever the format."""
    metadata = '{"customerLocalBlock": "lb"}'
    for text in (
        labelled({"1": cases.MATRIX, "2": cases.MATRIX}),
        labelled({"1": fabric_query("4"), "2": fabric_query("4")}),
        f"1: {metadata}\n2: {metadata}\n",
    ):
        path = tmp_path / "answers"
        path.write_text(text)
        notes: list[str] = []
        hardware = cases.GB200 if "Fabric" in text else cases.H100
        read_topology(path, hardware=hardware, note=notes.append)
        assert any("tasks of srun -l" in note for note in notes)


def test_pasted_matrix():
    """A copy with blanks, without escape codes and with a prompt, reads the same."""
    text = "$ nvidia-smi topo -m\n" + cases.MATRIX.replace("\x1b[4m", "").replace(
        "\x1b[0m", ""
    ).replace("\t", "   ")
    wrapped = text.replace("NIC0   NIC1   CPU", "\n  NIC0   NIC1   CPU", 1)
    expected = read("topo-m", cases.MATRIX, "source").notes
    assert read("topo-m", text, "source").notes == expected
    assert read("topo-m", wrapped, "source").notes == expected


@pytest.mark.parametrize(
    "text",
    [
        cases.GLUED,
        # Only some columns run together; names of NICs that only rows can tell.
        cases.GLUED.replace("NIC0NIC1CPU", "ibp1ibp10\tCPU")
        .replace("NIC0", "ibp1")
        .replace("NIC1", "ibp10"),
        cases.GLUED.replace("GPU0     X     ", "GPU0X").replace(
            "GPU1    NV18    ", "GPU1NV18"
        ),
        cases.GLUED.replace("SYS", "SOC"),
    ],
)
def test_columns_that_run_together(text):
    """A terminal that drops tabs glues names, and cells where they still differ."""
    findings = read("topo-m", text, "source")
    (note,) = findings.notes
    assert note.startswith("2 GPUs, 2 NICs, NV18 between all GPUs; nearest NICs: ")
    assert [len(near) for near in findings.affinity.nics] == [1, 1]
    assert findings.affinity.numa == (0, 1)


def test_cells_that_cannot_be_told_apart():
    """NV18 and the CPUs 0-31 glued are NV180 or NV18: refused, as the pair differs."""
    text = cases.GLUED.replace("NIC0NIC1", "").replace("PIX    SYS    ", "")
    text = text.replace("NV18   0-31", "NV180-31")
    problem = refusal("topo-m", text)
    assert "GPU0 to GPU1 is NV180" in problem.message


def test_names_that_repeat_do_not_take_long():
    """However often names fit into a glued one, each place is looked at once."""
    rows = "\n".join("a" * n + " PIX" for n in range(1, 60))
    text = f"GPU0 GPU1 {'a' * 5000}b\n{rows}\n"
    assert "run together" in refusal("topo-m", text).message


def matrix(*rows):
    """A matrix of GPUs with these cells."""
    names = [f"GPU{i}" for i in range(len(rows))]
    lines = [
        "\t".join([name, *row.split()]) for name, row in zip(names, rows, strict=True)
    ]
    return "\n".join(["\t" + "\t".join([*names, "CPU Affinity"]), *lines]) + "\n"


PAIRS = matrix("X NV4 SYS SYS", "NV4 X SYS SYS", "SYS SYS X NV4", "SYS SYS NV4 X")
CROSSED = matrix("X SYS NV4 SYS", "SYS X SYS NV4", "NV4 SYS X SYS", "SYS NV4 SYS X")
OUT = matrix("X NV18 SYS", "NV18 X SYS", "SYS SYS X")
MESH = matrix("X NV2 NV1 SYS", "NV2 X SYS NV1", "NV1 SYS X NV2", "SYS NV1 NV2 X")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OUT, "the 3 GPUs are NVLink islands of different sizes: GPU[0-1]; GPU2"),
        (
            labelled({"n1": OUT, "n2": OUT}),
            'the 3 GPUs of "n1" are NVLink islands of different sizes',
        ),
        (
            labelled({"n1": PAIRS, "n2": CROSSED}),
            'GPU[0-1]; GPU[2-3] on "n1", GPU[0,2]; GPU[1,3] on "n2"',
        ),
    ],
)
def test_islands_that_are_refused(text, words):
    """A GPU without NVLink beside others; hosts whose islands are not the same."""
    problem = refusal("topo-m", text)
    assert words in problem.message
    assert "gpus_per_node=" in problem.hint


@pytest.mark.parametrize("text", [PAIRS, labelled({"n1": PAIRS, "n2": PAIRS})])
def test_islands(text):
    """Bridged pairs are islands of two."""
    findings = read("topo-m", text, "source")
    assert findings.nvlink is True
    assert findings.islands == ((0, 1), (2, 3))
    assert "2 NVLink islands: GPU[0-1]; GPU[2-3]" in findings.notes[0]


def test_mesh_is_one_island():
    """NVLink that leads from each GPU to each, over others for some, joins all."""
    findings = read("topo-m", MESH, "source")
    assert findings.nvlink is True
    assert "NV1/NV2 between them" in findings.notes[0]
    assert "although 2 pairs have no NVLink of their own" in findings.notes[0]


def test_host_of_islands_among_others(tmp_path):
    """A host where a GPU has fallen out of NVLink is left out, with the reason."""
    lost = matrix("X NV18 PHB", "NV18 X PHB", "PHB PHB X")
    good = matrix("X NV18 NV18", "NV18 X NV18", "NV18 NV18 X")
    machine, notes = machine_of(tmp_path, labelled({"n1": good, "n2": lost}))
    assert machine.node_names == ("n1",)
    assert "nodes left out, 2 NVLink islands: 1 (n2)" in notes


def test_hosts_that_differ():
    """Hosts with other GPUs or links than the rest get a note of their own."""
    single = "\tGPU0\tCPU Affinity\nGPU0\t X \t0-7\n"
    text = labelled({"a": cases.MATRIX, "b": single, "c": cases.MATRIX})
    notes = read("topo-m", text, "source").notes
    assert notes[0].startswith("2 hosts (a, c): 2 GPUs")
    assert notes[1].startswith("1 hosts (b): 1 GPUs, 0 NICs, no NVLink")


def test_host_without_nvlink_among_others(tmp_path):
    """A host that lost its NVLink is left out, with the reason; the others stay."""
    lost = cases.MATRIX.replace("NV18", "PHB")
    text = labelled({"n1": cases.MATRIX, "n2": lost, "n3": cases.MATRIX})
    machine, notes = machine_of(tmp_path, text)
    assert machine.node_names == ("n1", "n3")
    assert "nodes left out, no NVLink: 1 (n2)" in notes


def test_host_that_failed():
    """A host that printed something else is left out with its line."""
    text = "n0: bash: nvidia-smi: command not found\n" + cases.MATRICES
    findings = read("topo-m", text, "source")
    assert list(findings.nodes) == ["n1", "n2"]
    assert [(p.line, p.message) for p in findings.ignored] == [(1, 'no matrix of "n0"')]


def test_nvlink_must_fit_the_hardware(tmp_path):
    """GPUs without NVLink take no figures from hardware that has it."""
    text = cases.MATRIX.replace("NV18", "NODE")
    problem = problem_of(machine_of, tmp_path, cases.HOSTS, text)
    assert problem.message.startswith("the GPUs of a node have no NVLink")
    assert problem.key == "hardware"


def test_sources_that_count_other_gpus(tmp_path):
    """Kubernetes offers four GPUs, the matrix shows two: two are used, with a note."""
    hosts = {f"gpu-{i}": cases.MATRIX for i in range(8)}
    machine, notes = machine_of(tmp_path, cases.KUBERNETES, labelled(hosts))
    assert set(machine.gpus_of_node.tolist()) == {2}
    assert any("gpu-0 (2 here, 4 there)" in note for note in notes)


def test_fabric_of_hosts(tmp_path):
    """Hosts with one UUID and clique share NVLink: four hosts, two domains."""
    machine, _ = machine_of(tmp_path, cases.FABRIC)
    assert list(nodes_of_domains(machine, "rack").values()) == [
        ["n0", "n1"],
        ["n2", "n3"],
    ]
    assert machine.num_gpus == 16
    assert machine.domain_names[1][0] == "50000000-0000-0000-0000-000000000005.40"


def test_fabric_as_csv(tmp_path):
    """A line a GPU: the UUID and the clique; N/A is no domain."""
    text = "".join(
        f"n{i}: {uuid}, {clique}\n" * 4
        for i, (uuid, clique) in enumerate(
            [
                ("50000000-0000-0000-0000-000000000005", "7"),
                ("50000000-0000-0000-0000-000000000005", "7"),
                ("50000000-0000-0000-0000-000000000005", "8"),
                ("[N/A]", "[N/A]"),
            ]
        )
    )
    machine, notes = machine_of(tmp_path, text)
    assert list(nodes_of_domains(machine, "rack").values()) == [
        ["n0", "n1"],
        ["n2"],
        ["n3"],
    ]
    assert machine.num_gpus == 16
    assert any("unknown for 1 of 4 nodes" in note for note in notes)


def test_one_file_a_host(tmp_path):
    """Files without labels are of the hosts they are called after."""
    paths = []
    for name in ("gpu-a", "gpu-b"):
        path = tmp_path / f"{name}.txt"
        path.write_text(fabric_query("9", "9"))
        paths.append(path)
    machine = read_topology(paths, hardware=cases.GB200, note=lambda _: None)
    assert machine.gpus_of_node.tolist() == [2, 2]
    assert list(nodes_of_domains(machine, "rack").values()) == [["gpu-a", "gpu-b"]]


def test_zero_uuid_is_no_domain():
    """Hosts of eight GPUs report a completed fabric of zeros: none beyond the host."""
    zero = "00000000-0000-0000-0000-000000000000"
    text = labelled({"n1": fabric_query("0", "0", uuid=zero)})
    findings = read("fabric", text, "source")
    assert findings.nodes["n1"].domains == ("",)
    assert "no host is part of an NVLink domain of several hosts" in findings.notes


def test_fabric_in_progress():
    """A fabric that is not complete yet gives no domain and is counted."""
    text = fabric_query("4", "4").replace(": Completed", ": In Progress")
    findings = read("fabric", labelled({"n1": text}), "source")
    assert findings.nodes["n1"].domains == ("",)
    assert "hosts whose NVLink fabric is In Progress: 1" in findings.notes


def test_gpus_that_disagree():
    """GPUs of a host in different cliques: the host is reported and has no domain."""
    findings = read("fabric", labelled({"n1": fabric_query("4", "5")}), "source")
    assert findings.nodes["n1"].domains == ("",)
    assert 'GPUs of "n1" differ' in findings.ignored[0].message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (fabric_query("4", "4").replace("GPUs      ", "GPUs : 4 #"), "no line says"),
        (
            labelled({"n1": fabric_query("4", "4").replace(": 2\n", ": 4\n")}),
            "4 GPUs attached, 2 listed: cut?",
        ),
        ("n1: nothing\n", "no fabric of a GPU"),
    ],
)
def test_bad_fabrics(text, message):
    """What is cut, of no host or without a fabric is refused."""
    source = "source" if "n1" in text else "<stdin>"
    assert message in problem_of(read, "fabric", text, source).message


def test_lines_without_a_label_are_reported():
    """Among labelled lines one without a label is left out, with its number."""
    findings = read("fabric", "ssh: timeout\n" + cases.FABRIC + "broken\n", "source")
    assert len(findings.nodes) == 4
    assert [problem.message for problem in findings.ignored] == [
        "no host in front",
        'no fabric of a GPU of "ssh" in it',
    ]
