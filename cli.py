#!/usr/bin/env python3
"""Run the ``placer`` command from a checkout, installed or not."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))

    from placer.__main__ import run

    sys.exit(run())
