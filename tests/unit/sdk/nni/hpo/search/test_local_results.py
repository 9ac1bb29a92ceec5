"""Results of studies in one process, whatever trials they have."""

from threading import Lock

import pytest

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import objectives_of
from nni.hpo.search.local_results import LocalResults
from nni.hpo.search.outcomes import Outcomes, StudyTrial


class Told(LocalResults):
    """Results that were told in order."""

    def __init__(self, values: list[JsonValue], modes: str | dict[str, str] = "minimize") -> None:
        self._lock = Lock()
        self._outcomes = Outcomes(objectives_of(modes, None))
        for number, value in enumerate(values):
            self._outcomes.add(StudyTrial(number, {"x": number}), value)


def test_incumbent_is_the_first_of_the_best_finite_results() -> None:
    told = Told([3.0, float("nan"), 1.0, 1.0])

    assert (told.best_value, told.best_trial.id, told.best_parameters) == (1.0, 2, {"x": 2})
    assert [point.trial.id for point in told.pareto_front] == [2, 3]


def test_results_are_a_list_of_their_own_in_the_order_of_tell() -> None:
    told = Told([3.0, 1.0])

    told.results.clear()

    assert [(trial.id, value) for trial, value in told.results] == [(0, 3.0), (1, 1.0)]


def test_several_objectives_have_a_front_and_no_best_value() -> None:
    told = Told([{"a": 1, "b": 2}, {"a": 2, "b": 1}], {"a": "minimize", "b": "maximize"})

    assert [point.trial.id for point in told.pareto_front] == [0]
    with pytest.raises(ValueError, match="several objectives"):
        _ = told.best_value


@pytest.mark.parametrize("name", ["best_value", "best_trial", "best_parameters"])
def test_without_a_result_there_is_no_incumbent(name: str) -> None:
    told = Told([])

    with pytest.raises(ValueError, match="no "):
        getattr(told, name)
    assert (told.results, told.pareto_front) == ([], [])
