"""The package loads torch only when one of its names is used."""

import subprocess
import sys

import pytest

import nni.compression


def test_import_loads_no_torch() -> None:
    code = "import sys, nni.compression; print('torch' in sys.modules, dir(nni.compression)[-1])"

    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert printed.split() == ["False", "prune_decoder"]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = nni.compression.missing


def test_exports_are_listed_and_importable() -> None:
    assert "TorchEvaluator" in dir(nni.compression)
    assert nni.compression.TorchEvaluator.__name__ == "TorchEvaluator"
