"""Shapes of the models that torchtitan ships, by name and flavor.

Sources: pytorch/torchtitan 238fa995, ``torchtitan/models/*/__init__.py``; the same
numbers stand there in b5bcd76c.
"""

from __future__ import annotations

from math import floor

from placer.formats.jobs.findings import Scalar

SOURCE = "238fa995, models/*/__init__.py"

Shape = dict[str, Scalar]


def _llama3(layers: int, hidden: int, heads: int, times: float, multiple: int) -> Shape:
    """Llama 3: ``ffn = floor(m floor(8h/3))``, up to a multiple."""
    wide = floor(times * floor(8 * hidden / 3))
    return {
        "layers": layers,
        "hidden": hidden,
        "ffn": -(-wide // multiple) * multiple,
        "heads": heads,
        "kv_heads": 8,
        "vocab": 128256,
    }


def _qwen3(
    layers: int, hidden: int, ffn: int, heads: int, *, tied: bool = False
) -> Shape:
    shape: Shape = {
        "layers": layers,
        "hidden": hidden,
        "ffn": ffn,
        "heads": heads,
        "kv_heads": 8,
        "vocab": 151936,
        "tied_embeddings": tied,
    }
    return shape if 128 * heads == hidden else shape | {"head_dim": 128}


def _qwen3_moe(layers: int, hidden: int, heads: int, expert_ffn: int) -> Shape:
    """All layers have 128 experts, of which a token visits 8."""
    dense = _qwen3(layers, hidden, expert_ffn, heads)
    experts = {"experts": 128, "top_k": 8, "expert_ffn": expert_ffn}
    return dense | experts | {"kv_heads": 4, "moe_layers": layers}


def _deepseek(
    layers: tuple[int, int],
    hidden: int,
    ffn: tuple[int, int],
    heads: int,
    experts: tuple[int, int, int],
    q_lora_rank: int,
    vocab: int,
) -> Shape:
    """Layers and the dense among them; ffn of dense layers and of experts."""
    routed, shared, top_k = experts
    return {
        "layers": layers[0],
        "hidden": hidden,
        "ffn": ffn[0],
        "heads": heads,
        "kv_heads": heads,
        "vocab": vocab,
        "experts": routed,
        "top_k": top_k,
        "shared_experts": shared,
        "expert_ffn": ffn[1],
        "moe_layers": layers[0] - layers[1],
        "q_lora_rank": q_lora_rank,
        "kv_lora_rank": 512,
        "qk_head_dim": 128,
        "rope_head_dim": 64,
        "v_head_dim": 128,
    }


SHAPES: dict[str, dict[str, Shape]] = {
    "llama3": {
        "debugmodel": _llama3(6, 256, 16, 1.0, 256) | {"kv_heads": 16, "vocab": 2048},
        "8B": _llama3(32, 4096, 32, 1.3, 1024),
        "70B": _llama3(80, 8192, 64, 1.3, 4096),
        "405B": _llama3(126, 16384, 128, 1.2, 4096),
    },
    "qwen3": {
        "debugmodel": _qwen3(8, 256, 3072, 16, tied=True) | {"vocab": 2048},
        "0.6B": _qwen3(28, 1024, 3072, 16, tied=True),
        "1.7B": _qwen3(28, 2048, 6144, 16, tied=True),
        "4B": _qwen3(36, 2560, 9728, 32, tied=True),
        "8B": _qwen3(36, 4096, 12288, 32),
        "14B": _qwen3(40, 5120, 17408, 40),
        "32B": _qwen3(64, 5120, 25600, 64),
        "30B-A3B": _qwen3_moe(48, 2048, 32, 768),
        "235B-A22B": _qwen3_moe(94, 4096, 64, 1536),
    },
    "deepseek_v3": {
        "16B": _deepseek((27, 1), 2048, (10944, 1408), 16, (64, 2, 6), 0, 102400),
        "236B": _deepseek((60, 1), 5120, (12288, 1536), 128, (160, 2, 6), 1536, 102400),
        "671B": _deepseek((61, 3), 7168, (18432, 2048), 128, (256, 1, 8), 1536, 129280),
    },
}
