"""Nodes on this machine that say which NVLink domain they are in, for processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.clients import local_nodes as local
from tests.injob.stand_ins import UUID, program, smi_xml

if TYPE_CHECKING:
    from pathlib import Path


def tell_domains(
    folder: Path, domains: int, variable: str = "PLACER_HOST", gpus: int = 2
) -> None:
    """Put an nvidia-smi into a folder: nK is in NVLink domain K mod ``domains``."""
    for k in range(domains):
        text = smi_xml(*["1"] * gpus, uuid=UUID.format(k + 1))
        (folder / f"rack{k}.xml").write_text(text)
    domain = f"k=$((${{{variable}#n}} % {domains}))"
    # nvidia-resiliency-ext asks for the text.
    uuid = f"ClusterUUID : {UUID.format('$((k + 1))')}"
    case = f'{domain}\n[ "$*" = -q ] && echo "{uuid}" || cat {folder}/rack$k.xml'
    program(folder, "nvidia-smi", case)


def environment(folder: Path, domains: int, **more: str) -> dict[str, str]:
    """Of a process on node PLACER_HOST=nK, in NVLink domain K mod ``domains``.

    Python finds what it finds in the test itself: packages may be there by PYTHONPATH.
    """
    tell_domains(folder, domains)
    found = local.environment(**more)
    found["PATH"] = f"{folder}:{found['PATH']}"
    found["PYTHONPATH"] = os.pathsep.join(
        [str(local.ROOT), os.environ.get("PYTHONPATH", "")]
    )
    return found
