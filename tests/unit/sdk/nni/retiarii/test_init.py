"""Names of the package itself."""

import pytest

import nni.retiarii


@pytest.mark.parametrize("name", nni.retiarii.__all__)
def test_name_can_be_called(name: str) -> None:
    assert callable(getattr(nni.retiarii, name))
