"""Table of the benchmarks by name."""

from __future__ import annotations

from typing import Final

from nni.nas.benchmark.database import BenchmarkDatabase
from nni.nas.benchmark.files import load_schema
from nni.nas.benchmark.nasbench101 import NB101_SCHEMA
from nni.nas.benchmark.nasbench201 import NB201_SCHEMA
from nni.nas.benchmark.nds import NDS_SCHEMA
from nni.nas.benchmark.nlp import NLP_SCHEMA

SCHEMAS: Final = {
    schema.name: schema for schema in (NB101_SCHEMA, NB201_SCHEMA, NDS_SCHEMA, NLP_SCHEMA)
}
"""Name of a benchmark to its tables."""


def load_benchmark(benchmark: str) -> BenchmarkDatabase:
    """Return the database of a benchmark by name; raise if the name is unknown or the file missing.

    Args:
        benchmark: `"nasbench101"`, `"nasbench201"`, `"nds"` or `"nlp"`.

    Returns:
        Database that can be queried by any field of a config.

    Raises:
        ValueError: the benchmark is unknown.
        BenchmarkFileMissingError: its file is missing; the error names file and folder.

    Examples:
        >>> load_benchmark("imagenet")
        Traceback (most recent call last):
        ValueError: benchmark must be one of nasbench101, nasbench201, nds, nlp, got 'imagenet'
    """
    if benchmark not in SCHEMAS:
        raise ValueError(f"benchmark must be one of {', '.join(SCHEMAS)}, got {benchmark!r}")
    return load_schema(SCHEMAS[benchmark])
