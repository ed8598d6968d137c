"""Damaged sources: a job or an error with a place, never anything else."""

import random
import re
import shutil
from pathlib import Path

import pytest

from placer.base.errors import InputError
from placer.formats.jobs.job import Opened, Options, open_job
from tests.marks import slow

SCRIPT = r"""#!/bin/bash
#SBATCH --nodes=2
GPUS=8  # of a node
MODE=${1:-dense}
ARGS=(--num-layers 8 --hidden-size 1024 --num-attention-heads 16
  # --swiglu
  "--seq-length 2048" --micro-batch-size 1)
if [[ "$MODE" == "moe" && -n "$EP" ]]; then ARGS+=(--num-experts 8); fi
case $MODE in dense|small) TP=2 ;; *) TP=$((GPUS / 2)) ;; esac
cat <<EOT > ds.json
{"zero_optimization": {"stage": 1}, "train_batch_size": $(( 2 * GPUS ))}
EOT
run() { torchrun --nproc_per_node $GPUS --nnodes ${SLURM_NNODES} "$@"; }
run pretrain_gpt.py ${ARGS[@]} --tensor-model-parallel-size $TP --vocab-size 50257 \
  --moe-layer-freq "([0]*1+[1]*7)" --bf16 | tee log.txt
"""
NAMES = (
    "megatron/train_gpt3_175b_distributed.sh",
    "megatron/train_llama3_8b_h100_fp8.sh",
    "megatron/train_mixtral_8x7b_distributed.sh",
    "megatron/sc21/run_table_1.sh",
    "megatron/sc21/CONFIG.sh",
    "megatron/model_config-8experts-etp1-ep4.yaml",
    "megatron/model_config-vp2-account-embedding-loss.yaml",
    "deepspeed/run-175b.sh",
    "logs/megatron-deepspeed-arguments.log",
    "mlperf/tyche_ngpu512/config_GB200_128x4x112xtp4pp8cp2_cg_dplast.sh",
    "ms-swift/deepseek_v3.sh",
)
JUNK = (*"'\"`()[]{}\\\n\t<>|&;#$=*!", "$(", "${", "$((", "[[", "<<E\n", "fi\n", "é")
JUNK += ("case x in ", "if ", "0", "-1", "9" * 30, "1e9", "null", ": ", "+=(", "\x01")


def mutated(text: str, chance: random.Random) -> str:
    """The text with one to eight small damages."""
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.randrange(1, 40))
        numbers = list(re.finditer(r"\d+", text))
        match chance.randrange(5):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + chance.choice(JUNK) + text[at:]
            case 2:
                text = text[:end] + text[at:end] + text[end:]
            case 3 if numbers:
                number = chance.choice(numbers)
                other = str(chance.choice((0, 1, 3, 7, 64, 10**12)))
                text = text[: number.start()] + other + text[number.end() :]
            case _:
                text = text[:at] + text[at:].replace("\n", chance.choice(JUNK), 1)
    return text


def check(path: Path, text: str, chance: random.Random) -> None:
    """A valid job that can be written, or an `InputError`."""
    path.write_text(text)
    options = Options(chance.choice((None, 8, 512)), 400.0)
    try:
        opened = open_job(f"{FORMATS.get(path.name, 'megatron')}:{path}", options)
        assert isinstance(opened, Opened)
        opened.job()
        assert opened.text()
    except InputError as error:
        str(error)


FORMATS = {Path(NAMES[-2]).name: "mlperf", Path(NAMES[-1]).name: "swift"}


@pytest.mark.parametrize("count", [100, *slow([2000])])
def test_a_damaged_script(tmp_path, count):
    """A script with most that people write, damaged in many ways."""
    chance = random.Random(4)
    for _ in range(count):
        check(tmp_path / "train.sh", mutated(SCRIPT, chance), chance)


@pytest.mark.parametrize("count", [8, *slow([200])])
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_sample(samples, tmp_path, name, count):
    """The captured scripts, logs and configurations, damaged in many ways."""
    source = samples / "jobs" / name
    folder = tmp_path / "beside"
    shutil.copytree(source.parent, folder)
    text, chance = source.read_text(), random.Random(name)
    for _ in range(count):
        check(folder / source.name, mutated(text, chance), chance)
