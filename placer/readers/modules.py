"""The modules that read the formats.

Type checkers see them all; at run time each loads when it is first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.readers import amd_topo as amd_topo
    from placer.readers import aws as aws
    from placer.readers import azslurm as azslurm
    from placer.readers import bandwidth as bandwidth
    from placer.readers import configmap as configmap
    from placer.readers import gcp as gcp
    from placer.readers import hosts as hosts
    from placer.readers import ibnetdiscover as ibnetdiscover
    from placer.readers import kubernetes as kubernetes
    from placer.readers import label_orders as label_orders
    from placer.readers import names as names
    from placer.readers import nccl_xml as nccl_xml
    from placer.readers import netq as netq
    from placer.readers import nmx as nmx
    from placer.readers import nvidia_fabric as nvidia_fabric
    from placer.readers import nvidia_topo as nvidia_topo
    from placer.readers import oci as oci
    from placer.readers import slurm_conf as slurm_conf
    from placer.readers import slurm_scontrol as slurm_scontrol
    from placer.readers import slurm_yaml as slurm_yaml
    from placer.readers import topograph_graph as topograph_graph
    from placer.readers import topograph_model as topograph_model
else:

    def __getattr__(name: str) -> object:
        return import_module(f"placer.readers.{name}")
