import logging
from typing import Any

import pytest

from nni.mutable import Categorical, Sample, SampleValidationError
from nni.nas.execution import ExecutionEngine
from nni.nas.space import RawFormatModelSpace
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.strategy.drawing import DrawingStrategy
from nni.testing.strategies import SimulatedEngine, TableSpace


class Scripted(DrawingStrategy):
    """Draws given values in turn, then the last one for ever; None does not fit the space."""

    def __init__(self, *values: int | None, dedup: bool = True) -> None:
        super().__init__(dedup=dedup, seed=0)
        self.values = list(values)

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        self._open.forget_ended(engine)
        return model_space

    def _draw(self) -> Sample:
        value = self.values.pop(0) if len(self.values) > 1 else self.values[0]
        if value is None:
            raise SampleValidationError("no value")
        return {"a": value}

    def _own_state(self) -> dict[str, Any]:
        return {"left": len(self.values)}


def searched(strategy: DrawingStrategy, budget: int = 10) -> list[int]:
    """Return the values of the models that a strategy submits."""
    space = TableSpace(Categorical(range(5), label="a"))
    engine = SimulatedEngine(lambda sample: float(sample["a"]), budget)
    strategy(RawFormatModelSpace(space), engine)
    return [sample["a"] for sample in engine.samples]


def test_duplicates_are_drawn_again() -> None:
    assert searched(Scripted(1, 1, 3, 1, 2)) == [1, 3, 2]


def test_duplicates_are_submitted_without_deduplication() -> None:
    assert searched(Scripted(1, 1, 2, dedup=False), budget=4) == [1, 1, 2, 2]


def test_draws_that_do_not_fit_are_repeated() -> None:
    assert searched(Scripted(None, 4, None, 0)) == [4, 0]


def test_end_is_logged_with_the_name_of_the_strategy(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "nni.nas.strategy.drawing"):
        searched(Scripted(1))

    assert "Scripted ends: no new model was found" in caplog.messages


def test_state_has_what_a_subclass_adds() -> None:
    strategy = Scripted(1, 2)
    searched(strategy)

    state = strategy.state_dict()

    assert sorted(state) == ["dedup_history", "left", "random_state"]


def test_models_of_a_restored_state_are_not_drawn_again() -> None:
    first = Scripted(1, 2)
    searched(first)
    second = Scripted(2, 1, 3)
    second.load_state_dict(first.state_dict())

    assert searched(second) == [3]
