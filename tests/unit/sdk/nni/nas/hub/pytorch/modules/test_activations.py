"""Each function computes its formula."""

import math

import pytest
import torch

from nni.nas.hub.pytorch.modules.activations import (
    BINARY,
    UNARY,
    BinaryFunction,
    UnaryFunction,
)

X = 0.7
EXPECTED = {
    "Identity": X,
    "Negative": -X,
    "Abs": X,
    "Square": X**2,
    "Pow": X**3,
    "Sqrt": math.sqrt(X),
    "Mul": X,
    "Add": X + 1,
    "LogAbs": math.log(X),
    "Exp": math.exp(X),
    "Sin": math.sin(X),
    "Cos": math.cos(X),
    "Sinh": math.sinh(X),
    "Cosh": math.cosh(X),
    "Tanh": math.tanh(X),
    "Atan": math.atan(X),
    "Max": X,
    "Min": 0,
    "Sigmoid": 1 / (1 + math.exp(-X)),
    "LogExp": math.log(1 + math.exp(X)),
    "ExpSquare": math.exp(-(X**2)),
    "Erf": math.erf(X),
    "Sinc": math.sin(math.pi * X) / (math.pi * X),
    "Asinh": math.asinh(X),
}
A, B = 0.7, -0.4
EXPECTED_OF_TWO = {
    "Add": A + B,
    "Mul": A * B,
    "Minus": A - B,
    "Divide": A / B,
    "Max": A,
    "Min": B,
    "Sigmoid": B / (1 + math.exp(-A)),
    "ExpSquare": math.exp(-((A - B) ** 2)),
    "ExpAbs": math.exp(-abs(A - B)),
    "ParamAdd": A,
}


def test_there_are_24_and_10_functions() -> None:
    assert set(UNARY) == set(EXPECTED)
    assert set(BINARY) == set(EXPECTED_OF_TWO)
    assert (len(UNARY), len(BINARY)) == (24, 10)


@pytest.mark.parametrize("name", UNARY)
def test_function_of_one_tensor(name: str) -> None:
    found = UnaryFunction(name)(torch.tensor(X)).detach()

    # Single precision has 7 digits; the constant in denominators is 1e-7.
    assert float(found) == pytest.approx(EXPECTED[name], rel=1e-5)


@pytest.mark.parametrize("name", BINARY)
def test_function_of_two_tensors(name: str) -> None:
    found = BinaryFunction(name)(torch.tensor([A, B])).detach()

    assert float(found) == pytest.approx(EXPECTED_OF_TWO[name], rel=1e-5)


def test_parameters_are_scalars_and_learned() -> None:
    with_parameters = {name for name in UNARY if list(UnaryFunction(name).parameters())}
    of_two = {name for name in BINARY if list(BinaryFunction(name).parameters())}
    function = UnaryFunction("Mul")
    function(torch.tensor([2.0, 3.0])).sum().backward()

    assert with_parameters == {"Mul", "Add"}
    assert of_two == {"ExpSquare", "ExpAbs", "ParamAdd"}
    assert function.beta.shape == ()
    assert function.beta.grad is not None
    assert float(function.beta.grad) == 5


def test_logarithm_of_an_exponential_does_not_overflow() -> None:
    assert float(UnaryFunction("LogExp")(torch.tensor(200.0))) == 200


def test_functions_of_zero_are_finite_where_they_can_be() -> None:
    zero = torch.tensor(0.0)

    assert torch.isfinite(UnaryFunction("LogAbs")(zero))
    assert float(UnaryFunction("Sinc")(zero)) == 1
    assert torch.isfinite(BinaryFunction("Divide")(torch.tensor([1.0, 0.0])))


@pytest.mark.parametrize("kind", [UnaryFunction, BinaryFunction])
def test_unknown_name_is_refused(kind: type[UnaryFunction]) -> None:
    with pytest.raises(ValueError, match=r"name must be one of .*, got 'Swish'"):
        kind("Swish")


def test_text_has_the_name() -> None:
    assert repr(UnaryFunction("Erf")) == "UnaryFunction(Erf)"
    assert repr(BinaryFunction("Max")) == "BinaryFunction(Max)"
