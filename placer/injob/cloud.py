"""Where this node stands, as the metadata service of its cloud tells it.

GCE (docs, "View VM topology"; the attribute ``physical_host`` is ``/block/subblock/
host``), Oracle (instance metadata v2, ``host/rdmaTopologyData``), AWS (IMDSv2; the
instance id goes with what ``describe-instance-topology`` prints) and Azure (instance
metadata; the physical host stands in the guest's KVP pool).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from placer.injob.bounded import LateError, within

LIMIT_S = 0.5
ADDRESS = "http://169.254.169.254"
_KVP = Path("/var/lib/hyperv/.kvp_pool_3")
_KVP_KEY, _KVP_VALUE = 512, 2048
_MOST_BYTES = 1 << 16
_OCI = {
    "customerHPCIslandId": "island",
    "customerNetworkBlock": "network_block",
    "customerLocalBlock": "local_block",
    "customerGpuMemoryFabric": "memory_fabric",
    "rackId": "rack",
}


def cloud_facts(name: str) -> tuple[dict[str, str], list[str]]:
    """What the metadata service of cloud ``name`` tells, and what went wrong."""
    address = os.environ.get("PLACER_METADATA") or ADDRESS
    try:
        found = within(LIMIT_S, lambda: CLOUDS[name](address))
    except (LateError, OSError, ValueError) as error:
        return {"name": name}, [f"cloud {name}: {str(error)[:200]}"]
    kept = {k: v for k, v in found.items() if v and v.isprintable() and len(v) < 500}
    problems = (
        [] if kept else [f"cloud {name}: its metadata does not say where this is"]
    )
    return {"name": name, **kept}, problems


def _get(url: str, headers: Mapping[str, str], method: str = "GET") -> str:
    """The answer of a metadata service, past any proxy."""
    from urllib.request import ProxyHandler, Request, build_opener

    asked = Request(url, headers=dict(headers), method=method)  # noqa: S310 (http)
    with build_opener(ProxyHandler({})).open(asked, timeout=LIMIT_S) as answer:
        text: bytes = answer.read(_MOST_BYTES)
    return text.decode("utf-8", "replace").strip()


def _gce(address: str) -> dict[str, str]:
    path = f"{address}/computeMetadata/v1/instance"
    headers = {"Metadata-Flavor": "Google"}
    try:
        host = _get(f"{path}/attributes/physical_host", headers)
    except OSError:
        host = _get(f"{path}/physical_host", headers)
    parts = host.strip("/").split("/")
    if len(parts) != 3:
        raise ValueError(f"physical_host is {host[:80]!r}")
    return dict(zip(("block", "subblock", "host"), parts, strict=True))


def _oci(address: str) -> dict[str, str]:
    headers = {"Authorization": "Bearer Oracle"}
    data = json.loads(_get(f"{address}/opc/v2/host/rdmaTopologyData", headers))
    if not isinstance(data, dict):
        raise ValueError("rdmaTopologyData is no object")
    with suppress(OSError):
        data["rackId"] = _get(f"{address}/opc/v2/host/rackId", headers)
    return {ours: str(data[key]) for key, ours in _OCI.items() if data.get(key)}


def _aws(address: str) -> dict[str, str]:
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = _get(f"{address}/latest/api/token", lifetime, "PUT")
    headers = {"X-aws-ec2-metadata-token": token}
    return {"instance_id": _get(f"{address}/latest/meta-data/instance-id", headers)}


def _azure(address: str) -> dict[str, str]:
    url = f"{address}/metadata/instance/compute?api-version=2021-02-01"
    data = json.loads(_get(url, {"Metadata": "true"}))
    if not isinstance(data, dict):
        raise ValueError("the metadata is no object")
    return {"instance_id": str(data.get("vmId", "")), "host": _physical_host()}


def _physical_host() -> str:
    """``PhysicalHostName`` of the pool that Hyper-V writes into a guest."""
    with suppress(OSError):
        pool = _KVP.read_bytes()
        for start in range(0, len(pool), _KVP_KEY + _KVP_VALUE):
            key = pool[start : start + _KVP_KEY].rstrip(b"\0")
            value = pool[start + _KVP_KEY : start + _KVP_KEY + _KVP_VALUE]
            if key == b"PhysicalHostName":
                return value.rstrip(b"\0").decode("utf-8", "replace")
    return ""


CLOUDS: dict[str, Callable[[str], dict[str, str]]] = {
    "gce": _gce,
    "oci": _oci,
    "aws": _aws,
    "azure": _azure,
}
