"""TensorRT behind the port of engines, as far as it goes without the package."""

from __future__ import annotations

import importlib.util

import pytest

from nni.compression.quantization_speedup.tensorrt_engine import TensorRTEngine


@pytest.mark.skipif(
    importlib.util.find_spec("tensorrt") is not None, reason="tensorrt is installed here"
)
def test_without_the_package_nothing_is_loaded() -> None:
    with pytest.raises(ImportError, match="needs tensorrt"):
        TensorRTEngine().load(b"plan")


def test_it_has_ranges_around_zero_only() -> None:
    assert TensorRTEngine.symmetric
