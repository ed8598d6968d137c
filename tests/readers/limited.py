"""Reads texts in a process of its own and prints the most memory it had, in bytes.

The argument is the seconds of processor it may take. Each line of standard input is a
JSON list of format and text.
"""

import json
import resource
import sys
from pathlib import Path

from tests.readers.test_fuzz import check, outcome, read_and_combine


def main():
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    for line in sys.stdin:
        check(outcome(read_and_combine, *json.loads(line)))
    # Not ru_maxrss: that begins with the memory of the process that started this one.
    status = Path("/proc/self/status").read_text()
    print(int(status.split("VmHWM:")[1].split()[0]) * 1024)


if __name__ == "__main__":
    main()
