"""Command line that the converters of all benchmarks share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from nni.nas.benchmark.files import benchmark_folder
from nni.nas.benchmark.schema import BenchmarkSchema
from nni.nas.benchmark.writer import BenchmarkWriter, create_database

Convert = Callable[[Path, BenchmarkWriter], None]
"""Function that reads the original files and adds their trials."""


def run_conversion(
    convert: Convert,
    schema: BenchmarkSchema,
    source: str,
    arguments: Sequence[str] | None = None,
) -> int:
    """Convert a command line's source to a database, print its path; return 0, or 1 if it is bad.

    Args:
        convert: converter of the benchmark.
        schema: tables of the benchmark.
        source: description of the original files, for `--help`.
        arguments: words after the program's name; None for those of this process.

    Returns:
        Exit status: 1 if the source is missing or has another format.

    Examples:
        >>> from nni.nas.benchmark.nlp import NLP_SCHEMA
        >>> run_conversion(lambda folder, writer: None, NLP_SCHEMA, "a folder", ["missing"])
        1
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m nni.nas.benchmark.{schema.name}.conversion",
        description=f"Convert {source} to a database that the queries of NNI read.",
    )
    parser.add_argument("source", type=Path, help=source)
    parser.add_argument(
        "--target",
        type=Path,
        default=benchmark_folder() / f"{schema.name}.db",
        help="file to write; default: %(default)s",
    )
    options = parser.parse_args(arguments)
    try:
        if not options.source.exists():
            raise FileNotFoundError(f"there is no {options.source}")
        with create_database(options.target, schema) as writer:
            convert(options.source, writer)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{options.target}\n")
    return 0
