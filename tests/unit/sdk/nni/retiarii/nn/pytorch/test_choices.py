"""Choices with the arguments of NNI 2.x."""

import pytest
from torch import nn

import nni.retiarii.nn.pytorch as legacy

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def layer_choice() -> legacy.LayerChoice:
    return legacy.LayerChoice([nn.ReLU(), nn.Tanh(), nn.Sigmoid()], label="layer")


def test_names_of_listed_layers_are_strings() -> None:
    choice = layer_choice()

    assert choice.names == ["0", "1", "2"]
    assert choice[1] is choice["1"]
    assert isinstance(choice.freeze({"layer": "2"}), nn.Sigmoid)


def test_deleted_layer_is_no_value_any_more() -> None:
    choice = layer_choice()

    del choice[0]

    assert choice.names == ["1", "2"]
    assert [sample["layer"] for sample in map(dict, choice_samples(choice))] == ["1", "2"]
    assert isinstance(choice(nn.Parameter()), type(nn.Parameter().data))


def choice_samples(choice: legacy.LayerChoice) -> list[dict[str, object]]:
    return [{"layer": name} for name in ("0", "1", "2") if choice.contains({"layer": name})]


def test_probabilities_of_layers_that_are_left_have_the_sum_1() -> None:
    choice = legacy.LayerChoice([nn.ReLU(), nn.Tanh()], prior=[0.25, 0.75], label="layer")

    del choice["0"]

    assert choice.choice.weights == [1]


def test_last_layer_is_not_deleted() -> None:
    choice = legacy.LayerChoice([nn.ReLU()], label="layer")

    with pytest.raises(ValueError, match="the last candidate of 'layer'"):
        del choice[0]


def test_replaced_layer_is_the_candidate() -> None:
    choice = layer_choice()

    choice[0] = nn.GELU()

    assert isinstance(choice.freeze({"layer": "0"}), nn.GELU)


@pytest.mark.parametrize("value", [1, [1]])
def test_one_chosen_input_is_a_position_or_a_list(value: object) -> None:
    choice = legacy.InputChoice(3, label="input")

    assert choice.contains({"input": value})
    assert choice.freeze({"input": value}).chosen == [1]


def test_value_outside_a_network_is_the_default() -> None:
    assert legacy.ValueChoice([3, 5], label="value")() == 3


def test_placeholder_has_label_and_information() -> None:
    anchor = legacy.Placeholder("block", channels=3)

    assert (anchor.label, anchor.info) == ("block", {"channels": 3})


def test_deprecated_attributes_of_a_layer_choice_are_its_candidates() -> None:
    choice = layer_choice()

    assert (choice.choices, choice.length) == (list(choice), 3)


def test_arguments_of_nas_1_have_no_effect() -> None:
    layer = legacy.LayerChoice([nn.ReLU()], label="layer", return_mask=True, reduction="sum")
    inputs = legacy.InputChoice(2, label="input", choose_from=["a", "b"], key="old")

    assert (layer.label, inputs.label) == ("layer", "input")


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="LayerChoice got an unexpected keyword argument 'weights'"):
        legacy.LayerChoice([nn.ReLU()], weights=[1.0])
    with pytest.raises(TypeError, match="InputChoice got an unexpected keyword argument 'weights'"):
        legacy.InputChoice(2, weights=[1.0, 1.0])
