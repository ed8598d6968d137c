"""Hugging Face's ``config.json``: the shape of a model.

Source: huggingface/transformers, the ``configuration_*.py`` of each model.
"""

from __future__ import annotations

from placer.document import Value, parse_answer
from placer.sources.findings import Asked, Findings, Place

_KEYS = {
    "model.layers": "num_hidden_layers",
    "model.hidden": "hidden_size",
    "model.ffn": "intermediate_size",
    "model.heads": "num_attention_heads",
    "model.kv_heads": "num_key_value_heads",
    "model.vocab": "vocab_size",
    "model.experts": "num_local_experts",
    "model.top_k": "num_experts_per_tok",
}
_GATED = ("llama", "mixtral")


def read(text: str, source: str, asked: Asked) -> Findings:  # noqa: ARG001
    """Findings of a ``config.json``.

    Raises
    ------
    InputError
        If it is not JSON, or the model is of a type that is not known.
    """
    document = parse_answer(text, source)
    found = Findings(source)
    kind = document.top.name("model_type", required=True)
    if kind and kind not in _GATED:
        message = f'models of type "{kind}" are not read'
        document.problem(message, ("model_type",))
    document.fail_if_problems()
    for key, name in _KEYS.items():
        value = document.top.at(name)
        if value is not None:
            found.read(key, value.integer(), _place(value))
    document.fail_if_problems()
    return found


def _place(value: Value) -> Place:
    place = value.place
    return Place(place.source, place.line, place.column)
