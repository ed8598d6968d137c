"""Positioned YAML and JSON: text to a tree that remembers lines, and its decoding.

`open_document` reads a file, `parse_document` a text. Decoding walks the tree through
`Section` (a mapping) and `Value` (anything) and collects every problem before raising.
"""

from placer.document.decode import (
    Document,
    Section,
    Value,
    closest,
)
from placer.document.digest import content_digest
from placer.document.parse import open_document, parse_document
from placer.document.tree import Node

__all__ = [
    "Document",
    "Node",
    "Section",
    "Value",
    "closest",
    "content_digest",
    "open_document",
    "parse_document",
]
