"""Names of functions in graphs."""

import math
import operator
from typing import Any

import pytest
import torch
from torch.nn import functional

from nni.nas.space import IllegalGraphError
from nni.nas.space.pytorch.functions import function_name, function_of
from tests.unit.sdk.nni.nas.graph_models import linear


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (torch.relu, "torch.relu"),
        (functional.gelu, "torch.nn.functional.gelu"),
        (operator.add, "operator.add"),
        (math.floor, "math.floor"),
        (getattr, "builtins.getattr"),
        (linear, "tests.unit.sdk.nni.nas.graph_models.linear"),
    ],
)
def test_function_is_found_by_its_public_name(function: Any, name: str) -> None:
    assert function_name(function) == name
    assert function_of(name) is function


def test_function_without_an_importable_name_is_refused() -> None:
    with pytest.raises(IllegalGraphError, match="cannot be imported by its name"):
        function_name(lambda value: value)
