"""Places of benchmark files."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from nni.nas.benchmark.files import (
    BenchmarkFileMissingError,
    benchmark_folder,
    download_benchmark,
    load_schema,
)
from nni.nas.benchmark.nds import NDS_SCHEMA


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("NASBENCHMARK_DIR", "NNI_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_folder_is_in_the_cache_by_default(home: Path) -> None:
    assert benchmark_folder() == home / ".cache/nni/nasbenchmark"


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("XDG_CACHE_HOME", "named/nni/nasbenchmark"),
        ("NNI_HOME", "named/nasbenchmark"),
        ("NASBENCHMARK_DIR", "named"),
    ],
)
def test_environment_names_the_folder(
    variable: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "named")

    assert benchmark_folder() == Path(expected)


def test_published_file_is_preferred_to_a_converted_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBENCHMARK_DIR", str(home))
    (home / "nds.db").touch()
    converted = download_benchmark("nds")
    (home / "nds-5745c235.db").touch()

    assert converted == home / "nds.db"
    assert download_benchmark("nds") == home / "nds-5745c235.db"


def test_the_older_place_is_looked_in_too(home: Path) -> None:
    folder = home / ".nni/nasbenchmark"
    folder.mkdir(parents=True)
    (folder / "nds.db").touch()

    assert load_schema(NDS_SCHEMA).path == folder / "nds.db"


def test_missing_file_is_an_error_that_names_file_and_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBENCHMARK_DIR", str(home))
    with pytest.raises(BenchmarkFileMissingError, match=r"nasbench101-209f5694\.db") as caught:
        download_benchmark("nasbench101")

    assert caught.value.folder == home
    assert str(home) in str(caught.value)
    assert "nni.nas.benchmark.nasbench101.conversion" in str(caught.value)


def test_error_survives_a_process_boundary() -> None:
    error = BenchmarkFileMissingError("nds", "nds-5745c235.db", Path("here"))

    copy = pickle.loads(pickle.dumps(error))

    assert (copy.benchmark, copy.folder, str(copy)) == ("nds", Path("here"), str(error))


def test_unknown_benchmark_is_refused() -> None:
    with pytest.raises(ValueError, match=r"benchmark must be one of nasbench101, .*, got 'nas'"):
        download_benchmark("nas")
