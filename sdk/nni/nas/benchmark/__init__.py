"""Benchmarks of neural architecture search: databases of trained architectures, and their queries.

The databases need the standard library only. The names below are imported from their homes at
first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.nas.benchmark.catalogue import load_benchmark
    from nni.nas.benchmark.database import BenchmarkDatabase
    from nni.nas.benchmark.evaluator import (
        BenchmarkEvaluator,
        NasBench101Benchmark,
        NasBench201Benchmark,
    )
    from nni.nas.benchmark.files import BenchmarkFileMissingError, download_benchmark
    from nni.nas.benchmark.spaces import BenchmarkModelSpace, SlimBenchmarkSpace

__all__ = [
    "BenchmarkDatabase",
    "BenchmarkEvaluator",
    "BenchmarkFileMissingError",
    "BenchmarkModelSpace",
    "NasBench101Benchmark",
    "NasBench201Benchmark",
    "SlimBenchmarkSpace",
    "download_benchmark",
    "load_benchmark",
]

_HOMES = {
    "BenchmarkDatabase": "database",
    "BenchmarkEvaluator": "evaluator",
    "BenchmarkFileMissingError": "files",
    "BenchmarkModelSpace": "spaces",
    "NasBench101Benchmark": "evaluator",
    "NasBench201Benchmark": "evaluator",
    "SlimBenchmarkSpace": "spaces",
    "download_benchmark": "files",
    "load_benchmark": "catalogue",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home the first time it is requested."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
