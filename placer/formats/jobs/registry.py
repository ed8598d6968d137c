"""Every format that a job can be read from.

A format is a row of `FORMATS` and a function, whose module is loaded when it is first
named,

    def read(text: str, source: str, asked: Asked) -> Findings

which turns the text of a file into `placer.formats.jobs.findings.Findings` and knows
nothing of other sources or of the command. ``source`` is the file's name for messages;
files that it includes are read by ``asked.include(source, name)``. What is wrong is
raised as one `InputError` with all problems and their places. A value that stands in
the file is ``findings.read``, one that the framework gives by itself
``findings.derive``; what depends on sizes that another source or an option may give is
left to a function in ``findings.rules``. Nothing is guessed: what only the user knows
is ``findings.ask``. What is values by key is opened as `placer.formats.jobs.settings`,
and its reader a function of those, under ``@reader``: a table of facts with their keys
goes to ``settings.take``, `placer.formats.jobs.neox` is an example.

`placer.formats.jobs.settle` derives data-parallel size and micro-batches from ``gpus``
and ``global_batch``, and asks for what every job needs. YAML and JSON are read with
places by `placer.documents`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from placer.documents.recognise import Format

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Asked, Findings


@dataclass(frozen=True)
class JobFormat(Format):
    """One format of jobs."""

    module: str = ""  # of `placer.formats.jobs`, where the name is not that of one
    logs: bool = False  # whether a file may be a log, which may be long

    def read(self, text: str, source: str, asked: Asked) -> Findings:
        """Findings of a text, given its source's name and what options say."""
        module = import_module(f"placer.formats.jobs.{self.module or self.name}")
        findings: Findings = module.read(text, source, asked)
        return findings


FORMATS: dict[str, JobFormat] = {
    row.name: row
    for row in (
        JobFormat(
            name="megatron",
            description="Megatron-LM: script, arguments, log, model_config.yaml",
            module="megatron.read",
            pattern=r"-{6,} arguments -{6,}|^MODEL_ARGS[ ]*:|^model_parallel[ ]*:"
            r"|--tensor-model-parallel-size\b|--activations-checkpoint-method\b"
            r"|\bpretrain_[a-z0-9_]+\.py\b"
            r"|\A(?=[\s\S]*?--num-layers\b)(?=[\s\S]*?--hidden-size\b)",
            also=("megatron-log", "megatron-deepspeed"),
            before=("accelerate",),
            logs=True,
        ),
        JobFormat(
            name="mlperf",
            description="MLPerf Training: config_*.sh of a submission",
            pattern=r"^[ \t]*export[ \t]+(?:DGXNNODES|DGXNGPU|MINIBS"
            r"|TENSOR_MODEL_PARALLEL|MLPERF_SUBMISSION_ORG)=",
        ),
        JobFormat(
            name="swift",
            description="ms-swift: swift or megatron with sft, pt or rlhf",
            pattern=r"^[^#\n]*\b(?:swift|megatron)[ \t]+(?:sft|pt|rlhf)\b",
            also=("ms-swift",),
        ),
        JobFormat(
            name="hf",
            description="config.json of a Hugging Face model: its shape only",
            pattern=r'\A\s*\{[\s\S]*"model_type"\s*:',
        ),
        JobFormat(
            name="torchtitan",
            description="torchtitan's TOML, or a function of its config_registry.py",
            pattern=r"^\[parallelism\]|^\s*parallelism=ParallelismConfig\(",
        ),
        JobFormat(
            name="deepspeed",
            description="DeepSpeed's JSON: sharding and batches",
            pattern=r'\A\s*\{[\s\S]*"(zero_optimization|train_micro_batch_size_per_gpu)"\s*:',
        ),
        JobFormat(
            name="accelerate",
            description="accelerate launch, or what accelerate config writes",
            pattern=r'^\s*"?distributed_type"?\s*:|^[^#\n]*\baccelerate[ \t]+launch\b',
        ),
        JobFormat(
            name="axolotl",
            description="training files of axolotl and LLaMA-Factory",
            pattern=r"^(base_model|finetuning_type|per_device_train_batch_size):",
            also=("llamafactory",),
        ),
        JobFormat(
            name="nemo",
            description="Megatron-Bridge and NeMo: recipes, and YAML over them",
            pattern=r"^model:\n(?:[ #].*\n|\n)*  (tensor_model_\w+|num_layers):"
            r"|^(?:from|import) megatron\.bridge\b",
            also=("megatron-bridge", "bridge"),
        ),
        JobFormat(
            name="nemo-rl",
            description="NeMo-RL: the training job of a reinforcement learning run",
            module="nemo_rl",
            pattern=r"^policy:\n(?:[ #].*\n|\n)*  (megatron_cfg|dtensor_cfg):",
        ),
        JobFormat(
            name="maxtext",
            description="MaxText's YAML, with its model beside it",
            pattern=r"^(per_device_batch_size|base_emb_dim|ici_\w+_parallelism):",
        ),
        JobFormat(
            name="nanotron",
            description="nanotron's YAML",
            pattern=r"^parallelism:\n(?:[ #].*\n|\n)*  (?:dp|pp_engine|tp_mode):",
        ),
        JobFormat(
            name="neox",
            description="gpt-neox: YAML or JSON with comments",
            pattern=r"^\s*[\"']?(?:pipe|model)[_-]parallel[_-]size[\"']?\s*:"
            r"|^\s*\"(?:train[_-]iters|tokenizer[_-]type|init_method)\"\s*:",
            also=("gpt-neox",),
            before=("deepspeed",),
        ),
        JobFormat(
            name="verl",
            description="veRL: the actor's training, from the script that starts it",
            pattern=r"^[^#\n]*\bactor_rollout_ref\.actor\.",
        ),
    )
}
