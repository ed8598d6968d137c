"""``ResourceSlice`` objects of Kubernetes, as DRA drivers of GPUs publish them."""

from __future__ import annotations


def resource_slice(name, devices, driver="gpu.nvidia.com", generation=1, count=1):
    """A slice of one node's pool, as ``kubectl get resourceslices -o json`` has it."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-{driver}-{generation}"},
        "spec": {
            "driver": driver,
            "nodeName": name,
            "pool": {
                "name": name,
                "generation": generation,
                "resourceSliceCount": count,
            },
            "devices": devices,
        },
    }


def device(number, kind="gpu", **more):
    """A device of a type."""
    attributes = {
        "type": {"string": kind},
        "resource.kubernetes.io/pciBusID": {"string": f"0000:{number:02x}:00.0"},
    }
    return {"name": f"{kind}-{number}", "attributes": attributes} | more
