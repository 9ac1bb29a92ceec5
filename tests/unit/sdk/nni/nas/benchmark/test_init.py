"""Names of the package."""

import subprocess
import sys

import pytest

from nni.nas import benchmark


def test_every_exported_name_is_there() -> None:
    for name in benchmark.__all__:
        assert getattr(benchmark, name).__module__.startswith("nni.nas.benchmark.")
    assert set(benchmark.__all__) <= set(dir(benchmark))


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'load_benchmarks'"):
        _ = benchmark.load_benchmarks


def test_databases_need_no_torch() -> None:
    code = "import sys; from nni.nas.benchmark import load_benchmark; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
