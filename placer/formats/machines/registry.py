"""Every format that a machine can be read from.

A format is a row of the table below and a function, whose module is loaded when it is
first named,

    def read(text: str, source: str) -> Findings

which turns the text of a file into `placer.formats.machines.findings.Findings` and
knows nothing of other sources, of bandwidths or of the command. ``source`` is the
file's name for messages (and, where a format includes other files, its path). What is
wrong is raised as one `InputError` with all problems and their places; what is merely
not understood goes to ``Findings.ignored``, what a user should know to
``Findings.notes``, and nothing is guessed: a domain that the source does not give stays
empty.

For YAML and JSON `placer.documents.parse_answer` gives values with places; for
``Key=Value`` lines there is `placer.formats.machines.slurm_conf`, for a tree of
switches `placer.formats.machines.switches`, and for the output of one command on many
hosts `placer.formats.machines.labelled`. What holds for every node that other sources
list, or needs them otherwise, is given by ``Findings.join``; measured bandwidths by
``Level.bandwidth`` and ``Findings.node_bandwidth``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from placer.documents.recognise import Format
from placer.formats.machines.fabric_domain import UUID
from placer.formats.machines.findings import Findings
from placer.formats.machines.labelled import LABEL

if TYPE_CHECKING:
    from placer.formats.machines.node_labels import LabelRules


@dataclass(frozen=True)
class MachineFormat(Format):
    """One format of machines."""

    # Module of `placer.formats.machines` and function, as ``clouds.read_aws``.
    reader: str = field(kw_only=True)
    # Whether that takes `placer.formats.machines.node_labels.LabelRules` too.
    takes_labels: bool = False
    # Who hands out the nodes of a machine that has such a file: ``slurm``,
    # ``kubernetes``, or empty where either may.
    scheduler: str = ""


# A name and its reader, then who hands out the nodes, ``labels`` where the reader takes
# their rules, and ``before:`` a format whose pattern is found here too. Below them what
# it is; then, where its content shows it, its pattern, broken anywhere into lines, in
# which <LABEL> is a host in front of a line and <UUID> an id.
_TABLE = r"""
slurm slurm_conf.read_conf slurm
    Slurm topology.conf: switches or blocks
    (?i)^[ \t]*(?:SwitchName|BlockName)[ \t]*=[ \t]*\S++
    (?![^\n]* (?:Level|BlockIndex)=)
slurm-yaml slurm_yaml.read_yaml slurm
    Slurm topology.yaml: tree and block topologies
    ^-[ \t]+topology[ \t]*:
scontrol slurm_conf.read_scontrol slurm
    what scontrol show topology prints
    ^(?:SwitchName=\S+ Level|BlockName=\S+ BlockIndex)=
slurm-nodes slurm_nodes.read slurm
    Slurm's nodes and GPUs: scontrol show node, slurm.conf, sinfo
    (?i)^[ \t]*NodeName[ \t]*=[ \t]*\S
    |^[ \t]*(?:NODELIST|HOSTNAMES)[ \t]+(?:\S+[ \t]+){0,5}GRES\b
    |^[ \t]*GRES[ \t]+(?:\S+[ \t]+){0,5}(?:NODELIST|HOSTNAMES)\b
configmap slurm_yaml.read_configmap slurm before:slurm before:slurm-yaml
    a ConfigMap of Slinky around topology.yaml or topology.conf
    "kind"\s*:\s*"ConfigMap"|^[ -]{0,4}kind:[ ]*ConfigMap\b
azslurm clouds.read_azslurm slurm
    NVLink blocks as JSON, of Azure's azslurm
    "blockname"\s*:
topograph topograph.read_graph
    topograph's graph JSON
    "network_layers"\s*:
topograph-model topograph.read_model
    topograph's simulation model YAML
    ^blocks[ \t]*:[ \t]*(?:#.*)?$
kubernetes kubernetes.read kubernetes labels
    node labels, as kubectl get nodes -o json prints them
    "kind"\s*:\s*"(?:Node|ResourceSlice)(?:List)?"
probe probe.read labels
    what placer probe prints on every node of a job
    \{"format": ?"placer/probe"
topologies kubernetes.read_orders kubernetes
    Topology objects of Kueue or KAI: the order of node labels
    \A(?![\s\S]*"kind"\s*:\s*"Node(?:List)?")
    [\s\S]*?(?:"nodeLabel"|^[ -]*nodeLabel|[{,][ ]*nodeLabel)[ \t]*:
aws clouds.read_aws
    aws ec2 describe-instance-topology
    "NetworkNodes"\s*:
gcp clouds.read_gcp
    gcloud compute instances list --format=json
    "physicalHost(?:Topology)?"\s*:
oci clouds.read_oci
    OCI compute hosts, or host: {rdmaTopologyData} lines
    "(?:customer(?:Local|Network)Block|(?:local|network)-?[bB]lock-?[iI]d)"\s*:
fabric nvidia_fabric.read
    nvidia-smi -q of many hosts, or its fabric ids as CSV
    ^(?:<LABEL>)?(?: {2,}Fabric[ ]*|[ ]*<UUID>[ ]*,[ ]*[0-9]{1,20}[ ]*)$
nmx netq.read_nmx
    compute nodes of NVLink domains, from NMX or NetQ
    "DomainUUID"\s*:
netq netq.read_netq
    NetQ's topology graph: switches and links by tier
    "compounded_nodes"\s*:
topo-m nvidia_topo.read
    nvidia-smi topo -m, of one node or of many
    ^(?:<LABEL>)?[ \t]*GPU0[ \t]+X(?:[ \t]|$)
rocm-smi amd_topo.read
    rocm-smi --showtopo or amd-smi topology, of one node or many
    ^(?:<LABEL>)?(?:=+ Link Type between two GPUs =+|LINK TYPE TABLE:)[ \t]*$
    |"\(Topology\) Link type between DRM devices[ ]
    |"link_type"[ ]*:[ ]*"(?:SELF|XGMI|PCIE)"
nccl nccl_xml.read
    NCCL's or RCCL's topology XML, of one node
    ^[ \t]*<(?:system|graphs)(?:[ \t>]|$)
ibnetdiscover ibnetdiscover.read
    what ibnetdiscover prints of an InfiniBand fabric
    ^(?:Switch|Ca)[ \t]+[0-9]+[ \t]+"[SH]-[0-9A-Fa-f]+"
bandwidth bandwidth.read
    measured bandwidths, a CSV matrix of hosts or GPUs
    \A(?:#[^\n]*\n)*[ ]*[A-Za-z]{1,5}(?:/s|bps)(?: per GPU)?[ ]*[,\t]
hosts lists.read_hosts
    the nodes, as host lists
names lists.read_names
    host names for instance ids, two words a line
"""
_BEFORE = "before:"


def _rows() -> Iterator[MachineFormat]:
    for row in re.split(r"\n(?=\S)", _TABLE.strip()):
        words, description, *pattern = map(str.strip, row.split("\n"))
        name, reader, *said = words.split()
        text = "".join(pattern).replace("<LABEL>", LABEL).replace("<UUID>", UUID)
        yield MachineFormat(
            name,
            description,
            text,
            before=tuple(w.removeprefix(_BEFORE) for w in said if _BEFORE in w),
            reader=reader,
            takes_labels="labels" in said,
            scheduler=next((w for w in said if w in ("slurm", "kubernetes")), ""),
        )


FORMATS: dict[str, MachineFormat] = {row.name: row for row in _rows()}


def read(
    name: str, text: str, source: str, rules: LabelRules | None = None
) -> Findings:
    """Findings of a text in the format called ``name``.

    ``rules``: what node labels mean, for formats that have some.
    """
    row = FORMATS[name]
    told = (rules,) if row.takes_labels else ()
    module, _, function = row.reader.rpartition(".")
    reader = getattr(import_module(f"placer.formats.machines.{module}"), function)
    findings: Findings = reader(text, source, *told)
    findings.format = name
    return findings
