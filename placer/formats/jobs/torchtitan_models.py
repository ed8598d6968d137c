"""Shapes of the models that torchtitan ships, by name and flavor.

Sources: pytorch/torchtitan 238fa995, ``torchtitan/models/*/__init__.py``; the same
numbers stand there in b5bcd76c.
"""

from __future__ import annotations

from placer.formats.jobs.findings import Scalar

SOURCE = "238fa995, models/*/__init__.py"

Shape = dict[str, Scalar]
_DENSE = ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab")
_LATENT: Shape = {
    "kv_lora_rank": 512,
    "qk_head_dim": 128,
    "rope_head_dim": 64,
    "v_head_dim": 128,
}


def _dense(*sizes: int) -> Shape:
    """Layers, widths of the model and its feed-forward, heads, vocabulary."""
    return dict(zip(_DENSE, sizes, strict=True))


def _qwen3(*sizes: int, tied: bool = False) -> Shape:
    """A head is 128 wide, which may be no equal share of the model's width."""
    shape = _dense(*sizes, 8, 151936) | {"tied_embeddings": tied}
    return shape if 128 * sizes[3] == sizes[1] else shape | {"head_dim": 128}


def _qwen3_moe(*sizes: int) -> Shape:
    """All layers have 128 experts, of which a token visits 8."""
    experts = {"experts": 128, "top_k": 8, "expert_ffn": sizes[2]}
    return _qwen3(*sizes) | experts | {"kv_heads": 4, "moe_layers": sizes[0]}


def _deepseek(dense: int, experts: tuple[int, int, int, int], *sizes: int) -> Shape:
    """Dense layers; experts, those that a token and that all visit, their width."""
    names = "experts", "top_k", "shared_experts", "expert_ffn"
    shape = _dense(*sizes[:5], sizes[6]) | dict(zip(names, experts, strict=True))
    moe = {"moe_layers": sizes[0] - dense, "q_lora_rank": sizes[5]}
    return shape | moe | _LATENT


# The feed-forward of Llama 3 is ``floor(m floor(8h/3))``, up to a multiple.
SHAPES: dict[str, dict[str, Shape]] = {
    "llama3": {
        "debugmodel": _dense(6, 256, 768, 16, 16, 2048),
        "8B": _dense(32, 4096, 14336, 32, 8, 128256),
        "70B": _dense(80, 8192, 28672, 64, 8, 128256),
        "405B": _dense(126, 16384, 53248, 128, 8, 128256),
    },
    "qwen3": {
        "debugmodel": _qwen3(8, 256, 3072, 16, tied=True) | {"vocab": 2048},
        "0.6B": _qwen3(28, 1024, 3072, 16, tied=True),
        "1.7B": _qwen3(28, 2048, 6144, 16, tied=True),
        "4B": _qwen3(36, 2560, 9728, 32, tied=True),
        "8B": _qwen3(36, 4096, 12288, 32),
        "14B": _qwen3(40, 5120, 17408, 40),
        "32B": _qwen3(64, 5120, 25600, 64),
        "30B-A3B": _qwen3_moe(48, 2048, 768, 32),
        "235B-A22B": _qwen3_moe(94, 4096, 1536, 64),
    },
    "deepseek_v3": {
        "16B": _deepseek(1, (64, 6, 2, 1408), 27, 2048, 10944, 16, 16, 0, 102400),
        "236B": _deepseek(
            1, (160, 6, 2, 1536), 60, 5120, 12288, 128, 128, 1536, 102400
        ),
        "671B": _deepseek(
            3, (256, 8, 1, 2048), 61, 7168, 18432, 128, 128, 1536, 129280
        ),
    },
}
