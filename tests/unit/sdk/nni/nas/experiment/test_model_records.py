import pytest

from nni.nas.experiment.model_records import models_of, record_of
from nni.nas.space import ModelStatus
from nni.nas.strategy.sample_codec import SampleCodec
from tests.support.architecture_search import digits


def test_models_survive_as_records() -> None:
    space = digits(5)
    model = space.freeze({"a": 3})
    model.metrics.add_intermediate(0.5)
    model.metrics.final = 2
    codec = SampleCodec(space.simplify())

    (restored,) = models_of([record_of(model, codec, ModelStatus.Trained)], space)

    assert (restored.sample, restored.metrics) == (model.sample, model.metrics)
    assert restored.status is ModelStatus.Trained


def test_model_without_a_metric_has_none_afterwards() -> None:
    space = digits(5)
    model = space.freeze({"a": 3})
    model.status = ModelStatus.Failed

    (restored,) = models_of([record_of(model, SampleCodec(space.simplify()))], space)

    assert (restored.metric, restored.status) == (None, ModelStatus.Failed)


def test_records_of_another_space_are_refused() -> None:
    model = digits(5).freeze({"a": 4})
    record = record_of(model, SampleCodec(digits(5).simplify()))

    with pytest.raises(ValueError, match="the state is of another space"):
        models_of([record], digits(3))
