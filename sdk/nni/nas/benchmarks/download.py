"""Documented spelling `python -m nni.nas.benchmarks.download NAME`."""

import sys

from nni.nas.benchmark.download import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
