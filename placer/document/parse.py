"""Text or file to a document, by notation."""

from __future__ import annotations

import re

from placer import files
from placer.document.decode import Document
from placer.document.json_tree import json_tree
from placer.document.tree import TreeBuilder
from placer.document.yaml_tree import yaml_tree
from placer.errors import InputError

# Values of a file: a machine of 50,000 nodes that are listed one by one.
MAX_VALUES = 250_000


def parse_document(text: str, source: str) -> Document:
    """Document of a YAML or JSON text; ``source`` names it in messages.

    A name that ends in ``.json`` is strict JSON; other texts that open like a JSON
    object are JSON too, unless only YAML can read them.

    Raises
    ------
    InputError
        If the text cannot be parsed.
    """
    builder = TreeBuilder(source, MAX_VALUES)
    if source.lower().endswith(".json"):
        tree = json_tree(text, builder)
    elif re.match(r'\s*\{\s*["}]', text):
        try:
            tree = json_tree(text, builder)
        except InputError:
            builder = TreeBuilder(source, MAX_VALUES)
            tree = yaml_tree(text, builder)
    else:
        tree = yaml_tree(text, builder)
    return Document(source, tree, builder.problems)


def open_document(source: str) -> Document:
    """Document of the file ``source`` (``-`` is standard input).

    Raises
    ------
    InputError
        If the file cannot be read or parsed.
    """
    return parse_document(files.read_text(source), files.shown_name(source))
