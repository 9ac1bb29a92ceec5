import pytest

import nni.compression.quantization_speedup


def test_exports_are_importable() -> None:
    for name in nni.compression.quantization_speedup.__all__:
        assert getattr(nni.compression.quantization_speedup, name).__name__ == name


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = nni.compression.quantization_speedup.missing
