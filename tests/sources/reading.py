"""Small texts of every format of jobs, and what is asked of a job."""

import shutil

from tests.texts import data

# Files of tests/data/jobs by the names that tables give them.
FILES = {
    "HF": "mixture.json",
    "SHAPE": "shape.json",
    "WIDE": "wide.json",
    "TORCHTITAN": "torchtitan.toml",
    "TORCHTITAN_PYTHON": "torchtitan-registry.txt",
    "DEEPSPEED": "deepspeed.json",
    "ACCELERATE": "accelerate.yaml",
    "AXOLOTL": "axolotl.yaml",
    "NEMO": "nemo.yaml",
    "NEMO_ONE": "nemo-one.yaml",
    "NEMO_RL": "nemo-rl.yaml",
    "BRIDGE_PYTHON": "bridge-recipe.txt",
    "MAXTEXT": "maxtext.yml",
    "NANOTRON": "nanotron.yaml",
    "NEOX": "neox.yml",
    "VERL": "verl.sh",
}
TEXTS = {name: data(f"jobs/{file}") for name, file in FILES.items()}
SCRIPT = data("jobs/script.sh")
# Format and text of one of each, and of Python where a format has that too.
SMALL = [
    ("megatron", SCRIPT),
    *(
        (name.partition("_PYTHON")[0].lower().replace("_", "-"), text)
        for name, text in TEXTS.items()
        if name not in ("SHAPE", "WIDE", "NEMO_ONE", "BRIDGE_PYTHON")
    ),
    ("nemo", TEXTS["BRIDGE_PYTHON"]),
]
REST = {
    "model.layers": 8,
    "model.hidden": 512,
    "model.heads": 16,
    "model.ffn": 1024,
    "model.vocab": 1000,
    "sequence": 1024,
    "micro_batch": 1,
    "micro_batches": 1,
}


def at(job, key):
    """The value of a job under the key path of its file."""
    value = job
    for name in key.split("."):
        value = getattr(value, name)
    if name == "order":
        return "-".join(value)
    return list(value) if isinstance(value, tuple) else value


def given(*keys):
    """Settings that give these keys their value of `REST`."""
    return {f"job.{key}": REST[key] for key in keys}


MODEL = given("model.layers", "model.hidden", "model.heads", "model.ffn", "model.vocab")


def with_neighbours(path, folder):
    """A copy of a file, beside copies of what stands beside it."""
    own = folder / path.parent.name
    shutil.copytree(path.parent, own, dirs_exist_ok=True)
    return own / path.name
