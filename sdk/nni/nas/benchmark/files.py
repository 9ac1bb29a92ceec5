"""Places of benchmark files, and `load_benchmark` and `download_benchmark`, which find them.

NNI downloads nothing: the error of a missing file names the file and the folder that it belongs in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nni.nas.benchmark.database import BenchmarkDatabase
from nni.nas.benchmark.schema import BenchmarkSchema

PUBLISHED_FILES: Final = {
    "nasbench101": "nasbench101-209f5694.db",
    "nasbench201": "nasbench201-b2b60732.db",
    "nds": "nds-5745c235.db",
    "nlp": "nlp.db",
}
"""Benchmark to the name of its published file; a converted one may be called `NAME.db` instead."""


class BenchmarkFileMissingError(FileNotFoundError):
    """Error that a benchmark's file is in none of the folders; says how to get the file.

    Args:
        benchmark: name of the benchmark.
        file_name: name of the wanted file.
        folder: folder that the file belongs in.

    Examples:
        >>> from pathlib import Path
        >>> error = BenchmarkFileMissingError("nds", "nds-5745c235.db", Path("benchmarks"))
        >>> error.file_name
        'nds-5745c235.db'
    """

    def __init__(self, benchmark: str, file_name: str, folder: Path) -> None:
        self.benchmark = benchmark
        self.file_name = file_name
        self.folder = folder
        super().__init__(
            f"benchmark {benchmark!r} has no file in {folder}; NNI downloads nothing: place "
            f"{file_name} there, or convert the original files by `python -m "
            f"nni.nas.benchmark.{benchmark}.conversion`, or name another folder by the "
            "environment variable NASBENCHMARK_DIR"
        )

    def __reduce__(self) -> tuple[type[BenchmarkFileMissingError], tuple[str, str, Path]]:
        """Return how to make the error again, from its facts instead of its text."""
        return type(self), (self.benchmark, self.file_name, self.folder)


def benchmark_folder() -> Path:
    """Return the folder for benchmark files, by environment or default; it need not exist.

    It is the first of: the environment variable `NASBENCHMARK_DIR`; `nasbenchmark` in `NNI_HOME`;
    `nni/nasbenchmark` in `XDG_CACHE_HOME`, which is `~/.cache` by default.

    Examples:
        >>> os.environ["NASBENCHMARK_DIR"] = "benchmarks"
        >>> benchmark_folder().name
        'benchmarks'
        >>> del os.environ["NASBENCHMARK_DIR"]
    """
    if named := os.environ.get("NASBENCHMARK_DIR"):
        return Path(named).expanduser()
    if home := os.environ.get("NNI_HOME"):
        return Path(home).expanduser() / "nasbenchmark"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "nni" / "nasbenchmark"


def _folders() -> Iterator[Path]:
    """Yield `benchmark_folder()`, then `~/.nni/nasbenchmark` unless NASBENCHMARK_DIR is set."""
    yield benchmark_folder()
    if not os.environ.get("NASBENCHMARK_DIR"):
        yield Path("~/.nni/nasbenchmark").expanduser()


def download_benchmark(benchmark: str, progress: bool = True) -> Path:  # noqa: ARG001, FBT001, FBT002, RUF100 - NNI's signature
    """Return the path of a benchmark's local file; raise if it is missing; download nothing.

    Args:
        benchmark: `"nasbench101"`, `"nasbench201"`, `"nds"` or `"nlp"`.
        progress: accepted for compatibility; nothing is downloaded.

    Returns:
        Path of the file.

    Raises:
        ValueError: the benchmark is unknown.
        BenchmarkFileMissingError: its file is missing; the error names file and folder.

    Examples:
        >>> download_benchmark("imagenet")
        Traceback (most recent call last):
        ValueError: benchmark must be one of nasbench101, nasbench201, nds, nlp, got 'imagenet'
    """
    if benchmark not in PUBLISHED_FILES:
        raise ValueError(
            f"benchmark must be one of {', '.join(PUBLISHED_FILES)}, got {benchmark!r}"
        )
    published = PUBLISHED_FILES[benchmark]
    for folder in _folders():
        for name in (published, f"{benchmark}.db"):
            if (folder / name).is_file():
                return folder / name
    raise BenchmarkFileMissingError(benchmark, published, benchmark_folder())


def load_schema(schema: BenchmarkSchema) -> BenchmarkDatabase:
    """Return the database of the benchmark with these tables; raise if its file is missing.

    Args:
        schema: tables of the benchmark.

    Raises:
        BenchmarkFileMissingError: its file is missing.

    Examples:
        >>> from nni.nas.benchmark.nds import NDS_SCHEMA
        >>> try:
        ...     load_schema(NDS_SCHEMA)
        ... except BenchmarkFileMissingError as error:
        ...     print(error.file_name)
        nds-5745c235.db
    """
    return BenchmarkDatabase(download_benchmark(schema.name), schema)
