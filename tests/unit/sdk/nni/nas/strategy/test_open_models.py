from nni.nas.execution import TrainingEndEvent
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.open_models import OpenModels
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import frozen


def test_models_are_distinguished_by_identity() -> None:
    first, second = frozen(1), frozen(1)
    models: OpenModels[str] = OpenModels()
    models.add(first, "first")
    models.add(second, "second")

    value = models.end(TrainingEndEvent(second, ModelStatus.Trained))

    assert (value, models.values(), len(models)) == ("second", ["first"], 1)


def test_end_of_an_unknown_model_is_ignored() -> None:
    models: OpenModels[str] = OpenModels()

    assert models.end(TrainingEndEvent(frozen(), ModelStatus.Trained)) is None


def test_interrupted_model_without_a_metric_stays_open() -> None:
    model, models = frozen(), OpenModels[str]()
    models.add(model, "value")

    assert models.end(TrainingEndEvent(model, ModelStatus.Interrupted)) is None
    assert models.values() == ["value"]


def test_interrupted_model_with_a_metric_has_ended() -> None:
    model, models = frozen(), OpenModels[str]()
    models.add(model, "value")
    model.metrics.final = 1

    assert models.end(TrainingEndEvent(model, ModelStatus.Interrupted)) == "value"


def test_ended_models_of_an_engine_are_forgotten() -> None:
    models, engine = OpenModels[str](), SimulatedEngine(lambda _sample: 1.0)
    models.forget_ended(engine)
    model = frozen()
    models.add(model, "value")

    engine.submit_models(model)

    assert len(models) == 0
