"""The vocabulary: of a tokenizer, and what it is padded to a multiple of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.sources.findings import Findings
    from placer.sources.megatron.arguments import Arguments

# Tokenizers with one vocabulary only.
_TYPES = {
    "GPT2BPETokenizer": 50257,
    "Llama2Tokenizer": 32000,
    "Llama3Tokenizer": 128256,
}
# Models by a part of the tokenizer's name, with the size of theirs.
_MODELS = {
    "llama-2": 32000,
    "llama2": 32000,
    "llama-3": 128256,
    "llama3": 128256,
    "mixtral-8x7b": 32000,
    "gpt2": 50257,
    "qwen2.5": 151665,
    "qwen3": 151669,
    "deepseek-v3": 128815,
    "deepseek-r1": 128815,
}
_MULTIPLE = 128


def read_vocabulary(found: Findings, arguments: Arguments) -> None:
    """Read or assume the vocabulary, and read how it is padded."""
    kind = arguments.text("tokenizer_type")
    model = arguments.text("tokenizer_model")
    given = arguments.fact("model.vocab", "vocab_size")
    extra = arguments.get("padded_vocab_size")
    if extra is not None:
        arguments.fact("model.vocab", "padded_vocab_size")
        return
    if given is None and kind in _TYPES:
        place = arguments.place("tokenizer_type")
        found.assume("model.vocab", _TYPES[kind], kind, place)
    elif given is None and (size := _by_name(model)):
        place = arguments.place("tokenizer_model")
        found.assume("model.vocab", size, f"tokenizer {model}", place)
    elif given is None and arguments.get("merge_file") is not None:
        place = arguments.place("merge_file")
        found.assume("model.vocab", 50257, "GPT-2's, as it has a merge file", place)
    for name in ("vocab_file", "merge_file"):
        arguments.get(name)
    key = "model.vocab_multiple"
    if arguments.fact(key, "make_vocab_size_divisible_by") is None:
        found.derive(key, _MULTIPLE, "Megatron's default")


def _by_name(model: str) -> int:
    name = model.lower()
    return next((size for part, size in _MODELS.items() if part in name), 0)
