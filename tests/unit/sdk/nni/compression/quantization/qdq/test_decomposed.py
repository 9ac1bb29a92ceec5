from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base.numerics import IntegerRange
from nni.compression.quantization.qdq.decomposed import (
    DecomposedPair,
    DecomposedParameter,
    decomposed,
    load_operators,
)
from nni.compression.quantization.qdq.targets import (
    ExportedIntegers,
    ExportedPair,
    StoredIntegers,
)

VALUES = torch.tensor([[-3.0, 0.26], [0.74, 9.0]])


@pytest.fixture(autouse=True)
def loaded() -> None:
    load_operators()


def integers(scale: list[float] | float, zero_point: list[int] | int) -> ExportedIntegers:
    return ExportedIntegers(
        torch.tensor(scale),
        torch.tensor(zero_point, dtype=torch.uint8),
        axis=1,
        limits=IntegerRange(1, 9),
    )


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (integers(0.5, 2), [[-0.5, 0.5], [0.5, 3.5]]),
        (integers([0.5, 1.0], [2, 3]), [[-0.5, 0.0], [0.5, 6.0]]),
    ],
)
def test_an_activation_is_rounded_and_clipped(form: ExportedIntegers, expected: Any) -> None:
    pair = decomposed(ExportedPair(form))

    assert isinstance(pair, DecomposedPair)
    assert torch.equal(pair(VALUES), torch.tensor(expected))
    assert torch.equal(pair(VALUES), form.rounded(VALUES))


@pytest.mark.parametrize("form", [integers(0.5, 2), integers([0.5, 1.0], [2, 3])])
def test_a_parameter_is_what_is_stored(form: ExportedIntegers) -> None:
    parameter = decomposed(StoredIntegers(form, VALUES))

    assert isinstance(parameter, DecomposedParameter)
    assert parameter.stored.dtype == torch.uint8
    assert parameter.scales.shape == (2,)
    assert torch.equal(parameter(torch.zeros(2, 2)), form.rounded(VALUES))


def test_other_modules_stay_as_they_are() -> None:
    simulated = nn.Identity()
    sequence: Any = decomposed(nn.Sequential(simulated, ExportedPair(integers(0.5, 2))))

    assert decomposed(simulated) is simulated
    assert sequence[0] is simulated
    found: Tensor = sequence(VALUES)
    assert torch.equal(found, integers(0.5, 2).rounded(VALUES))
