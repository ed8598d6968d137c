"""What tables say of sources: ``tests/data/readers/cases``.

A case promises something in a sentence (``says``) and gives sources: ``of``, those of
a machine, recognised by what they hold, and ``captured``, names of more of them; or
``read``, one source and the format whose reader alone is asked. A source is the name of
a text in `tests.readers.cases`, a text by itself, something of `BUILT`, or what
`tests.texts.Texts` takes. ``with`` are options of `placer.read_topology`; all else is
what must be found.
"""

from copy import deepcopy

import pytest

from placer.base.hostlist import compress, expand
from placer.formats.machines.registry import read
from placer.topology.gpu_kinds import HostHint
from tests.injob.stand_ins import line
from tests.problems import problems_of
from tests.readers import cases
from tests.texts import Texts
from tests.texts import cases as tables


def item_of(item):
    """A node of Kubernetes by its name and labels, or a slice of its devices."""
    if "slice" in item:
        devices = [cases.device(*each) for each in item.pop("devices")]
        return cases.resource_slice(item.pop("slice"), devices, **item)
    if "name" not in item:
        return item
    node = cases.node(item["name"], item.get("labels", {}), **item.get("spec", {}))
    if "gpus" in item:
        node["status"] = {"allocatable": {"cpu": "96"} | item["gpus"]}
    return node | {"status": node["status"] | item.get("status", {})}


def in_groups(sizes):
    """A matrix of GPUs that XGMI joins in groups of these sizes."""
    group = [number for number, size in enumerate(sizes) for _ in range(size)]
    return cases.link_types(len(group), lambda a, b: group[a] == group[b])


def xml(content):
    """A topology of NCCL of rings of GPUs, or of links."""
    links = dict(content.get("links", {}))
    for gpus in content.get("rings", ()):
        links |= cases.ring(*gpus)
    more = {key: content[key] for key in content if key not in ("links", "rings")}
    return cases.node_xml(links, **more)


def hosts_of_one_file(contents):
    """Topologies of NCCL, of a host each."""
    texts = [
        xml({**content, "host_hash": f"0x{k}"}) for k, content in enumerate(contents)
    ]
    cpus = [text[text.index("<cpu") : text.index("</system>")] for text in texts]
    return f"<system>{''.join(cpus)}</system>"


def probes(hosts):
    """Probes of these hosts, and what else each says; ``HOST`` is its name."""
    rows = [(host, more) for names, more in hosts.items() for host in hosts_of(names)]
    return "".join(line(host, **more).replace("HOST", host) for host, more in rows)


def hosts_of(names):
    return expand(names) if " " not in names else [names]


def rails(content):
    """A fabric of rails with other names of nodes, and links that are cut."""
    fabric = cases.rail_fabric(**content.get("sizes", {}))
    for node, name in content.get("names", {}).items():
        fabric.names[whole(node)] = name
    for a, b in content.get("cut", ()):
        fabric.cut(whole(a), whole(b))
    return fabric.text()


def whole(node):
    """A node of a fabric with all digits of its GUID."""
    return f"{node[:2]}{int(node[2:], 16):016x}"


BUILT = {
    "probes": probes,
    "rails": rails,
    "nodes of": lambda items: cases.nodes(*map(item_of, items)),
    "nodes": lambda words: cases.labelled_nodes(*words),
    "behind labels": lambda hosts: cases.labelled(
        {host: text_of(source, None) for host, source in hosts.items()}
    ),
    "fabric": lambda words: cases.fabric_query(*words[0], **words[1]),
    "matrix": lambda rows: cases.matrix(*rows),
    "XGMI in groups of": in_groups,
    "XGMI in a ring of": lambda count: cases.link_types(
        count, lambda a, b: (a - b) % count in (1, count - 1)
    ),
    "xml": xml,
    "hosts of one file": hosts_of_one_file,
    "netq": lambda content: cases.netq(
        *map(tuple, content["links"]), **content["tiers"]
    ),
}
text_of = Texts(vars(cases), BUILT)
OF_MACHINES = {
    "tiers": cases.tier_names,
    "joined by NVLink": lambda machine: machine.tiers[machine.scale_up_tier].name,
    "nodes": lambda machine: compress(machine.node_names),
    "domains": lambda machine: {
        tier: {
            name: compress(nodes)
            for name, nodes in cases.nodes_of_domains(machine, tier).items()
        }
        for tier in cases.tier_names(machine)
    },
    "sizes": lambda machine: {
        tier: cases.sizes(machine, tier) for tier in cases.tier_names(machine)
    },
    "gpus": lambda machine: machine.gpus_of_node.tolist(),
    "left out": lambda machine: dict(machine.unavailable),
    "gpu": lambda machine: machine.gpu.name,
    "bandwidths": lambda machine: [t.bandwidth for t in machine.by_island.tiers],
    "island tiers": lambda machine: [t.name for t in machine.by_island.tiers],
    "members": lambda machine: list(machine.islands.members),
    "assumed": lambda machine: [each.key for each in machine.assumed],
    "options": lambda machine: {e.key: [e.value, e.option] for e in machine.assumed},
    "why": lambda machine: {e.key: e.why.split(", which ")[0] for e in machine.assumed},
}
OF_FINDINGS = {
    "nvlink": lambda found: found.nvlink,
    "islands": lambda found: [list(gpus) for gpus in found.islands],
    "numa": lambda found: list(found.affinity.numa),
    "nics": lambda found: [list(names) for names in found.affinity.nics],
    "gpus": lambda found: {name: facts.gpus for name, facts in found.nodes.items()},
    "nodes": lambda found: compress(found.nodes),
    "aliases": lambda found: found.aliases,
    "gpu": lambda found: found.gpu,
    "domains": lambda found: {n: [*facts.domains] for n, facts in found.nodes.items()},
    "ignored": lambda found: [[p.line, p.message] for p in found.ignored],
}
# Of these a case may say a part.
PARTS = ("domains", "sizes", "options", "why")


def found_of(folder, case, samples):
    """The machine or the findings, and the notes; takes the input out of the case."""
    own_text_of = Texts(vars(cases) | case.pop("texts", {}), BUILT)
    if "read" in case:
        ((name, source),) = case.pop("read").items()
        found = read(name, own_text_of(source), case.pop("called", "source"))
        return found, found.notes
    options = case.pop("with", {})
    if "hint" in options:
        hint = HostHint(*options["hint"])
        options["hint"] = lambda: hint
    hardware = options.get("hardware", "GB200")
    if hardware:
        options["hardware"] = text_of(hardware)
    if "tiers:" in (options.get("hardware") or ""):
        path = folder / "hardware.yaml"
        path.write_text(options["hardware"])
        options["hardware"] = str(path)
    texts = [own_text_of(source) for source in case.pop("of", ())]
    texts += [(samples / name).read_text() for name in case.pop("captured", ())]
    return cases.machine_of(folder, *texts, **options)


def check_problem(problem, case):
    """It has these words, this hint and this place."""
    assert case.pop("problem") in problem.message
    assert problem.message.isprintable()
    if "hint" in case:
        hint = case.pop("hint")
        assert hint in problem.hint if hint else not problem.hint
    assert {key: getattr(problem, key) for key in case} == case


def part_of(value, expected):
    """The value, of mappings the keys that are expected."""
    if not isinstance(expected, dict):
        return value
    return {key: part_of(value.get(key), inside) for key, inside in expected.items()}


@pytest.mark.parametrize("case", tables("readers/cases"))
def test_what_is_read(tmp_path, case, request):
    """What the case says is what the reader, or the machine, tells."""
    samples = tmp_path
    if "captured" in case:
        samples = request.getfixturevalue("samples")
    rest = {key: deepcopy(value) for key, value in case.items() if key != "says"}
    if "problem" in rest:
        check_problem(problems_of(found_of, tmp_path, rest, samples)[0], rest)
        return
    found, notes = found_of(tmp_path, rest, samples)
    for words, is_said in (("notes", True), ("silent", False)):
        for part in rest.pop(words, ()):
            assert any(part in note for note in notes) == is_said, (part, notes)
    told = OF_FINDINGS if "read" in case else OF_MACHINES
    for key, expected in rest.items():
        value = told[key](found)
        assert (part_of(value, expected) if key in PARTS else value) == expected, key
