"""Choices among layers."""

import random
from collections import Counter

import pytest
import torch
from torch import nn

from nni.mutable import SampleMissingError, SampleValidationError
from nni.nas.nn.pytorch import LayerChoice, MutableLinear
from nni.nas.space import model_context
from tests.unit.sdk.nni.nas.space_models import SharedSpace


def listed(**options: object) -> LayerChoice:
    return LayerChoice([nn.ReLU(), nn.Tanh()], label="act", **options)  # type: ignore[arg-type]


def named() -> LayerChoice:
    return LayerChoice({"relu": nn.ReLU(), "tanh": nn.Tanh()}, label="act")


@pytest.mark.claim("nas", 28)
def test_names_of_a_list_are_ints_and_candidates_cannot_be_deleted() -> None:
    choice = listed()

    assert choice.names == [0, 1]
    with pytest.raises(RuntimeError, match="cannot be deleted"):
        del choice[0]


def test_names_of_a_dict_are_its_keys() -> None:
    choice = named()

    assert choice.names == ["relu", "tanh"]
    assert choice["tanh"] is list(choice)[1]


def test_candidates_have_the_form_of_the_argument() -> None:
    assert isinstance(listed().candidates, list)
    assert isinstance(named().candidates, dict)


def test_candidate_can_be_replaced_but_not_added() -> None:
    choice = named()
    choice["tanh"] = nn.GELU()

    assert isinstance(choice.freeze({"act": "tanh"}), nn.GELU)
    with pytest.raises(KeyError, match="no candidate 'gelu'"):
        choice["gelu"] = nn.GELU()


@pytest.mark.parametrize("name", ["0", 2, "relu"])
def test_unknown_name_is_a_key_error(name: object) -> None:
    with pytest.raises(KeyError, match="no candidate"):
        listed()[name]


@pytest.mark.parametrize("name", ["length", "reduction", "return_mask", "_key", "key", "names"])
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="reserved name"):
        LayerChoice({name: nn.ReLU()}, label="act")


def test_name_of_an_attribute_of_modules_is_refused() -> None:
    with pytest.raises(ValueError, match="'forward', which is an attribute of modules"):
        LayerChoice({"forward": nn.ReLU()}, label="act")


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ({1: nn.ReLU()}, "names of candidates must be strings, got 1"),
        ([3], "candidate 0 must be a torch.nn.Module, got 3"),
        (nn.ReLU(), "candidates must be a list of modules or a dict"),
    ],
)
def test_candidates_of_another_type_are_refused(candidates: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        LayerChoice(candidates, label="act")  # type: ignore[arg-type]


def test_empty_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="candidates must not be empty"):
        LayerChoice([], label="act")


def test_weights_are_probabilities_of_random_samples() -> None:
    choice = listed(weights=[0.9, 0.1])
    state = random.Random(0)

    drawn = Counter(choice.random_sample(random_state=state)["act"] for _ in range(400))

    # Binomial(400, 0.9) has the mean 360 and the deviation 6; 5 deviations are allowed.
    assert abs(drawn[0] - 360) <= 30


def test_weights_must_fit_the_candidates() -> None:
    with pytest.raises(ValueError, match="weights"):
        listed(weights=[1.0])


def test_unfrozen_choice_computes_the_first_candidate() -> None:
    inputs = torch.tensor([-1.0, 2.0])

    assert torch.equal(listed()(inputs), torch.relu(inputs))


def test_candidates_may_contain_choices() -> None:
    choice = LayerChoice([listed(), nn.Identity()], label="outer")

    assert list(choice.simplify()) == ["outer", "act"]
    assert isinstance(choice.freeze({"outer": 0, "act": 1}), nn.Tanh)


def test_labels_of_candidates_that_are_not_chosen_may_be_missing() -> None:
    choice = LayerChoice([listed(), nn.Identity()], label="outer")

    assert choice.contains({"outer": 1})
    with pytest.raises(SampleMissingError, match=r"'act'.*in 0 -> act"):
        choice.freeze({"outer": 0})


def test_value_that_is_no_name_is_refused() -> None:
    with pytest.raises(SampleValidationError, match="must be one of"):
        listed().freeze({"act": "0"})


def test_chosen_candidate_with_mutables_is_frozen() -> None:
    from nni.mutable import Categorical

    choice = LayerChoice([MutableLinear(1, Categorical([2, 3], label="width"))], label="layer")

    assert choice.freeze({"layer": 0, "width": 3}).out_features == 3


def test_context_returns_the_chosen_candidate() -> None:
    candidates = [nn.ReLU(), nn.Tanh()]

    with model_context({"act": 1}):
        layer = LayerChoice(candidates, label="act")

    assert layer is candidates[1]


def test_candidates_that_were_built_before_the_context_are_frozen() -> None:
    candidates = [nn.Sequential(listed())]

    with model_context({"outer": 0, "act": 1}):
        layer = LayerChoice(candidates, label="outer")

    assert isinstance(layer[0], nn.Tanh)


def test_parameters_are_named_by_the_candidates() -> None:
    assert "first.1.weight" in SharedSpace().state_dict()


def test_label_and_length() -> None:
    choice = listed()

    assert (choice.label, len(choice), 1 in choice, 2 in choice) == ("act", 2, True, False)
