"""Names of the package itself."""

import pytest

import nni.retiarii


@pytest.mark.parametrize("name", [one for one in nni.retiarii.__all__ if one != "debug_configs"])
def test_name_can_be_called(name: str) -> None:
    assert callable(getattr(nni.retiarii, name))
