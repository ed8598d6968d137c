"""The same job at another size: other replicas, other micro-batches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from placer.document import parse_document
from placer.job.read import decode_job
from placer.job.read_traffic import default_bucket
from placer.job.write import to_document

if TYPE_CHECKING:
    from placer.job.model import Job


def resized(job: Job, dp: int | None = None, micro_batches: int | None = None) -> Job:
    """The job with other sizes, checked as a job file is.

    A bucket of the default size and groups of all ranks follow ``dp``.

    Raises
    ------
    InputError
        If the job cannot have these sizes.
    """
    if dp in (None, job.parallelism.dp) and micro_batches in (None, job.micro_batches):
        return job
    document = to_document(job)
    if micro_batches is not None:
        document["micro_batches"] = micro_batches
    if dp is not None:
        document["parallelism"]["dp"] = dp
        if job.data_parallel.bucket_parameters == default_bucket(job.parallelism.dp):
            del document["data_parallel"]["bucket_parameters"]
        everyone = [list(range(job.world_size))]
        for group in document["groups"]:
            if group["ranks"] == everyone:
                group["ranks"] = "all"
    return decode_job(parse_document(json.dumps(document), "job.json"))
