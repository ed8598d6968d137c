"""A whole batch script for Slurm that starts torchrun on every node."""

from placer.emit.sbatch import render_torchrun as render

__all__ = ["render"]
