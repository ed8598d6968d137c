"""Small sources of every format, and what tests ask of a machine."""

import json
from collections import Counter

from placer.documents.recognise import recognise
from placer.formats.machines.machine import read_topology
from placer.formats.machines.registry import FORMATS, read
from tests.injob.stand_ins import PROBES
from tests.problems import problems_of
from tests.texts import data

# GPUs a node 8 and NVLink inside the node only; 4 and NVLink racks.
H100 = "dgx-h100-4x8"
GB200 = "azure-gb200-mlperf-v6"
# Two islands of four GPUs a node.
HIVES = data("machines/hives.yaml")

TREE = data("machines/tree.conf")
TWO_SPINES = data("machines/two-spines.conf")
BLOCKS = data("machines/blocks.conf")
YAML = data("machines/topology.yaml")
SCONTROL = data("machines/scontrol.txt")
SCONTROL_BLOCKS = data("machines/scontrol-blocks.txt")
MODEL = data("machines/topograph-model.yaml")
GRAPH = data("machines/topograph-graph.json")
AWS = data("machines/aws.json")
GCP = data("machines/gcp.json")
OCI = data("machines/oci.txt")
ORDER = data("machines/kueue-topology.yaml")
CONFIGMAP = data("machines/configmap.yaml")
AZSLURM = data("machines/azslurm.json")
NMX = data("machines/nmx.json")


def netq(*links, **tiers):
    """NetQ's graph of devices of these tiers (-1 for hosts) and links."""
    devices = [{"id": d, "name": f"dev-{d}", "tier": t} for d, t in tiers.items()]
    pairs = [{"id": f"{a}-*-{b}", "src": a, "target": b} for a, b in links]
    return json.dumps(
        [{"links": pairs, "nodes": [{"compounded_nodes": devices}]}], indent=1
    )


NETQ = netq(
    *((f"h{i}", f"l{i // 2}") for i in range(8)),
    *((f"s{i // 2}", f"l{i}") for i in range(4)),
    *((f"s{i}", "c") for i in range(2)),
    **{f"h{i}": -1 for i in range(8)},
    **{f"l{i}": 1 for i in range(4)},
    s0=2,
    s1=2,
    c=3,
)
NAMES = "# instance host\n" + "".join(f"i-{i} gpu-{i}\n" for i in range(8))


def node(name, labels, **more):
    """A Kubernetes node with four GPUs."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": more,
        "status": {"allocatable": {"nvidia.com/gpu": "4"}},
    }


def nodes(*items):
    """What ``kubectl get nodes -o json`` prints for these nodes."""
    return json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=1)


def labelled_nodes(count, sizes):
    """Nodes n0, n1, ... with labels of which a value holds so many neighbours."""
    return nodes(
        *(
            node(f"n{i}", {key: f"v{i // size}" for key, size in sizes.items()})
            for i in range(count)
        )
    )


def resource_slice(name, devices, driver="gpu.nvidia.com", generation=1, count=1):
    """A slice of one node's pool, as ``kubectl get resourceslices -o json`` has it."""
    pool = {"name": name, "generation": generation, "resourceSliceCount": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-{driver}-{generation}"},
        "spec": {"driver": driver, "nodeName": name, "pool": pool, "devices": devices},
    }


def device(number, kind="gpu", taint=""):
    """A device of a type, and with a taint that keeps pods off."""
    attributes = {
        "type": {"string": kind},
        "resource.kubernetes.io/pciBusID": {"string": f"0000:{number:02x}:00.0"},
    }
    found = {"name": f"{kind}-{number}", "attributes": attributes}
    return found | (
        {"taints": [{"key": taint, "effect": "NoExecute"}]} if taint else {}
    )


KUBERNETES = data("machines/kubernetes.json")

SLICES = nodes(
    node("n1", {"nvidia.com/gpu.count": "8"}),
    resource_slice("n1", [device(0), device(1, "mig"), device(2)]),
    resource_slice("n1", [device(2, "amdgpu")], "gpu.amd.com"),
)
LABELS = data("machines/kubernetes-labels.json")


def fabric_query(*cliques, uuid="50000000-0000-0000-0000-000000000005"):
    """What nvidia-smi -q prints of GPUs of these cliques, shortened."""
    gpus = "".join(
        data("machines/fabric-gpu.txt").format(i=i, clique=clique, uuid=uuid)
        for i, clique in enumerate(cliques)
    )
    head = "==============NVSMI LOG==============\n\nTimestamp : now\n"
    return f"{head}Attached GPUs                             : {len(cliques)}\n{gpus}"


def labelled(hosts):
    """The output of several hosts as pdsh prints it."""
    return "".join(
        f"{host}: {line}\n" for host, text in hosts.items() for line in text.split("\n")
    )


FABRIC = labelled({f"n{i}": fabric_query(*[f"4{i // 2}"] * 4) for i in range(4)})
MATRIX = data("machines/topo-m.txt")
GLUED = data("machines/topo-m-glued.txt")
MATRICES = labelled({"n1": MATRIX, "n2": MATRIX})
# GPUs whose NUMA nodes stand in a column of their own.
NEAR = data("machines/topo-m-near.txt")


def matrix(*rows):
    """What nvidia-smi topo -m prints of GPUs with these cells."""
    names = [f"GPU{i}" for i in range(len(rows))]
    lines = [
        "\t".join([name, *row.split()]) for name, row in zip(names, rows, strict=True)
    ]
    return "\n".join(["\t" + "\t".join([*names, "CPU Affinity"]), *lines]) + "\n"


def link_types(count, joined):
    """What rocm-smi --showtopo prints where XGMI joins the pairs that ``joined`` says.

    The hops come before the types of the links.
    """
    names = [f"GPU{gpu}" for gpu in range(count)]

    def table(title, cell):
        rows = [
            [name, *(cell(a, b) if a != b else "0" for b in range(count))]
            for a, name in enumerate(names)
        ]
        lines = [
            "".join(f"{word:<12} " for word in row) for row in [["", *names], *rows]
        ]
        return [f"===== {title} =====", *lines, ""]

    kinds = {True: "XGMI", False: "PCIE"}
    hops = table("Hops between two GPUs", lambda a, b: "1" if joined(a, b) else "3")
    types = table("Link Type between two GPUs", lambda a, b: kinds[joined(a, b)])
    head, end = "===== ROCm System Management Interface =====", "===== Numa Nodes ====="
    numa = "GPU[0]\t\t: (Topology) Numa Node: 0"
    return "\n".join([head, *hops, *types, end, numa, "===== End of Log =====", ""])


def all_joined(*_):
    """Every pair has a link."""
    return True


def halves(a, b):
    """Pairs within the first four GPUs and within the others have a link."""
    return (a < 4) == (b < 4)


LINK_TYPES = labelled({f"n{i}": link_types(4, all_joined) for i in (1, 2)})
LINK_TYPES_JSON = data("machines/rocm-smi.json")
LINK_TYPES_OF_AMD_SMI = data("machines/amd-smi.txt")
XML = data("machines/nccl.xml")


def node_xml(links, *, link="xgmi", pci="0x120000", target_class="0x120000", **host):
    """A topology of NCCL: GPUs by number, and the GPUs or busids that links lead to."""
    busids = {gpu: f"0000:{gpu + 16:02x}:00.0" for gpu in links}
    tclass = f' tclass="{target_class}"' if target_class else ""
    own = "".join(f' {key}="{value}"' for key, value in host.items())
    gpus = "".join(
        f'<pci busid="{busids[gpu]}" class="{pci}"><gpu dev="{gpu}">'
        + "".join(
            f'<{link} target="{busids.get(to, to)}" count="1"{tclass}/>'
            for to in targets
        )
        + "</gpu></pci>"
        for gpu, targets in links.items()
    )
    return f'<system version="2"><cpu numaid="0"{own}>{gpus}</cpu></system>\n'


def ring(*gpus):
    """Links of each GPU to the one before and the one after it."""
    return {gpu: (gpus[i - 1], gpus[(i + 1) % len(gpus)]) for i, gpu in enumerate(gpus)}


XGMI = node_xml(ring(0, 1, 2, 3))
BANDWIDTH = data("machines/bandwidth.csv")
HOSTS = "n[1-2]\nn3,n4  # the rest\n"


class InfiniBand:
    """Switches, adapters and links, printed as ibnetdiscover prints them."""

    def __init__(self):
        self.names = {}
        self.ports = {}

    def add(self, node, name):
        self.names[node] = name
        self.ports[node] = []
        return node

    def link(self, a, b):
        end_a, end_b = len(self.ports[a]) + 1, len(self.ports[b]) + 1
        self.ports[a].append((b, end_b))
        self.ports[b].append((a, end_a))

    def cut(self, a, b):
        """Take the links between two nodes away."""
        for x, y in ((a, b), (b, a)):
            own = self.ports[x]
            self.ports[x] = [("", 0) if end[0] == y else end for end in own]

    def text(self):
        parts = ["#\n# Topology file: generated\n#\n"]
        for node, links in self.ports.items():
            kind, mark = ("Switch", "switch") if node[0] == "S" else ("Ca", "ca")
            guid = node[2:]
            parts.append(f"\nvendid=0x2c9\n{mark}guid=0x{guid}({guid})\n")
            name = self.names[node]
            parts.append(f'{kind}\t{len(links)} "{node}"\t\t# "{name}" port 0 lid 7\n')
            own = f"({guid})" if node[0] == "H" else ""
            for port, (other, end) in enumerate(links, start=1):
                if not other:
                    continue
                far = f"({other[2:]})" if other[0] == "H" else ""
                comment = f'"{self.names[other]}" lid 9 4xNDR'
                parts.append(f'[{port}]{own}\t"{other}"[{end}]{far} \t\t# {comment}\n')
        return "".join(parts)


def rail_fabric(num_units=2, hosts_of_unit=2, rails=2, spines=2):
    """Units of hosts, each with a leaf a rail; two links from leaf to spine."""
    fabric = InfiniBand()
    tops = [fabric.add(f"S-{i:016x}", f"MF0;spine{i}:Q/U1") for i in range(spines)]
    for unit in range(num_units):
        leaves = []
        for rail in range(rails):
            number = 0x1000 + unit * rails + rail
            name = f"MF0;leaf{unit}-{rail}:Q/U1"
            leaves.append(fabric.add(f"S-{number:016x}", name))
            for top in tops:
                fabric.link(leaves[-1], top)
                fabric.link(leaves[-1], top)
        for host in range(hosts_of_unit):
            number = unit * hosts_of_unit + host
            for rail, leaf in enumerate(leaves):
                guid = f"H-{0x10000000 + number * rails + rail:016x}"
                fabric.link(leaf, fabric.add(guid, f"h{number} mlx5_{rail}"))
    return fabric


SLURM_CONF = data("machines/slurm.conf")
SLURM_NODES = data("machines/slurm-nodes.conf")
TEXTS = {
    "slurm-nodes": SLURM_NODES,
    "probe": PROBES,
    "fabric": FABRIC,
    "topo-m": MATRICES,
    "rocm-smi": LINK_TYPES,
    "nccl": XML,
    "ibnetdiscover": rail_fabric().text(),
    "bandwidth": BANDWIDTH,
    "hosts": HOSTS,
    "slurm": TREE,
    "slurm-yaml": YAML,
    "scontrol": SCONTROL,
    "topograph-model": MODEL,
    "topograph": GRAPH,
    "kubernetes": KUBERNETES,
    "aws": AWS,
    "gcp": GCP,
    "oci": OCI,
    "topologies": ORDER,
    "configmap": CONFIGMAP,
    "azslurm": AZSLURM,
    "nmx": NMX,
    "netq": NETQ,
    "names": NAMES,
}
# Other files of some of the formats.
MORE_TEXTS = (
    ("nccl", XGMI),
    ("rocm-smi", LINK_TYPES_JSON),
    ("rocm-smi", LINK_TYPES_OF_AMD_SMI),
    ("topo-m", MATRIX),
    ("topo-m", GLUED),
    ("slurm", TWO_SPINES),
    ("kubernetes", SLICES),
)
# Formats that do not show themselves, and those that list no nodes.
HIDDEN = ("names", "hosts")
NO_NODES = ("names", "nccl", "topologies")
# Those that list nodes only where each line has its host in front.
ONE_NODE = ("topo-m", "rocm-smi")
HARDWARE = dict.fromkeys(("ibnetdiscover", "aws", "gcp", "oci"), H100)


def prefix_of(text):
    """The format to say of a text that does not show it."""
    if recognise(text, FORMATS.values()):
        return ""
    first = next(line for line in text.split("\n") if line[:1] != "#")
    return "names:" if len(first.split()) == 2 else "hosts:"


def machine_of(folder, *texts, hardware=GB200, **options):
    """The machine of some texts, recognised by content, and the notes."""
    sources = []
    for number, text in enumerate(texts):
        path = folder / f"source{number}"
        path.write_text(text)
        sources.append(f"{prefix_of(text)}{path}")
    notes = []
    machine = read_topology(sources, hardware=hardware, note=notes.append, **options)
    return machine, notes


def nodes_of_domains(machine, tier):
    """Names of the nodes of every domain of a tier."""
    t = machine.tier_index(tier)
    found = {name: [] for name in machine.domain_names[t]}
    for name, domain in zip(machine.node_names, machine.domain_of_node[t], strict=True):
        found[machine.domain_names[t][domain]].append(name)
    return found


def sizes(machine, tier):
    """How many domains of a tier have how many nodes."""
    return Counter(map(len, nodes_of_domains(machine, tier).values()))


def tier_names(machine):
    """Names of the tiers, innermost first."""
    return [tier.name for tier in machine.tiers]


def refusal(name, text):
    """The first problem for which a reader refuses a text, in words."""
    return problems_of(read, name, text, "source")[0].message
