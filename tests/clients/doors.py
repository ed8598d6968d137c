"""Nodes on this machine that say which NVLink domain they are in, for processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.clients import local_nodes as local
from tests.injob.stand_ins import UUID, program, smi_xml

if TYPE_CHECKING:
    from pathlib import Path


def environment(folder: Path, domains: int, **more: str) -> dict[str, str]:
    """Of a process on node PLACER_HOST=nK, in NVLink domain K mod ``domains``.

    Python finds what it finds in the test itself: packages may be there by PYTHONPATH.
    """
    for k in range(domains):
        text = smi_xml("1", "1", uuid=UUID.format(k + 1))
        (folder / f"rack{k}.xml").write_text(text)
    xml = f"{folder}/rack$((${{PLACER_HOST#n}} % {domains})).xml"
    # nvidia-resiliency-ext asks for the text.
    uuid = f"ClusterUUID : {UUID.format('$((PLACER_DOMAIN + 1))')}"
    domain = f"PLACER_DOMAIN=$((${{PLACER_HOST#n}} % {domains}))"
    case = f'{domain}\n[ "$*" = -q ] && echo "{uuid}" || cat {xml}'
    program(folder, "nvidia-smi", case)
    found = local.environment(**more)
    found["PATH"] = f"{folder}:{found['PATH']}"
    found["PYTHONPATH"] = os.pathsep.join(
        [str(local.ROOT), os.environ.get("PYTHONPATH", "")]
    )
    return found
