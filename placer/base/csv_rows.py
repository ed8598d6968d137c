"""Rows as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """A header of all keys of ``rows``, then a line a row; lists and maps as JSON."""
    text = io.StringIO()
    keys = dict.fromkeys(key for row in rows for key in row)
    writer = csv.DictWriter(text, list(keys), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()}
        for row in rows
    )
    return text.getvalue()
