"""Shortcuts of `nni` take the label first."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

import nni
from nni.mutable import Categorical, Mutable, Numerical, label_scope


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (nni.choice("x", [1, 2]), Categorical([1, 2], label="x")),
        (nni.choice(label="x", choices="ab"), Categorical("ab", label="x")),
        (nni.uniform("x", 0, 1), Numerical(0, 1, label="x")),
        (nni.quniform("x", 0, 8, 2), Numerical(0, 8, quantize=2, label="x")),
        (nni.loguniform("x", 1, 8), Numerical(1, 8, log_distributed=True, label="x")),
        (
            nni.qloguniform("x", 1, 8, 2),
            Numerical(1, 8, log_distributed=True, quantize=2, label="x"),
        ),
        (nni.normal("x", 1, 2), Numerical(mu=1, sigma=2, label="x")),
        (nni.qnormal("x", 1, 2, 0.5), Numerical(mu=1, sigma=2, quantize=0.5, label="x")),
    ],
)
def test_shortcut_makes_a_mutable(made: Mutable, expected: Mutable) -> None:
    assert made.equals(expected)


def test_shortcut_is_placed_in_the_scope() -> None:
    with label_scope("model"):
        assert nni.choice("x", [1]).label == "model/x"


@pytest.mark.claim("nas", 22)
@pytest.mark.parametrize("label", ["a/b", ""])
def test_invalid_label_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match="label must not be empty or contain '/'"):
        nni.choice(label, [1])


def test_integers_by_conversion() -> None:
    assert list(nni.quniform("x", 2, 4, 1).int().grid(granularity=3)) == [2, 3, 4]


def test_logarithmic_scale_begins_above_zero() -> None:
    with pytest.raises(ValueError, match="low must be > 0"):
        nni.loguniform("x", 0, 1)


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "shown"),
    [
        ("choice", [1, 2, 3], {"name": "x"}, "got nni.choice(1, 2, 3, name='x')"),
        ("choice", [[1, 2], "x"], {}, "got nni.choice([1, 2], 'x')"),
        ("uniform", [0, 1], {}, "got nni.uniform(0, 1)"),
        ("uniform", [0, 1], {"name": "rate"}, "nni.uniform('width', ...)"),
        ("qnormal", ["a", 1, 2], {"name": "rate"}, "name='rate'"),
    ],
)
def test_form_of_an_annotation_is_explained(
    name: str, args: list[Any], kwargs: dict[str, Any], shown: str
) -> None:
    with pytest.raises(TypeError, match="takes a label first") as raised:
        getattr(nni, name)(*args, **kwargs)

    assert shown in str(raised.value)
    assert f"'''@nni.variable(nni.{name}(" in str(raised.value)


def test_tensors_are_refused() -> None:
    with pytest.raises(TypeError, match="choices must not be tensors, got one at position 1"):
        nni.choice("x", [1, torch.zeros(2)])


def test_modules_and_values_do_not_mix() -> None:
    with pytest.raises(TypeError, match="must be modules all or none, got 1 modules of 2"):
        nni.choice("x", [nn.Identity(), 3])


def test_values_by_name_are_refused() -> None:
    with pytest.raises(TypeError, match="choices by name must be modules"):
        nni.choice("x", {"a": 1})


def test_values_need_no_torch() -> None:
    code = (
        "import sys, nni; nni.choice('x', [1, 2]).random(); import nni.mutable;"
        "assert not {'torch', 'numpy'} & set(sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stderr == ""
