"""An instance as files that the command reads: ``python -m benchmarks.files B DIR``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cases import case
from placer.job.write import to_document as job_document
from placer.topology.write import to_document as topology_document


def write(name: str, objective: str, folder: Path) -> None:
    """Write machine.json and job.json of an instance into a folder."""
    topology, job = case(name, objective)
    (folder / "machine.json").write_text(json.dumps(topology_document(topology)))
    (folder / "job.json").write_text(json.dumps(job_document(job)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.files")
    parser.add_argument("instance")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--objective", choices=("time", "hop-cost"), default="hop-cost")
    options = parser.parse_args(arguments)
    write(options.instance, options.objective, options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
