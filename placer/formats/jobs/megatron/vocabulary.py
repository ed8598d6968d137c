"""The vocabulary: of a tokenizer, and what it is padded to a multiple of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Findings
    from placer.formats.jobs.megatron.arguments import Arguments

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
    for name in ("tokenizer_type", "tokenizer_model", "vocab_file", "merge_file"):
        arguments.noted(name)
    for name in ("padded_vocab_size", "pad_vocab_size_to"):
        if arguments.noted(name) is not None:
            arguments.fact("model.vocab", name)
            arguments.noted("vocab_size")
            found.derive("model.vocab_multiple", 1, "the vocabulary is padded")
            return
    if arguments.fact("model.vocab", "vocab_size") is None:
        _of_tokenizer(found, arguments)
    key = "model.vocab_multiple"
    if arguments.fact(key, "make_vocab_size_divisible_by") is None:
        found.derive(key, _MULTIPLE, "Megatron's default")


def _of_tokenizer(found: Findings, arguments: Arguments) -> None:
    """Assume what the tokenizer has; nothing where it is not known which one it is."""
    key = "model.vocab"
    if arguments.is_open("vocab_size"):
        return
    kind = arguments.text("tokenizer_type")
    if kind in _TYPES:
        found.assume(key, _TYPES[kind], kind, arguments.place("tokenizer_type"))
        return
    if arguments.is_open("tokenizer_model"):
        return  # asked for, if no other source tells the size
    model, place = arguments.text("tokenizer_model"), arguments.place("merge_file")
    if size := _by_name(model):
        where = arguments.place("tokenizer_model")
        found.assume(key, size, f"tokenizer {model}", where)
    elif place is not None:
        found.assume(key, 50257, "GPT-2's, as it has a merge file", place)


def _by_name(model: str) -> int:
    name = model.lower()
    return next((size for part, size in _MODELS.items() if part in name), 0)
