"""Every format that a machine can be read from.

A format is a row of `FORMATS` and a function, whose module is loaded when it is first
named,

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

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from placer.documents.recognise import Format
from placer.formats.machines.findings import Findings
from placer.formats.machines.labelled import LABEL

if TYPE_CHECKING:
    from placer.formats.machines.node_labels import LabelRules

_UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"


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


FORMATS: dict[str, MachineFormat] = {
    row.name: row
    for row in (
        MachineFormat(
            name="slurm",
            description="Slurm topology.conf: switches or blocks",
            reader="slurm_conf.read_conf",
            pattern=r"(?i)^[ \t]*(?:SwitchName|BlockName)[ \t]*=[ \t]*\S++"
            r"(?![^\n]* (?:Level|BlockIndex)=)",
            scheduler="slurm",
        ),
        MachineFormat(
            name="slurm-yaml",
            description="Slurm topology.yaml: tree and block topologies",
            reader="slurm_yaml.read_yaml",
            pattern=r"^-[ \t]+topology[ \t]*:",
            scheduler="slurm",
        ),
        MachineFormat(
            name="scontrol",
            description="what scontrol show topology prints",
            reader="slurm_conf.read_scontrol",
            pattern=r"^(?:SwitchName=\S+ Level|BlockName=\S+ BlockIndex)=",
            scheduler="slurm",
        ),
        MachineFormat(
            name="slurm-nodes",
            description="Slurm's nodes and GPUs: scontrol show node, slurm.conf, sinfo",
            reader="slurm_nodes.read",
            pattern=r"(?i)^[ \t]*NodeName[ \t]*=[ \t]*\S"
            r"|^[ \t]*(?:NODELIST|HOSTNAMES)[ \t]+(?:\S+[ \t]+){0,5}GRES\b"
            r"|^[ \t]*GRES[ \t]+(?:\S+[ \t]+){0,5}(?:NODELIST|HOSTNAMES)\b",
            scheduler="slurm",
        ),
        MachineFormat(
            name="configmap",
            description="a ConfigMap of Slinky around topology.yaml or topology.conf",
            reader="slurm_yaml.read_configmap",
            pattern=r'"kind"\s*:\s*"ConfigMap"|^[ -]{0,4}kind:[ ]*ConfigMap\b',
            before=("slurm", "slurm-yaml"),
            scheduler="slurm",
        ),
        MachineFormat(
            name="azslurm",
            description="NVLink blocks as JSON, of Azure's azslurm",
            reader="clouds.read_azslurm",
            pattern=r'"blockname"\s*:',
            scheduler="slurm",
        ),
        MachineFormat(
            name="topograph",
            description="topograph's graph JSON",
            reader="topograph.read_graph",
            pattern=r'"network_layers"\s*:',
        ),
        MachineFormat(
            name="topograph-model",
            description="topograph's simulation model YAML",
            reader="topograph.read_model",
            pattern=r"^blocks[ \t]*:[ \t]*(?:#.*)?$",
        ),
        MachineFormat(
            name="kubernetes",
            description="node labels, as kubectl get nodes -o json prints them",
            reader="kubernetes.read",
            pattern=r'"kind"\s*:\s*"(?:Node|ResourceSlice)(?:List)?"',
            takes_labels=True,
            scheduler="kubernetes",
        ),
        MachineFormat(
            name="probe",
            description="what placer probe prints on every node of a job",
            reader="probe.read",
            pattern=r'\{"format": ?"placer/probe"',
            takes_labels=True,
        ),
        MachineFormat(
            name="topologies",
            description="Topology objects of Kueue or KAI: the order of node labels",
            reader="kubernetes.read_orders",
            pattern=r'\A(?![\s\S]*"kind"\s*:\s*"Node(?:List)?")'
            r'[\s\S]*?(?:"nodeLabel"|^[ -]*nodeLabel|[{,][ ]*nodeLabel)[ \t]*:',
            scheduler="kubernetes",
        ),
        MachineFormat(
            name="aws",
            description="aws ec2 describe-instance-topology",
            reader="clouds.read_aws",
            pattern=r'"NetworkNodes"\s*:',
        ),
        MachineFormat(
            name="gcp",
            description="gcloud compute instances list --format=json",
            reader="clouds.read_gcp",
            pattern=r'"physicalHost(?:Topology)?"\s*:',
        ),
        MachineFormat(
            name="oci",
            description="OCI compute hosts, or host: {rdmaTopologyData} lines",
            reader="clouds.read_oci",
            pattern=r'"(?:customer(?:Local|Network)Block'
            r'|(?:local|network)-?[bB]lock-?[iI]d)"\s*:',
        ),
        MachineFormat(
            name="fabric",
            description="nvidia-smi -q of many hosts, or its fabric ids as CSV",
            reader="nvidia_fabric.read",
            pattern=rf"^(?:{LABEL})?(?: {{2,}}Fabric[ ]*"
            rf"|[ ]*{_UUID}[ ]*,[ ]*[0-9]{{1,20}}[ ]*)$",
        ),
        MachineFormat(
            name="nmx",
            description="compute nodes of NVLink domains, from NMX or NetQ",
            reader="netq.read_nmx",
            pattern=r'"DomainUUID"\s*:',
        ),
        MachineFormat(
            name="netq",
            description="NetQ's topology graph: switches and links by tier",
            reader="netq.read_netq",
            pattern=r'"compounded_nodes"\s*:',
        ),
        MachineFormat(
            name="topo-m",
            description="nvidia-smi topo -m, of one node or of many",
            reader="nvidia_topo.read",
            pattern=rf"^(?:{LABEL})?[ \t]*GPU0[ \t]+X(?:[ \t]|$)",
        ),
        MachineFormat(
            name="rocm-smi",
            description="rocm-smi --showtopo or amd-smi topology, of one node or many",
            reader="amd_topo.read",
            pattern=rf"^(?:{LABEL})?(?:=+ Link Type between two GPUs =+|"
            r"LINK TYPE TABLE:)[ \t]*$"
            r'|"\(Topology\) Link type between DRM devices '
            r'|"link_type"[ ]*:[ ]*"(?:SELF|XGMI|PCIE)"',
        ),
        MachineFormat(
            name="nccl",
            description="NCCL's or RCCL's topology XML, of one node",
            reader="nccl_xml.read",
            pattern=r"^[ \t]*<(?:system|graphs)(?:[ \t>]|$)",
        ),
        MachineFormat(
            name="ibnetdiscover",
            description="what ibnetdiscover prints of an InfiniBand fabric",
            reader="ibnetdiscover.read",
            pattern=r'^(?:Switch|Ca)[ \t]+[0-9]+[ \t]+"[SH]-[0-9A-Fa-f]+"',
        ),
        MachineFormat(
            name="bandwidth",
            description="measured bandwidths, a CSV matrix of hosts or GPUs",
            reader="bandwidth.read",
            pattern=r"\A(?:#[^\n]*\n)*[ ]*[A-Za-z]{1,5}(?:/s|bps)(?: per GPU)?"
            r"[ ]*[,\t]",
        ),
        MachineFormat(
            name="hosts",
            description="the nodes, as host lists",
            reader="lists.read_hosts",
            pattern="",
        ),
        MachineFormat(
            name="names",
            description="host names for instance ids, two words a line",
            reader="lists.read_names",
            pattern="",
        ),
    )
}


def read(
    name: str, text: str, source: str, rules: LabelRules | None = None
) -> Findings:
    """Findings of a text in the format called ``name``.

    Parameters
    ----------
    rules : LabelRules, optional
        What node labels mean, for formats that have some.
    """
    row = FORMATS[name]
    told = (rules,) if row.takes_labels else ()
    module, _, function = row.reader.rpartition(".")
    reader = getattr(import_module(f"placer.formats.machines.{module}"), function)
    findings: Findings = reader(text, source, *told)
    findings.format = name
    return findings
