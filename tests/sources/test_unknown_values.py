"""Each variable of the captured scripts, made unknown: asked for, or of no effect."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from placer.base.errors import InputError
from placer.formats.jobs.job import Options, open_job
from tests.marks import slow

_ASSIGNED = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=(?!\()((?:\"(?:[^\"\\]|\\[\s\S])*\""
    r"|'[^']*'|\$\(\(.*?\)\)|\$\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|`[^`\n]*`|[^\s;&|#\"'`])*)",
    re.MULTILINE,
)
_SHAPE = {
    "model_type": "llama",
    "num_hidden_layers": 94,
    "hidden_size": 4096,
    "intermediate_size": 8192,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "vocab_size": 151936,
}
_EXPERTS = {"experts": "128", "top_k": "8", "expert_ffn": "1536", "moe_layers": "94"}
_GIVEN = {f"job.model.{key}": value for key, value in _EXPERTS.items()}
# A script, its format and GPUs, what is given beside it, and whether the shape is.
SCRIPTS = {
    "megatron/train_gpt3_175b_distributed.sh": ("megatron", 1024, {}, False),
    "megatron/train_llama3_8b_h100_fp8.sh": ("megatron", None, {}, False),
    "megatron/train_mixtral_8x7b_distributed.sh": ("megatron", 64, {}, False),
    "megatron/sc21/run_table_1.sh": ("megatron", 32, {}, False),
    "deepspeed/run-175b.sh": ("megatron", None, {}, False),
    "verl/run_qwen3-235b_megatron_96gb.sh": (
        "verl",
        64,
        {"job.micro_batch": "1", "job.micro_batches": "16", **_GIVEN},
        True,
    ),
    "ms-swift/deepseek_v3.sh": ("swift", None, _GIVEN, True),
    "mlperf/tyche_ngpu512/config_GB200_128x4x112xtp4pp8cp2_cg_dplast.sh": (
        "mlperf",
        None,
        {},
        False,
    ),
}


def facts(path, name):
    """What is found of the job; None where something is asked for or wrong."""
    kind, gpus, given, has_shape = SCRIPTS[name]
    specs = [f"{kind}:{path}"]
    if has_shape:
        shape = path.parent / "shape.json"
        shape.write_text(json.dumps(_SHAPE))
        specs.append(f"hf:{shape}")
    try:
        opened = open_job(specs, Options(gpus, 400.0, None, given))
        opened.job()
    except InputError:
        return None
    return {key: fact.value for key, fact in opened.found.facts.items()}


def others(value):
    """Values that a variable may have instead."""
    plain = value.strip("\"'")
    number = re.fullmatch(r"[0-9]+", plain)
    yield plain
    yield str(2 * int(plain)) if number else "other"
    yield "1" if number else "True" if plain == "False" else "False"


# An assignment whose value is not known: of a command, of an argument, of a branch on
# what nobody sets or on the host, of a loop over what is not known.
WAYS = (
    "{name}=$(cmd)",
    "{name}=$9",
    "read -r {name} < file",
    "if [[ $Q9 == a* ]]; then {name}='{value}'; else {name}='{other}'; fi",
    "{name}='{other}'; test $(hostname) = a && {name}='{value}'",
    "if cmd | grep -q a; then {name}='{value}'; else {name}='{other}'; fi",
    "for {name} in $(cmd); do :; done",
    "{name}='{value}'; for i9 in $Q9; do {name}='{other}'; done",
)


@pytest.mark.parametrize("every", [23, *slow([1])])
@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_unknown_is_asked_for_or_has_no_effect(samples, tmp_path, name, every):
    """No job is claimed that would be another one with a value of the variable."""
    source = samples / "jobs" / name
    folder = tmp_path / "beside"
    shutil.copytree(source.parent, folder)
    tried = 0
    for path in (folder / source.name, *sorted(folder.glob("[Cc][Oo][Nn][Ff]*.sh"))):
        text = path.read_text()
        if path.name == "train_gpt3_175b_distributed.sh":
            text = text.replace("--global-batch-size 1536", "")
        for number, found in enumerate(_ASSIGNED.finditer(text)):
            if number % every:
                continue
            before, behind = text[: found.start()], text[found.end() :]
            alone = re.match(r"[ \t]*(?:[;#\n]|\Z)", behind)
            values = list(others(found[2]))
            told = {}
            for value in values:
                path.write_text(f"{before}{found[1]}='{value}'{behind}")
                told[value] = facts(folder / source.name, name)
            for way in WAYS if alone else WAYS[:2]:
                words = {"name": found[1], "value": values[0], "other": values[1]}
                path.write_text(before + way.format(**words) + behind)
                unknown = facts(folder / source.name, name)
                tried += 1
                whole = values[:2] if "{value}" in way else values
                for value in whole if unknown else ():
                    assert told[value] in (None, unknown), (way, found[1], value)
        path.write_text(text)
    assert tried
