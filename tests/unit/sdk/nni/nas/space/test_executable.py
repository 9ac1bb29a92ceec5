"""What all formats of executable models do."""

import copy
import gc

import pytest
from torch import nn

from nni.mutable import SampleMissingError
from nni.nas.space import (
    ExecutableModelSpace,
    ModelStatus,
    RawFormatModelSpace,
    SimplifiedModelSpace,
)
from tests.unit.sdk.nni.nas.space_models import RateEvaluator, TinySpace, WeightSum

FORMATS = [RawFormatModelSpace, SimplifiedModelSpace]
SAMPLE = {"tiny/width": 16, "tiny/activation": "tanh", "tiny/head": 0}

every_format = pytest.mark.parametrize("kind", FORMATS)


@every_format
def test_frozen_model_knows_its_sample_and_status(kind: type[ExecutableModelSpace]) -> None:
    space = kind.from_model(TinySpace())

    model = space.freeze(SAMPLE)

    assert (model.sample, model.status) == (SAMPLE, "frozen")
    assert (space.sample, space.status) == (None, "initialized")
    assert model.simplify() == {}


@every_format
def test_executable_model_is_the_network_of_the_sample(kind: type[ExecutableModelSpace]) -> None:
    network = kind.from_model(TinySpace()).freeze(SAMPLE).executable_model()

    assert network.hidden.out_features == 16
    assert isinstance(network.activation, nn.Tanh)
    assert isinstance(network.head, nn.Linear)


@every_format
def test_network_is_the_same_while_in_use_and_not_held(kind: type[ExecutableModelSpace]) -> None:
    model = kind.from_model(TinySpace()).freeze(SAMPLE)

    network = model.executable_model()

    assert model.executable_model() is network
    del network
    gc.collect()
    assert model._built is not None
    assert model._built() is None


@every_format
def test_frozen_model_cannot_be_frozen_again(kind: type[ExecutableModelSpace]) -> None:
    model = kind.from_model(TinySpace()).freeze(SAMPLE)

    with pytest.raises(RuntimeError, match="this one is frozen"):
        model.freeze(SAMPLE)


@every_format
def test_incomplete_sample_is_refused_at_once(kind: type[ExecutableModelSpace]) -> None:
    space = kind.from_model(TinySpace())

    with pytest.raises(SampleMissingError, match="tiny/width"):
        space.freeze({"tiny/activation": "relu"})


@every_format
def test_sample_is_copied(kind: type[ExecutableModelSpace]) -> None:
    sample = dict(SAMPLE)
    model = kind.from_model(TinySpace()).freeze(sample)

    sample["tiny/width"] = 8

    assert model.sample == SAMPLE


@every_format
def test_dimensions_of_the_evaluator_are_part_of_the_space(
    kind: type[ExecutableModelSpace],
) -> None:
    space = kind.from_model(TinySpace(), RateEvaluator())

    model = space.freeze({**SAMPLE, "rate": 0.2})

    assert list(space.simplify())[-1] == "rate"
    assert model.execute() == 0.2


@every_format
def test_sample_without_the_dimension_of_the_evaluator_is_refused(
    kind: type[ExecutableModelSpace],
) -> None:
    space = kind.from_model(TinySpace(), RateEvaluator())

    with pytest.raises(SampleMissingError, match=r"'rate'.*in evaluator"):
        space.freeze(SAMPLE)


@every_format
def test_execution_needs_an_evaluator(kind: type[ExecutableModelSpace]) -> None:
    model = kind.from_model(TinySpace()).freeze(SAMPLE)

    with pytest.raises(ValueError, match="without an evaluator"):
        model.execute()


@every_format
def test_execution_returns_what_the_evaluator_returns(kind: type[ExecutableModelSpace]) -> None:
    model = kind.from_model(TinySpace(), WeightSum()).freeze(SAMPLE)

    assert isinstance(model.execute(), float)


@every_format
def test_options_of_other_formats_are_refused(kind: type[ExecutableModelSpace]) -> None:
    with pytest.raises(TypeError, match="has no options, got dummy_input"):
        kind.from_model(TinySpace(), dummy_input=[1, 4])


@every_format
def test_random_models_repeat_with_their_generator(kind: type[ExecutableModelSpace]) -> None:
    import random

    space = kind.from_model(TinySpace())

    samples = [space.random(random_state=random.Random(3)).sample for _ in range(2)]

    assert samples[0] == samples[1]
    assert sorted(samples[0] or {}) == sorted(SAMPLE)


@every_format
def test_grid_yields_every_model(kind: type[ExecutableModelSpace]) -> None:
    models = list(kind.from_model(TinySpace()).grid())

    assert len({str(model.sample) for model in models}) == 12


def test_status_is_set_by_name_and_checked() -> None:
    model = RawFormatModelSpace(TinySpace()).freeze(SAMPLE)

    model.status = "training"

    assert model.status is ModelStatus.Training
    with pytest.raises(ValueError, match="started"):
        model.status = "started"


def test_metric_is_the_final_one() -> None:
    model = RawFormatModelSpace(TinySpace()).freeze(SAMPLE)

    model.metrics.final = 0.5

    assert model.metric == 0.5


@every_format
def test_deep_copy_is_evaluated_on_its_own(kind: type[ExecutableModelSpace]) -> None:
    model = kind.from_model(TinySpace()).freeze(SAMPLE)
    network = model.executable_model()

    copied = copy.deepcopy(model)
    copied.metrics.final = 1.0

    assert model.metric is None
    assert copied.sample == model.sample
    assert copied.executable_model() is not network


@every_format
def test_result_of_one_network_is_its_metric(kind: type[ExecutableModelSpace]) -> None:
    model = kind.from_model(TinySpace()).freeze(SAMPLE)

    assert model.take_result({"default": 1, "size": 3}) == {"default": 1, "size": 3}
    assert model.sample == SAMPLE


def test_text_shows_sample_and_metric() -> None:
    model = RawFormatModelSpace(TinySpace()).freeze(SAMPLE)
    model.metrics.final = 1

    assert repr(model) == (f"RawFormatModelSpace(status='frozen', sample={SAMPLE!r}, metric=1.0)")
