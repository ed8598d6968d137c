"""What no product takes: experts' memory and launches, and the host, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from placer.base.errors import InputError
from placer.job.adapters import Adapters
from placer.job.axes import Parallelism
from placer.job.beside import expert_bytes, host_passes, host_seconds, host_wait
from placer.job.memory import Memory
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.parallel import DataParallel
from placer.job.read import read_job
from placer.job.write import to_document

if TYPE_CHECKING:
    from pathlib import Path

# Eight layers, half of them mixtures of 16 experts of 3 x 1,024 x 512 parameters.
MIXTURE = Model(
    "mixture", 8, 1024, 4096, 8, 8, 32_000, experts=16, top_k=2, expert_ffn=512,
    moe_layers=4,
)  # fmt: skip
RATE = 2e12


def job(**other: object) -> Job:
    """It keeps four experts a GPU, cut in two."""
    axes = Parallelism(tp=2, ep=4, dp=4, etp=2)
    compute = Compute(micro_batch_time=1.0, memory_bandwidth=RATE)
    made = Job("j", axes, model=MIXTURE, sequence=2048, compute=compute)
    return replace(made, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "each"),
    [
        ({}, 2 * 2 + 2 * 2),
        ({"memory": Memory(gemm="fp8")}, 2 * 1 + 2 * 2),
        ({"memory": Memory(gemm="fp8", gradient_bytes=4.0)}, 2 * 1 + 2 * 4),
        ({"memory": Memory("selective", recompute_modules=("moe",))}, 3 * 2 + 2 * 2),
        ({"data_parallel": DataParallel("zero3")}, 2 * 2 + 2 * 4 + 2 * 2),
        ({"data_parallel": DataParallel("zero3", keep_parameters=True)}, 4 + 2 * 4),
        ({"adapters": Adapters(rank=8)}, 2 * 2),
    ],
)
def test_bytes_of_an_expert_s_parameter(other: dict[str, object], each: float) -> None:
    """Read each pass, its gradient read and added to; shards written by two gathers."""
    assert expert_bytes(job(**other)) == each


def test_layers_of_a_mixture_wait_for_their_host() -> None:
    """2.5 ms each where nothing says it, nothing where graphs hold whole steps."""
    assert host_wait(job(), MIXTURE) == pytest.approx(0.5 * 2.5e-3)
    assert host_wait(job(host_time=6e-3), MIXTURE) == pytest.approx(3e-3)
    assert host_wait(job(host_time=0.0), MIXTURE) == 0.0
    again = job(memory=Memory("full"))
    assert host_seconds(again, MIXTURE) == pytest.approx(2.5e-3 * 4 / 3)
    assert host_passes(job(), MIXTURE) == (0.0, 0.0)


JOB = """\
format: placer/job
version: 1
name: j
parallelism: {tp: 2, dp: 4}
model: llama3.1-405b
sequence: 8192
host_time: 2ms
compute: {tflops_per_gpu: 500, peak_tflops: 989}
data_parallel: {sm_share: 0}
"""


def test_what_a_file_says_is_read_and_written(tmp_path: Path) -> None:
    """Both keys, a 0 too; what is not said is not written."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    found = read_job(str(file))
    assert (found.host_time, found.data_parallel.sm_share) == (2e-3, 0.0)
    document = to_document(found)
    assert document["host_time"] == 2e-3
    assert document["data_parallel"]["sm_share"] == 0.0
    usual = to_document(read_job("llama3-405b-8k"))
    assert "host_time" not in usual
    file.write_text(JOB.replace("2ms", "0s"))
    assert to_document(read_job(str(file)))["host_time"] == 0.0


def test_a_host_slower_than_the_micro_batch_is_refused(tmp_path: Path) -> None:
    """126 layers of 2 s are no micro-batch of half a minute."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("2ms", "2s"))
    with pytest.raises(InputError, match=r"7:12: host_time: the host would take 252 s"):
        read_job(str(file))
