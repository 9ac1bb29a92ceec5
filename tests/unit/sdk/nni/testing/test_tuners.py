"""The shipped suite finds the faults it is for."""

from typing import Any, ClassVar

import pytest

from nni.hpo import NoMoreTrialError, RandomTuner, Tuner
from nni.hpo.json_value import JsonValue
from nni.testing import TunerConformance


class Suite(TunerConformance):
    """A suite with a tuner that is changed by each test."""

    __test__ = False
    search_space: ClassVar[JsonValue] = {"x": {"_type": "uniform", "_value": [0, 1]}}

    def __init__(self, tuner: type[Tuner]) -> None:
        self.tuner = tuner

    def make(self, seed: int) -> Tuner:
        return self.tuner(seed=seed)  # type: ignore[call-arg] # all of these take one


class Outside(RandomTuner):
    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, Any]:
        return {"x": 1.5}


class Unseeded(RandomTuner):
    def __init__(self, seed: int) -> None:
        super().__init__(seed=None)


class Tuples(RandomTuner):
    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, Any]:
        return {"x": (0.5,)}


class Fragile(RandomTuner):
    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: object
    ) -> None:
        int(value["default"] if isinstance(value, dict) else value)


class Forgetful(RandomTuner):
    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        pass


class Short(RandomTuner):
    count = 0

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, Any]:
        self.count += 1
        if self.count > 3:
            raise NoMoreTrialError
        return {"x": self.count / 10}


@pytest.mark.parametrize(
    ("tuner", "test"),
    [
        (Outside, "test_configurations_lie_in_the_space"),
        (Unseeded, "test_same_seed_and_calls_give_the_same_configurations"),
        (Tuples, "test_configurations_are_plain_json_values"),
        (Fragile, "test_survives_metrics_that_are_no_numbers"),
        (Forgetful, "test_goes_on_from_its_state"),
        (Short, "test_serves_several_open_trials_that_end_in_any_order"),
    ],
)
def test_faulty_tuner_fails_the_test_for_its_fault(tuner: type[Tuner], test: str) -> None:
    sound, faulty = Suite(RandomTuner), Suite(tuner)

    getattr(sound, test)()
    with pytest.raises((AssertionError, ValueError, TypeError)):
        getattr(faulty, test)()
