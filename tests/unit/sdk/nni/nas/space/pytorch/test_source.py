"""Source code of programs."""

from enum import IntEnum
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import nni
from nni.nas.space import IllegalGraphError
from nni.nas.space.graph_op import CHOSEN_INPUTS, Operation, TrainingMode
from nni.nas.space.pytorch.program import Program, ProgramMember, ProgramVariable, Statement
from nni.nas.space.pytorch.source import source_of
from tests.unit.sdk.nni.nas.graph_models import Cutoff, linear

X, Y = ProgramVariable("x"), ProgramVariable("y")


def lines_of(
    type_name: str, *args: Any, parameters: dict[str, Any] | None = None, **kwargs: Any
) -> list[str]:
    """Return the lines of a program of one call of a function."""
    operation = Operation.new(type_name, parameters)
    statement = Statement("out", "out", operation, None, list(args), kwargs)
    program = Program("_model", ["x", "y"], {}, [statement], ProgramVariable("out"))
    return [line.strip() for line in source_of([program]).split("\n")]


def member_lines(cls: str, **parameters: Any) -> list[str]:
    """Return the lines of a program with one member."""
    member = ProgramMember(Operation.new(f"__torch__.{cls}", parameters), ("m",))
    source = source_of([Program("_model", [], {"m": member}, [], None)])
    return [line.strip() for line in source.split("\n")]


@pytest.mark.parametrize(
    ("type_name", "args", "line"),
    [
        ("Function.operator.add", (X, Y), "out = x + y"),
        ("Function.operator.sub", (X, -1), "out = x - (-1)"),
        ("Function.operator.neg", (X,), "out = -x"),
        ("Function.operator.getitem", (X, (slice(None), slice(1, 3))), "out = x[:, 1:3]"),
        ("Function.operator.getitem", (X, (0,)), "out = x[0,]"),
        ("Function.operator.getitem", (X, (Ellipsis, None)), "out = x[..., None]"),
        ("Function.builtins.getattr", (X, "shape"), "out = x.shape"),
        ("Function.builtins.len", (X,), "out = len(x)"),
        ("Function.torch.cat", ([X, Y], 1), "out = torch.cat([x, y], 1)"),
        ("Function.torch.split", (X, (1,)), "out = torch.split(x, (1,))"),
        ("Tensor.view", (X, -1, 4), "out = x.view(-1, 4)"),
        ("Attribute.T", (X,), "out = x.T"),
        ("Function.torch.relu", (ProgramVariable("x", 1),), "out = torch.relu(x[1])"),
        ("Function.math.floor", (2.5,), "out = math.floor(2.5)"),
        ("Function.torch.clamp", (X, float("-inf")), "out = torch.clamp(x, float('-inf'))"),
        ("Function.f.g", ({"a": X},), "out = f.g({'a': x})"),
        ("Function.f.g", (slice(1, X),), "out = f.g(slice(1, x, None))"),
        ("Function.f.g", (TrainingMode(),), "out = f.g(self.training)"),
        ("Function.f.g", (torch.float16,), "out = f.g(torch.float16)"),
        ("Function.f.g", (torch.device("cpu"),), "out = f.g(torch.device(type='cpu'))"),
        ("Function.f.g", (torch.Size([1, 2]),), "out = f.g((1, 2))"),
        ("Function.f.g", (nn.Linear,), "out = f.g(torch.nn.Linear)"),
        ("Function.f.g", (torch.relu,), "out = f.g(torch.relu)"),
        ("Function.f.g", (int,), "out = f.g(int)"),
    ],
)
def test_call_in_the_words_of_python(type_name: str, args: tuple[Any, ...], line: str) -> None:
    assert line in lines_of(type_name, *args)


@pytest.mark.parametrize(
    ("chosen", "reduction", "line"),
    [
        ([0, 1], "sum", "out = x + y"),
        ([0, 1], "mean", "out = (x + y) / 2"),
        ([0, 1], "concat", "out = torch.cat([x, y], 1)"),
        ([0, 1], "none", "out = [x, y]"),
        ([1], "mean", "out = y"),
        ([], "sum", "out = None"),
    ],
)
def test_chosen_inputs_are_plain_expressions(chosen: list[int], reduction: str, line: str) -> None:
    parameters = {"chosen": chosen, "reduction": reduction}

    assert line in lines_of(CHOSEN_INPUTS, [X, Y], parameters=parameters)


def test_modules_of_functions_are_imported() -> None:
    lines = lines_of("Function.math.floor", 2.5)

    assert [line for line in lines if line.startswith("import")] == ["import math", "import torch"]


def test_class_of_the_user_is_imported_by_its_module() -> None:
    name = f"{Cutoff.__module__}.Cutoff"

    lines = member_lines(name, limit=0.5)

    assert f"import {Cutoff.__module__}" in lines
    assert f"self.m = {name}(limit=0.5)" in lines


def test_argument_that_a_traced_call_has_made_is_that_call() -> None:
    activation = nni.trace(nn.LeakyReLU)(0.2)

    lines = member_lines("torch.nn.Linear", act=activation)

    assert "self.m = torch.nn.Linear(act=torch.nn.LeakyReLU(negative_slope=0.2))" in lines


def test_function_of_the_user_is_imported_by_its_module() -> None:
    lines = member_lines("torch.nn.Linear", make=linear)

    assert f"self.m = torch.nn.Linear(make={linear.__module__}.linear)" in lines
    assert f"import {linear.__module__}" in lines


def test_long_call_has_a_line_for_each_argument() -> None:
    lines = member_lines("torch.nn.Linear", **{f"argument_{n}": n for n in range(9)})

    assert "self.m = torch.nn.Linear(" in lines
    assert "argument_8=8," in lines


@pytest.mark.parametrize("value", [object(), nn.ReLU(), torch.ones(1)])
def test_argument_without_source_code_is_refused(value: object) -> None:
    with pytest.raises(IllegalGraphError, match=r"torch.nn.Linear: .* has no source code"):
        member_lines("torch.nn.Linear", value=value)


def test_operation_of_no_framework_has_no_source_code() -> None:
    member = ProgramMember(Operation.new("_special"), ("m",))

    with pytest.raises(IllegalGraphError, match="'_special' has no source code"):
        source_of([Program("_model", [], {"m": member}, [], None)])


class Axis(IntEnum):
    ROWS = 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(0.5), "0.5"),
        (np.float32(0.5), "0.5"),
        (np.float64("nan"), "float('nan')"),
        (np.int64(3), "3"),
        (np.bool_(True), "True"),
    ],
)
def test_scalars_of_numpy_are_plain_numbers(value: object, text: str) -> None:
    assert f"self.m = torch.nn.Dropout(p={text})" in member_lines("torch.nn.Dropout", p=value)


def test_member_of_an_enum_is_made_by_its_imported_class() -> None:
    lines = member_lines("torch.nn.Softmax", dim=Axis.ROWS)

    assert f"import {__name__}" in lines
    assert f"self.m = torch.nn.Softmax(dim={__name__}.Axis(1))" in lines
