from typing import get_args

import numpy as np
import pytest

from nni.hpo import arrays


@pytest.mark.parametrize(
    ("alias", "element"), [("Floats", np.float64), ("Ints", np.int64), ("Bools", np.bool_)]
)
def test_alias_is_an_array_of_its_elements(alias: str, element: type) -> None:
    assert element in get_args(get_args(getattr(arrays, alias))[1])
