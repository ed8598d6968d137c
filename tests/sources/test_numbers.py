"""Numbers with underscores: as Python reads them, and a problem where it does not."""

import pytest

from tests.commands import refusal

FILES = {
    "megatron": "torchrun pretrain_gpt.py --num-layers {} --hidden-size 64\n",
    "maxtext": "base_num_decoder_layers: {}\nbase_emb_dim: 64\n",
    "axolotl": "base_model: x\nsequence_len: {}\nmicro_batch_size: 1\n",
    "": "format: placer/job\nversion: 1\nname: x\nmicro_batches: {}\n",
}


@pytest.mark.parametrize("number", ["1_", "1__0", "_1", "1_._5"])
@pytest.mark.parametrize("name", FILES)
def test_an_underscore_too_many_is_told(tmp_path, name, number):
    """A number that Python does not read is the file's problem, in placer's words."""
    path = tmp_path / "job.yaml"
    path.write_text(FILES[name].format(number))
    told = refusal("jobs", "show", f"{name}:{path}" if name else path)
    assert name or "micro_batches: expected an integer" in told
    assert "literal" not in told
