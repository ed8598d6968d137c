"""A recipe of Megatron-Bridge: a Python function that returns a configuration.

Source: NVIDIA-NeMo/Megatron-Bridge 067f987d, ``src/megatron/bridge/recipes/common.py``
(what recipes start from).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placer.formats.jobs.python_config import python_values
from placer.formats.jobs.python_library import Library
from placer.formats.jobs.settings import Setting

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Asked, Scalar

HF_NAME, NAME = "model.hf_path", "recipe"
_LAYOUT = ("pipeline_model_parallel_layout",)
_TUNING: dict[str, Scalar] = {
    "train.global_batch_size": 128,
    "train.micro_batch_size": 1,
    "dataset.seq_length": 2048,
    "ddp.grad_reduce_in_fp32": True,
    "mixed_precision": "bf16_mixed",
}
_VISION: dict[str, Scalar] = {
    "train.global_batch_size": 32,
    "train.micro_batch_size": 2,
    "dataset.seq_length": 4096,
    "ddp.grad_reduce_in_fp32": True,
    "ddp.overlap_grad_reduce": False,
    "ddp.overlap_param_gather": False,
    "ddp.use_distributed_optimizer": True,
    "mixed_precision": "bf16_mixed",
}
_PRETRAINING: dict[str, Scalar] = {
    "train.global_batch_size": 32,
    "train.micro_batch_size": 2,
    "dataset.seq_length": 4096,
    "ddp.grad_reduce_in_fp32": True,
    "ddp.overlap_grad_reduce": True,
    "ddp.overlap_param_gather": True,
    "ddp.use_distributed_optimizer": True,
    "ddp.data_parallel_sharding_strategy": "optim_grads_params",
    "mixed_precision": "bf16_mixed",
}
_LORA: dict[str, Scalar] = {"peft.dim": 32}
_ADAM: tuple[dict[str, Scalar], ...] = ({"use_distributed_optimizer": True}, {})
_LIBRARY = Library(
    "megatron",
    returns={
        "_pretrain_common": _PRETRAINING,
        "_sft_common": _TUNING,
        "_peft_common": _TUNING | _LORA,
        "_sft_common_vlm": _VISION,
        "_peft_common_vlm": _VISION | _LORA,
        "distributed_fused_adam_with_cosine_annealing": _ADAM,
        "distributed_fused_adam_with_cosine_annealing_samples": _ADAM,
        "distributed_muon_with_cosine_annealing": ({}, {}),
    },
    named=("_mixed", "get_mixed_precision_config", "default_peft_config"),
    changes={
        # On GPUs that its backend does not know it leaves all as it is.
        "apply_flex_dispatcher_backend": ("moe_token_dispatcher_type",),
        "set_cuda_graph_modules": (),
        "clear_cuda_graph_modules": (),
        "set_deepseek_v3_pipeline_model_parallel_layout": _LAYOUT,
        "set_deepseek_v4_pipeline_model_parallel_layout": _LAYOUT,
        "apply_determinism_overrides": (),
    },
)
_IS_PYTHON = re.compile(r"^(?:from|import) (?:megatron\.bridge|nemo)\b", re.MULTILINE)
_FROM_HF = re.compile(r"from_(?:hf_)?pretrained\(\s*['\"]([^'\"]+)['\"]")
_GPUS = re.compile(r"_([0-9]{1,6})gpus?_")


def is_recipe(text: str) -> bool:
    """Whether a text is Python that configures Megatron-Bridge or NeMo."""
    return _IS_PYTHON.search(text) is not None


def recipe_values(text: str, source: str, asked: Asked) -> dict[str, Setting]:
    """Values of the configuration that a recipe returns, by dotted key.

    The name of the model on Hugging Face stands under `HF_NAME`, that of the function
    under `NAME`.

    Raises
    ------
    InputError
        If it is no Python, or no function or several return a configuration.
    """
    values = python_values(text, source, asked, _LIBRARY)
    values[NAME] = values.pop("model.name")
    model = values.get("model")
    named = _FROM_HF.search(str(model.value)) if model else None
    if model and named:
        values[HF_NAME] = Setting(named[1], model.place)
    return values


def gpus_of_name(name: str) -> str:
    """The number of GPUs that a recipe is named after; empty if there is none."""
    found = _GPUS.search(name)
    return found[1] if found else ""
