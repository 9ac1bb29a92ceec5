import json

import pytest

from nni.mutable import Categorical, CategoricalMultiple, LabeledMutable, Numerical
from nni.nas.space import MutationSampler
from nni.nas.space.mutator import FirstChoices, RandomChoices
from nni.nas.strategy.sample_codec import SampleCodec, position
from tests.unit.sdk.nni.nas.graph_models import DepthMutator

LEAVES: dict[str, LabeledMutable] = {
    "op": Categorical([int, (1, 2), "max"], label="op"),
    "inputs": CategoricalMultiple([int, float, str], n_chosen=2, label="inputs"),
    "rate": Numerical(0, 1, label="rate"),
}
SAMPLE = {"op": (1, 2), "inputs": [int, str], "rate": 0.25}


def test_samples_survive_as_json() -> None:
    codec = SampleCodec(LEAVES)

    assert codec.decode(json.loads(json.dumps(codec.encode(SAMPLE)))) == SAMPLE


def test_labels_of_other_spaces_are_left_out() -> None:
    assert SampleCodec({"rate": LEAVES["rate"]}).encode(SAMPLE) == {"rate": 0.25}


def test_states_of_other_spaces_are_refused() -> None:
    with pytest.raises(ValueError, match="the state is of another space: it has no 'depth'"):
        SampleCodec(LEAVES).decode({"depth": 1})
    with pytest.raises(ValueError, match="'op' has 3 choices, not 4; resume with the space"):
        SampleCodec(LEAVES).decode({"op": 3})


def test_position_prefers_the_same_object_then_the_same_type() -> None:
    assert position([1, True, 1.0], True) == 1
    assert position([1, 1.0], 1.0) == 1
    assert position(["a", 2.0], 2) == 1


@pytest.mark.parametrize("sampler", [FirstChoices(), RandomChoices(7)])
def test_samplers_of_a_mutator_become_plain_values(sampler: MutationSampler) -> None:
    codec = SampleCodec({"grow": DepthMutator(label="grow")})

    encoded = codec.encode({"grow": sampler})

    assert isinstance(encoded["grow"], int | None)
    assert codec.decode(encoded) == {"grow": sampler}
