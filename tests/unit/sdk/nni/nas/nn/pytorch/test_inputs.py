"""Choices among tensors."""

import pytest
import torch
from torch import Tensor

from nni.mutable import SampleValidationError
from nni.nas.nn.pytorch import ChosenInputs, InputChoice, ReductionType
from nni.nas.space import model_context


def tensors() -> list[Tensor]:
    return [torch.full((2, 3), float(value)) for value in (1, 2, 4)]


@pytest.mark.claim("nas", 29)
def test_numbers_of_grid_points() -> None:
    pairs = InputChoice(3, 2, label="pair")
    subsets = InputChoice(3, None, label="any")

    assert (len(list(pairs.grid())), len(list(subsets.grid()))) == (3, 8)


@pytest.mark.claim("nas", 30)
def test_nothing_chosen_is_none_and_concat_joins_dimension_1() -> None:
    assert ChosenInputs([], "sum")(tensors()) is None
    assert ChosenInputs([0, 2], "concat")(tensors()).shape == (2, 6)


@pytest.mark.parametrize(("reduction", "value"), [("sum", 6.0), ("mean", 3.0)])
def test_chosen_tensors_are_reduced(reduction: ReductionType, value: float) -> None:
    output = ChosenInputs([1, 2], reduction)(tensors())

    assert torch.equal(output, torch.full((2, 3), value))


def test_without_reduction_the_chosen_tensors_are_a_list() -> None:
    inputs = tensors()

    assert [id(one) for one in ChosenInputs([2], "none")(inputs)] == [id(inputs[2])]


@pytest.mark.parametrize("reduction", ["sum", "mean", "concat"])
def test_single_tensor_is_returned_as_it_is(reduction: ReductionType) -> None:
    inputs = tensors()

    assert ChosenInputs(1, reduction)(inputs) is inputs[1]


def test_unknown_reduction_is_refused() -> None:
    with pytest.raises(ValueError, match=r"reduction must be one of .*, got 'max'"):
        ChosenInputs([0], "max")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"reduction must be one of .*, got 'max'"):
        InputChoice(2, reduction="max", label="in")  # type: ignore[arg-type]


def test_number_of_candidates_is_required() -> None:
    with pytest.raises(TypeError, match="n_candidates must be the number of tensors"):
        InputChoice(None, label="in")  # type: ignore[arg-type]


@pytest.mark.parametrize("n_chosen", [0, 4])
def test_number_of_chosen_tensors_is_checked(n_chosen: int) -> None:
    with pytest.raises(ValueError, match="n_chosen"):
        InputChoice(3, n_chosen, label="in")


def test_unfrozen_choice_reduces_the_first_tensors() -> None:
    output = InputChoice(3, 2, label="in")(tensors())

    assert torch.equal(output, torch.full((2, 3), 3.0))


@pytest.mark.parametrize("frozen", [False, True])
def test_wrong_number_of_tensors_is_refused(frozen: bool) -> None:
    choice = InputChoice(2, label="in")
    module = choice.freeze({"in": [0]}) if frozen else choice

    with pytest.raises(ValueError, match="candidate_inputs must be 2 tensors, got 3"):
        module(tensors())


def test_value_in_a_sample_is_a_list() -> None:
    choice = InputChoice(3, label="in")

    assert choice.default_sample() == {"in": [0]}
    with pytest.raises(SampleValidationError):
        choice.freeze({"in": 0})


def test_context_returns_the_chosen_inputs() -> None:
    with model_context({"in": [1, 2]}):
        module: object = InputChoice(3, 2, "mean", label="in")

    assert isinstance(module, ChosenInputs)
    assert (module.chosen, module.reduction) == ([1, 2], "mean")


def test_text_shows_the_choice() -> None:
    assert repr(InputChoice(3, label="in")) == (
        "InputChoice(3, n_chosen=1, reduction='sum', label='in')"
    )


def test_chosen_inputs_are_in_the_mode_of_the_choice() -> None:
    frozen = InputChoice(2, label="input").eval().freeze({"input": [1]})

    assert not frozen.training
