"""Mutators, and the spaces that they make."""

import random
from typing import Any

import pytest
import torch

from nni.common.serializer import dump, load
from nni.mutable import SampleMissingError
from nni.nas.space import (
    InvalidMutation,
    ModelStatus,
    Mutation,
    MutationSampler,
    Mutator,
    MutatorSequence,
    StationaryMutator,
)
from nni.nas.space.mutator import RandomChoices
from nni.nas.space.pytorch import PytorchGraphModelSpace
from tests.unit.sdk.nni.nas.graph_models import (
    AnchorNet,
    DepthMutator,
    OperationMutator,
    linear,
)

CANDIDATES = [linear(4), linear(5), linear(6)]


class Recording(MutationSampler):
    """Sampler that records what it is asked."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def mutation_start(self, mutator: Mutator, model: Any) -> None:
        self.calls.append(("start", mutator.label, model.status))

    def choice(self, candidates: Any, mutator: Mutator, model: Any, index: int) -> Any:
        self.calls.append((len(candidates), mutator.label, index))
        return candidates[-1]

    def mutation_end(self, mutator: Mutator, model: Any) -> None:
        self.calls.append(("end", mutator.label, model.status))


class TwoChoices(StationaryMutator):
    """Mutator that asks twice, and rejects one pair."""

    def mutate(self, model: Any) -> None:
        first, second = self.choice([1, 2]), self.choice("ab")
        if (first, second) == (2, "b"):
            raise InvalidMutation("2 and b do not go together")


def base(*mutators: Mutator) -> PytorchGraphModelSpace:
    return PytorchGraphModelSpace.from_model(AnchorNet(), mutators=mutators)


def test_sampler_is_asked_between_start_and_end() -> None:
    sampler = Recording()

    mutated = TwoChoices(sampler=sampler, label="two").bind_sampler(sampler)
    with pytest.raises(InvalidMutation, match="do not go together"):
        mutated.apply(base())

    assert sampler.calls == [
        ("start", "two", ModelStatus.Mutating),
        (2, "two", 0),
        (2, "two", 1),
    ]


def test_application_is_recorded_as_parent() -> None:
    space, sampler = base(), Recording()
    mutator = OperationMutator("first", CANDIDATES, label="m").bind_sampler(sampler)

    mutated = mutator.apply(space)

    assert mutated.parent == Mutation(mutator, [CANDIDATES[2]], space, mutated)
    assert mutated.status is ModelStatus.Mutating
    assert sampler.calls[-1] == ("end", "m", ModelStatus.Mutating)


def test_index_of_choices_begins_at_0_in_each_application() -> None:
    sampler = Recording()
    mutator = OperationMutator("first", CANDIDATES, label="m").bind_sampler(sampler)
    mutator.apply(base())
    mutator.apply(base())

    assert [call[2] for call in sampler.calls if call[0] == 3] == [0, 0]


def test_choice_outside_of_an_application_is_refused() -> None:
    with pytest.raises(RuntimeError, match="can be called in mutate only"):
        OperationMutator("first", CANDIDATES).choice([1])


def test_mutator_needs_sampler_and_model() -> None:
    mutator = OperationMutator("first", CANDIDATES, label="m")

    with pytest.raises(RuntimeError, match="'m' has no sampler; call bind_sampler"):
        mutator.apply(base())
    with pytest.raises(RuntimeError, match="works on a model: use"):
        mutator.simplify()


def test_single_choice_has_the_label_of_its_mutator() -> None:
    choices, mutated = OperationMutator("first", CANDIDATES, label="m").dry_run(base())

    assert {label: list(one.values) for label, one in choices.items()} == {"m": CANDIDATES}
    assert mutated.get_nodes_by_label("first")[0].operation == CANDIDATES[0]


def test_several_choices_are_numbered() -> None:
    with TwoChoices(label="two").bind_model(base()) as mutator:
        assert list(mutator.simplify()) == ["two/0", "two/1"]
        assert mutator.freeze({"two/0": 2, "two/1": "a"}).parent.samples == [2, "a"]


@pytest.mark.claim("nas", 37)
def test_mutator_of_three_candidates_makes_three_models() -> None:
    space = base(OperationMutator("first", CANDIDATES, label="m"))

    models = list(space.grid())

    widths = [model.get_nodes_by_label("first")[0].operation.params for model in models]
    assert [one["out_features"] for one in widths] == [4, 5, 6]


def test_invalid_mutations_are_no_part_of_the_grid() -> None:
    space = base(TwoChoices(label="two"))

    assert [model.sample for model in space.grid()] == [
        *({"two/0": first, "two/1": second} for first, second in ((1, "a"), (1, "b"), (2, "a")))
    ]
    with pytest.raises(InvalidMutation):
        space.freeze({"two/0": 2, "two/1": "b"})


@pytest.mark.parametrize(
    ("sample", "error", "text"),
    [
        ({}, SampleMissingError, "no value for label 'two'"),
        ({"two/0": 1}, SampleMissingError, "no value for label 'two/1'"),
        ({"two/0": 3, "two/1": "a"}, InvalidMutation, "must be one of"),
    ],
)
def test_wrong_sample_is_refused(sample: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        base(TwoChoices(label="two")).freeze(sample)


def test_mutators_without_a_label_are_numbered_in_their_sequence() -> None:
    space = base(OperationMutator("first", CANDIDATES), OperationMutator("second", CANDIDATES))

    assert list(space.simplify()) == ["mutation_1", "mutation_2"]


def test_each_mutator_sees_the_result_of_the_one_before() -> None:
    class Remove(StationaryMutator):
        def mutate(self, model: Any) -> None:
            self.choice([len(model.get_nodes_by_label("first"))])
            for node in model.get_nodes_by_label("first"):
                node.update_label(None)

    space = base(Remove(label="one"), Remove(label="two"))

    assert space.default_sample() == {"one": 1, "two": 0}


def test_sequence_takes_mutators_only() -> None:
    with pytest.raises(TypeError, match="must be objects of subclasses of Mutator"):
        MutatorSequence([3])  # type: ignore[list-item]  # that is the test
    assert len(MutatorSequence([TwoChoices()])) == 1


def test_value_of_a_mutator_that_is_not_stationary_is_a_sampler() -> None:
    space = base(DepthMutator(label="depth"))

    sample = space.random_sample(random_state=random.Random(1))

    assert isinstance(sample["depth"], RandomChoices)
    assert space.freeze(sample).to_code() == space.freeze(sample).to_code()
    assert load(dump(space.freeze(sample))).sample == sample


def test_random_samplers_choose_differently() -> None:
    space = base(DepthMutator(label="depth"))
    counts = {len(space.random(random_state=random.Random(seed)).get_nodes()) for seed in range(20)}

    assert counts == {2, 3, 4}


def test_choices_that_depend_on_each_other_cannot_be_enumerated() -> None:
    with pytest.raises(ValueError, match="derive it from StationaryMutator"):
        list(base(DepthMutator(label="depth")).grid())


def test_default_of_a_mutator_takes_the_first_candidates() -> None:
    model = base(DepthMutator(label="depth")).default()

    assert len(model.get_nodes()) == 2


def test_wrong_value_of_a_mutator_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a MutationSampler, got 3"):
        base(DepthMutator(label="depth")).freeze({"depth": 3})


def test_mutated_network_computes() -> None:
    space = base(OperationMutator("first", CANDIDATES[:1], label="m"))

    network = space.freeze({"m": CANDIDATES[0]}).executable_model()

    assert network(torch.ones(2, 4)).shape == (2, 4)


def test_candidates_that_a_dry_run_records_are_lists() -> None:
    candidates, model = DepthMutator(label="depth").dry_run(base())

    assert candidates == [[0, 1, 2]]
    assert len(model.get_nodes()) == 2
