"""Scripts that train with Megatron, and what is read of them."""

from placer.formats.jobs.job import Options, open_job

SHAPE = "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --vocab-size 51200"
BATCH = "--micro-batch-size 1 --global-batch-size 64 --seq-length 2048"
PLAIN = f"--max-position-embeddings 4096 --bf16 {SHAPE} {BATCH}"


def opened(tmp_path, arguments="", gpus=8, name="train.sh", text=None, **settings):
    """Sources of a script that trains with some arguments."""
    path = tmp_path / name
    path.write_text(text or f"torchrun pretrain_gpt.py {PLAIN} {arguments}\n")
    return open_job(f"megatron:{path}", Options(gpus, 400.0, None, settings))


def facts(tmp_path, arguments="", gpus=8, **others):
    """Values by key, of a job that is valid."""
    found = opened(tmp_path, arguments, gpus, **others)
    found.job()
    return {key: fact.value for key, fact in found.found.facts.items()}
