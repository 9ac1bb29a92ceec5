"""Command line `python -m nni.nas.benchmark.download NAME`: print where a benchmark's file lies."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from nni.nas.benchmark.files import PUBLISHED_FILES, BenchmarkFileMissingError, download_benchmark


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the path of a benchmark's file; return 0, or 1 if it is missing; download nothing.

    Args:
        arguments: words after the program's name; None for those of this process.

    Returns:
        Exit status: 1 if the file is missing.

    Examples:
        >>> main(["nasbench201"])
        1
    """
    parser = argparse.ArgumentParser(
        prog="python -m nni.nas.benchmark.download",
        description="Find the file of a benchmark. Nothing is downloaded.",
    )
    parser.add_argument("benchmark", choices=list(PUBLISHED_FILES))
    name = parser.parse_args(arguments).benchmark
    try:
        sys.stdout.write(f"{download_benchmark(name)}\n")
    except BenchmarkFileMissingError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
