"""The one reader of YAML and JSON: plain values that still know where they stand.

`open_document` reads a file of this program, `parse_document` its text, `parse_answer`
what another program printed. `Value` reads anything, `Section` a mapping under a
schema; every problem is collected before any is raised.

What is wrong with an input is raised as one `placer.InputError` with all problems and
their places, by whatever function here finds it; docstrings do not say so again.
"""

from placer.documents.document import Document
from placer.documents.parse import (
    document_of,
    open_document,
    parse_answer,
    parse_document,
)
from placer.documents.records import content_digest
from placer.documents.section import Section
from placer.documents.value import Value, closest, known_hint

__all__ = [
    "Document",
    "Section",
    "Value",
    "closest",
    "content_digest",
    "document_of",
    "known_hint",
    "open_document",
    "parse_answer",
    "parse_document",
]
