"""The modules that write the formats.

Type checkers see them all; at run time each loads when it is first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.emit import deepspeed as deepspeed
    from placer.emit import deepspeed_node as deepspeed_node
    from placer.emit import env as env
    from placer.emit import gpu_wrapper as gpu_wrapper
    from placer.emit import grove as grove
    from placer.emit import hydra as hydra
    from placer.emit import jax as jax
    from placer.emit import kubeflow as kubeflow
    from placer.emit import kubernetes as kubernetes
    from placer.emit import megatron as megatron
    from placer.emit import nccl as nccl
    from placer.emit import openmpi_rankfile as openmpi_rankfile
    from placer.emit import openmpi_seq as openmpi_seq
    from placer.emit import pod_request as pod_request
    from placer.emit import rank_map_csv as rank_map_csv
    from placer.emit import rank_map_json as rank_map_json
    from placer.emit import ray as ray
    from placer.emit import role_map as role_map
    from placer.emit import sbatch as sbatch
    from placer.emit import slurm_hostfile as slurm_hostfile
    from placer.emit import slurm_request as slurm_request
    from placer.emit import torchrun as torchrun
    from placer.emit import torchrun_map as torchrun_map
    from placer.emit import torchrun_wrapper as torchrun_wrapper
    from placer.emit import torchtitan as torchtitan
    from placer.emit import volcano as volcano
else:

    def __getattr__(name: str) -> object:
        return import_module(f"placer.emit.{name}")
