"""Names of the release before, which work for one more and say what they are now."""

from __future__ import annotations

from typing import Any

from placer.cli.options import teller


def tell_new_name(options: dict[str, Any], old: str, new: str) -> None:
    """Say what to type instead, unless the command is quiet."""
    teller(options)(f'{old} is "{new}" now; the old name will be removed')
