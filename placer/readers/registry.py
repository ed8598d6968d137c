"""Every format that a machine can be read from.

A format is a row of `FORMATS`, a line of `placer.readers.modules` and a module with one
function

    def read(text: str, source: str) -> Findings

which turns the text of a file into `placer.readers.findings.Findings` and knows nothing
of other sources, of bandwidths or of the command. ``source`` is the file's name for
messages (and, where a format includes other files, its path). What is wrong is raised
as one `InputError` with all problems and their places; what is merely not understood
goes to ``Findings.ignored``, what a user should know to ``Findings.notes``, and nothing
is guessed: a domain that the source does not give stays empty.

For YAML and JSON `placer.document.parse_answer` gives values with places; for
``Key=Value`` lines there is `placer.readers.slurm_lines`, for a tree of switches
`placer.readers.switches`, and for the output of one command on many hosts
`placer.readers.labelled`. What holds for every node that other sources list, or needs
them otherwise, is given by ``Findings.join``; measured bandwidths by
``Level.bandwidth`` and ``Findings.node_bandwidth``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placer.formats import Format
from placer.readers import modules
from placer.readers.labelled import LABEL

if TYPE_CHECKING:
    from placer.readers.findings import Findings
    from placer.readers.node_labels import LabelRules

_UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"


@dataclass(frozen=True)
class MachineFormat(Format):
    """One format of machines.

    Attributes
    ----------
    read : callable
        Gives the findings of a text, a source's name and the meaning of node labels.
    takes_labels : bool
        Whether it takes `placer.readers.node_labels.LabelRules`.
    scheduler : str
        Who hands out the nodes of a machine that has such a file: ``slurm``,
        ``kubernetes``, or empty where either may.
    """

    read: Callable[[str, str, LabelRules | None], Findings] = field(kw_only=True)
    takes_labels: bool = False
    scheduler: str = ""


FORMATS: dict[str, MachineFormat] = {
    row.name: row
    for row in (
        MachineFormat(
            name="slurm",
            description="Slurm topology.conf: switches or blocks",
            read=lambda text, source, _: modules.slurm_conf.read(text, source),
            pattern=r"(?i)^[ \t]*(?:SwitchName|BlockName)[ \t]*=[ \t]*\S++"
            r"(?![^\n]* (?:Level|BlockIndex)=)",
            scheduler="slurm",
        ),
        MachineFormat(
            name="slurm-yaml",
            description="Slurm topology.yaml: tree and block topologies",
            read=lambda text, source, _: modules.slurm_yaml.read(text, source),
            pattern=r"^-[ \t]+topology[ \t]*:",
            scheduler="slurm",
        ),
        MachineFormat(
            name="scontrol",
            description="what scontrol show topology prints",
            read=lambda text, source, _: modules.slurm_scontrol.read(text, source),
            pattern=r"^(?:SwitchName=\S+ Level|BlockName=\S+ BlockIndex)=",
            scheduler="slurm",
        ),
        MachineFormat(
            name="configmap",
            description="a ConfigMap of Slinky around topology.yaml or topology.conf",
            read=lambda text, source, _: modules.configmap.read(text, source),
            pattern=r'"kind"\s*:\s*"ConfigMap"|^[ -]{0,4}kind:[ ]*ConfigMap\b',
            before=("slurm", "slurm-yaml"),
            scheduler="slurm",
        ),
        MachineFormat(
            name="azslurm",
            description="NVLink blocks as JSON, of Azure's azslurm",
            read=lambda text, source, _: modules.azslurm.read(text, source),
            pattern=r'"blockname"\s*:',
            scheduler="slurm",
        ),
        MachineFormat(
            name="topograph",
            description="topograph's graph JSON",
            read=lambda text, source, _: modules.topograph_graph.read(text, source),
            pattern=r'"network_layers"\s*:',
        ),
        MachineFormat(
            name="topograph-model",
            description="topograph's simulation model YAML",
            read=lambda text, source, _: modules.topograph_model.read(text, source),
            pattern=r"^blocks[ \t]*:[ \t]*(?:#.*)?$",
        ),
        MachineFormat(
            name="kubernetes",
            description="node labels, as kubectl get nodes -o json prints them",
            read=lambda text, source, rules: modules.kubernetes.read(
                text, source, rules
            ),
            pattern=r'"kind"\s*:\s*"Node(?:List)?"',
            takes_labels=True,
            scheduler="kubernetes",
        ),
        MachineFormat(
            name="topologies",
            description="Topology objects of Kueue or KAI: the order of node labels",
            read=lambda text, source, _: modules.label_orders.read(text, source),
            pattern=r'\A(?![\s\S]*"kind"\s*:\s*"Node(?:List)?")'
            r'[\s\S]*?(?:"nodeLabel"|^[ -]*nodeLabel|[{,][ ]*nodeLabel)[ \t]*:',
            scheduler="kubernetes",
        ),
        MachineFormat(
            name="aws",
            description="aws ec2 describe-instance-topology",
            read=lambda text, source, _: modules.aws.read(text, source),
            pattern=r'"NetworkNodes"\s*:',
        ),
        MachineFormat(
            name="gcp",
            description="gcloud compute instances list --format=json",
            read=lambda text, source, _: modules.gcp.read(text, source),
            pattern=r'"physicalHost(?:Topology)?"\s*:',
        ),
        MachineFormat(
            name="oci",
            description="OCI compute hosts, or host: {rdmaTopologyData} lines",
            read=lambda text, source, _: modules.oci.read(text, source),
            pattern=r'"(?:customerLocalBlock|local-?[bB]lock-?[iI]d)"\s*:',
        ),
        MachineFormat(
            name="fabric",
            description="nvidia-smi -q of many hosts, or its fabric ids as CSV",
            read=lambda text, source, _: modules.nvidia_fabric.read(text, source),
            pattern=rf"^(?:{LABEL})?(?: {{2,}}Fabric[ ]*"
            rf"|[ ]*{_UUID}[ ]*,[ ]*[0-9]{{1,20}}[ ]*)$",
        ),
        MachineFormat(
            name="nmx",
            description="compute nodes of NVLink domains, from NMX or NetQ",
            read=lambda text, source, _: modules.nmx.read(text, source),
            pattern=r'"DomainUUID"\s*:',
        ),
        MachineFormat(
            name="netq",
            description="NetQ's topology graph: switches and links by tier",
            read=lambda text, source, _: modules.netq.read(text, source),
            pattern=r'"compounded_nodes"\s*:',
        ),
        MachineFormat(
            name="topo-m",
            description="nvidia-smi topo -m, of one node or of many",
            read=lambda text, source, _: modules.nvidia_topo.read(text, source),
            pattern=rf"^(?:{LABEL})?[ \t]*GPU0[ \t]+X(?:[ \t]|$)",
        ),
        MachineFormat(
            name="rocm-smi",
            description="rocm-smi --showtopo or amd-smi topology, of one node or many",
            read=lambda text, source, _: modules.amd_topo.read(text, source),
            pattern=rf"^(?:{LABEL})?(?:=+ Link Type between two GPUs =+|"
            r"LINK TYPE TABLE:)[ \t]*$"
            r'|"\(Topology\) Link type between DRM devices '
            r'|"link_type"[ ]*:[ ]*"(?:SELF|XGMI|PCIE)"',
        ),
        MachineFormat(
            name="nccl",
            description="NCCL's or RCCL's topology XML, of one node",
            read=lambda text, source, _: modules.nccl_xml.read(text, source),
            pattern=r"^[ \t]*<(?:system|graphs)(?:[ \t>]|$)",
        ),
        MachineFormat(
            name="ibnetdiscover",
            description="what ibnetdiscover prints of an InfiniBand fabric",
            read=lambda text, source, _: modules.ibnetdiscover.read(text, source),
            pattern=r'^(?:Switch|Ca)[ \t]+[0-9]+[ \t]+"[SH]-[0-9A-Fa-f]+"',
        ),
        MachineFormat(
            name="bandwidth",
            description="measured bandwidths, a CSV matrix of hosts or GPUs",
            read=lambda text, source, _: modules.bandwidth.read(text, source),
            pattern=r"\A(?:#[^\n]*\n)*[ ]*[A-Za-z]{1,5}(?:/s|bps)(?: per GPU)?"
            r"[ ]*[,\t]",
        ),
        MachineFormat(
            name="hosts",
            description="the nodes, as host lists",
            read=lambda text, source, _: modules.hosts.read(text, source),
            pattern="",
        ),
        MachineFormat(
            name="names",
            description="host names for instance ids, two words a line",
            read=lambda text, source, _: modules.names.read(text, source),
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
    name, text, source : str
    rules : LabelRules, optional
        What node labels mean, for formats that have some.

    Raises
    ------
    InputError
        If anything is wrong with the text.
    """
    findings = FORMATS[name].read(text, source, rules)
    findings.format = name
    return findings
