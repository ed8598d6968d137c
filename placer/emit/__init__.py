"""Launcher files: a plan in the words of each launcher.

Emitters only translate. A plan that a launcher cannot express is refused, with the
reason and the formats that can; nothing is approximated. Whatever function here finds
that out raises one `placer.EmitError`; docstrings do not say so again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from placer.base.arguments import takes
from placer.base.loading import answer_calls

if TYPE_CHECKING:
    from placer.placement.plan_file import PlanLike


# The keys of `placer.emit.registry.FORMATS`.
FormatName = Literal[
    "torchrun",
    "torchrun-wrapper",
    "torchrun-map",
    "env",
    "sbatch",
    "sbatch-torchrun",
    "slurm-hostfile",
    "openmpi-seq",
    "openmpi-rankfile",
    "hydra",
    "deepspeed",
    "deepspeed-node",
    "jax",
    "kubernetes-job",
    "kubernetes-jobset",
    "kubernetes-pinned",
    "kubeflow-trainer",
    "ray",
    "role-map",
    "gpu-wrapper",
    "megatron",
    "torchtitan",
    "dlrover",
    "nccl",
    "slurm-request",
    "kueue-request",
    "kai-request",
    "volcano-request",
    "grove-request",
    "patch",
    "json",
    "csv",
]


@overload
def emit(plan: PlanLike, format: FormatName, *, role: str | None = None) -> str: ...
@overload
def emit(
    plan: PlanLike,
    format: FormatName,
    path: str | os.PathLike[str],
    *,
    role: str | None = None,
) -> Path: ...
@takes()
def emit(
    plan: PlanLike,
    format: FormatName,
    path: str | os.PathLike[str] | None = None,
    *,
    role: str | None = None,
) -> str | Path:
    """The launcher file of ``plan`` as text, or its path once it is written.

    A format of several files needs a path: the folder to write them to.

    Parameters
    ----------
    plan : Plan, Result, path or dict
    format : str
        A name of ``placer.emit.registry.FORMATS``, for example ``slurm-hostfile``.
    path : path-like, optional
        Where to write the file, atomically; ``-`` is standard output. For a format of
        several files a folder, which is made if need be.
    role : str, optional
        Of a workload: only this role, or ``role:instance`` where there are several, its
        ranks numbered from 0.

    Returns
    -------
    str or Path
        The text, or with ``path`` where it is.

    Raises
    ------
    EmitError
        If the launcher cannot express the plan, or a host name is not safe to write.
    InputError
        If an argument is of a wrong type, there is no such format, or it is several
        files and no folder is given, or no such role.
    OutputError
        If a file cannot be written.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> placer.emit(plan, "slurm-hostfile").splitlines()[7:9]
    ['n1', 'n2']
    """
    from placer.documents.files import make_folder, write_text
    from placer.emit.registry import format_called, render
    from placer.placement.plan_file import plan_of

    plan = plan_of(plan)
    if role is not None:
        from placer.emit.role_part import role_part

        plan = role_part(plan, role)

    row = format_called(format)
    if path not in (None, "-") and row.folder:
        files = row.written(plan)
        make_folder(os.fspath(path))
        for name, content in files.items():
            write_text(str(Path(path) / name), content)
        return Path(path)
    text = render(plan, format)
    if path is None:
        return text
    write_text(os.fspath(path), text)
    return Path(path)


answer_calls(__name__)
