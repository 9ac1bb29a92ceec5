import pytest

import nni.compression.quantization


def test_exports_are_importable() -> None:
    for name in nni.compression.quantization.__all__:
        assert getattr(nni.compression.quantization, name).__name__ == name


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = nni.compression.quantization.missing
