"""``python -m simperf.workload.zoo_source [NAME ...]``: trace the models of the zoo again, in place."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import simperf.workload.zoo
from simperf.errors import SimperfError
from simperf.workload.zoo_source import ENTRIES, make

__all__ = ["main"]


def main(names: Sequence[str]) -> int:
    """Trace `names` (default: all) into the zoo; 2 if one of them cannot be."""
    folder = Path(simperf.workload.zoo.__file__).parent
    try:
        for name in names or ENTRIES:
            for path in make([name], folder):
                sys.stderr.write(f"{path.name}: {path.stat().st_size} bytes\n")
    except SimperfError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
