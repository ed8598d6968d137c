"""Digest of content, independent of how a file lays it out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def content_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 (hexadecimal) of JSON-like content; key order does not matter.

    Raises `ValueError` if a number is not finite.
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
