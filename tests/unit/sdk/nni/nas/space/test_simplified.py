"""The format that travels to another process."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from nni.common.serializer import dump, load
from nni.nas.nn.pytorch import LayerChoice
from nni.nas.space import SimplifiedModelSpace
from tests.unit.sdk.nni.nas.space_models import PairSpace, TinySpace, ValueSpace, WeightSum

ROOT = Path(__file__).parents[6]
SAMPLE = {"tiny/width": 16, "tiny/activation": "tanh", "tiny/head": 0}

WORKER = """
import sys
from nni.common.serializer import load

model = load(sys.stdin.read())
network = model.executable_model()
print(model.status, model.sample, network.hidden, network.activation, sep="|")
"""


def test_frozen_model_is_rebuilt_in_another_process() -> None:
    text = dump(SimplifiedModelSpace.from_model(TinySpace(inputs=3)).freeze(SAMPLE))

    done = subprocess.run(
        [sys.executable, "-c", WORKER],
        input=text,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip().split("|") == [
        "frozen",
        str(SAMPLE),
        "Linear(in_features=3, out_features=16, bias=True)",
        "Tanh()",
    ]


def test_dump_of_a_model_is_small() -> None:
    text = dump(SimplifiedModelSpace.from_model(TinySpace()).freeze(SAMPLE))

    assert len(text) < 500


def test_loaded_space_has_the_same_dimensions() -> None:
    space = SimplifiedModelSpace.from_model(TinySpace())

    loaded = load(dump(space))

    assert list(loaded.simplify()) == list(space.simplify())
    assert all(loaded.simplify()[label].equals(leaf) for label, leaf in space.simplify().items())
    assert dump(loaded) == dump(space)


def test_status_and_metrics_survive_a_dump() -> None:
    model = SimplifiedModelSpace.from_model(TinySpace()).freeze(SAMPLE)
    model.status = "trained"
    model.metrics.add_intermediate(0.25)
    model.metrics.final = 0.5

    loaded = load(dump(model))

    assert (loaded.status, loaded.metric, loaded.metrics) == ("trained", 0.5, model.metrics)


def test_evaluator_travels_with_the_model() -> None:
    model = SimplifiedModelSpace.from_model(TinySpace(), WeightSum()).freeze(SAMPLE)

    assert isinstance(load(dump(model)).execute(), float)


def test_tuples_of_a_sample_survive_a_dump() -> None:
    model = SimplifiedModelSpace.from_model(PairSpace()).freeze({"kernel": (3, 1)})

    loaded = load(dump(model))

    assert loaded.sample == {"kernel": (3, 1)}
    assert loaded.executable_model().size == (3, 1)


def test_tuples_of_a_dump_by_an_earlier_version_are_read() -> None:
    model = SimplifiedModelSpace.from_model(PairSpace()).freeze({"kernel": (3, 1)})
    earlier = dump(model).replace("__tuple__", "__nni_tuple__")

    loaded = load(earlier)

    assert earlier != dump(model)
    assert loaded.sample == {"kernel": (3, 1)}


def test_each_network_has_fresh_weights() -> None:
    model = SimplifiedModelSpace.from_model(TinySpace()).freeze(SAMPLE)

    first, second = model.build_model(), model.build_model()

    assert not torch.equal(first.hidden.weight, second.hidden.weight)


def test_unfrozen_space_is_constructed_anew() -> None:
    space = TinySpace()

    built = SimplifiedModelSpace.from_model(space).executable_model()

    assert built is not space
    assert list(built.simplify()) == list(space.simplify())


@pytest.mark.parametrize("model", [nn.Linear(1, 1), LayerChoice([nn.ReLU()], label="one")])
def test_module_without_a_recorded_construction_is_refused(model: nn.Module) -> None:
    with pytest.raises(TypeError, match="model_space must be a ModelSpace"):
        SimplifiedModelSpace.from_model(model)


@pytest.mark.parametrize("value", [{"size": (3, 1)}, {1: 3}, [(3, {2: (1,)})]])
def test_values_in_dicts_and_their_keys_survive_a_dump(value: object) -> None:
    model = SimplifiedModelSpace.from_model(ValueSpace([value, None])).freeze({"value": value})

    loaded = load(dump(model))

    assert loaded.sample == {"value": value}
    assert loaded.executable_model().value == value


def test_arguments_of_the_model_survive_a_dump() -> None:
    values = [{1: (3, 3)}, (1,)]

    loaded = load(dump(SimplifiedModelSpace.from_model(ValueSpace(values))))

    assert loaded.model_kwargs == {"values": values}
