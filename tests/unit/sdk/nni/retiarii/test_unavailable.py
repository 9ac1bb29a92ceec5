"""Names of NNI 2.x that are not available."""

import pytest

import nni.retiarii
from nni.retiarii.unavailable import refuse


def test_error_names_what_to_use() -> None:
    with pytest.raises(AttributeError, match=r"graphs are not available"):
        _ = nni.retiarii.Mutator


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'package' has no attribute 'other'"):
        refuse("package", {"name": "remedy"})("other")
