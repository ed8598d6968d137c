"""One small text of each format, written for the tests."""

from tests.texts import data

HF = data("jobs/mixture.json")
SHAPE = data("jobs/shape.json")
WIDE = data("jobs/wide.json")
TORCHTITAN = data("jobs/torchtitan.toml")
TORCHTITAN_PYTHON = data("jobs/torchtitan-registry.txt")
DEEPSPEED = data("jobs/deepspeed.json")
ACCELERATE = data("jobs/accelerate.yaml")
AXOLOTL = data("jobs/axolotl.yaml")
NEMO = data("jobs/nemo.yaml")
NEMO_ONE = data("jobs/nemo-one.yaml")
NEMO_RL = data("jobs/nemo-rl.yaml")
MAXTEXT = data("jobs/maxtext.yml")
NANOTRON = data("jobs/nanotron.yaml")
NEOX = data("jobs/neox.yml")
VERL = data("jobs/verl.sh")

TEXTS = {
    "hf": HF,
    "torchtitan": TORCHTITAN,
    "deepspeed": DEEPSPEED,
    "accelerate": ACCELERATE,
    "axolotl": AXOLOTL,
    "nemo": NEMO,
    "nemo-rl": NEMO_RL,
    "maxtext": MAXTEXT,
    "nanotron": NANOTRON,
    "neox": NEOX,
    "verl": VERL,
}

BRIDGE_PYTHON = data("jobs/bridge-recipe.txt")
