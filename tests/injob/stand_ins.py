"""Stand-ins for the programs that a probe asks, and probes as they print them."""

import json

UUID = "50000000-0000-0000-0000-00000000000{}"
_FIFTH = UUID.format(5)
ZEROS = "00000000-0000-0000-0000-000000000000"
_GPU = """\
<gpu id="00000000:{index:02x}:00.0">
  <product_name>{name}</product_name>
  <clocks_event_reasons><state>Idle</state></clocks_event_reasons>
  <fabric>
    <state>{state}</state>
    <status>Success</status>
    <cliqueId>{clique}</cliqueId>
    <clusterUuid>{uuid}</clusterUuid>
    <health><bandwidth>Full</bandwidth></health>
  </fabric>
  <fb_memory_usage><total>189471 MiB</total><used>0 MiB</used></fb_memory_usage>
</gpu>
"""


def smi_xml(
    *cliques, uuid=_FIFTH, name="NVIDIA GB200", state="Completed", attached=None
):
    """What ``nvidia-smi -q -x`` prints of GPUs of these cliques, shortened."""
    gpus = "".join(
        _GPU.format(index=i, name=name, state=state, clique=clique, uuid=uuid)
        for i, clique in enumerate(cliques)
    )
    count = len(cliques) if attached is None else attached
    return (
        '<?xml version="1.0" ?>\n'
        '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
        "<nvidia_smi_log>\n<timestamp>now</timestamp>\n"
        f"<attached_gpus>{count}</attached_gpus>\n{gpus}</nvidia_smi_log>\n"
    )


def program(folder, name, script):
    """A program of this name in the folder, a shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def line(host, **more):
    """A probe of a node of four GB200, as a line."""
    known = {
        "format": "placer/probe",
        "version": 1,
        "host": host,
        "gpus": 4,
        "gpu": "NVIDIA GB200",
        "memory": 189471,
        "nvlink_domain": None,
        "topology_addr": "",
        "topology_pattern": "",
        "labels": {},
        "cloud": {},
        "nics": 4,
        "rails": [],
        "problems": [],
    }
    return json.dumps(known | more) + "\n"


# Eight nodes, two to an NVLink domain and four to a leaf switch.
PROBES = "".join(
    line(
        f"n{k}",
        nvlink_domain=f"u.{k // 2}",
        topology_addr=f"spine.leaf{k // 4}.n{k}",
        topology_pattern="switch.switch.node",
    )
    for k in range(8)
)
