"""When parameters are learnt anew and what becomes of them; what both kinds of process do alike."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.gp_model import LearntProcess
from nni.hpo.models.gp_regression import Blend
from nni.hpo.models.matern import Matern
from nni.hpo.models.surrogate import Surrogate
from nni.hpo.models.tree_model import TreeModel


@dataclass(frozen=True, slots=True)
class Kept:
    """The parameters and results that a process was made of."""

    parameters: Floats
    targets: Floats

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Return 7 and 1 everywhere."""
        return np.full(len(points), 7.0), np.ones(len(points))


class Counted(LearntProcess[Kept]):
    """Two lengths, a noise and one more; each search adds 1 to where it starts."""

    added: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__()
        self.searches: list[list[list[float]]] = []

    def _process(self, rows: Floats, targets: Floats, parameters: Floats) -> Kept:
        return Kept(parameters, targets)

    def _first(self, columns: int) -> Floats:
        return np.zeros(columns + 2)

    def _search(
        self, rows: Floats, targets: Floats, starts: list[Floats], evaluations: int
    ) -> Floats:
        self.searches.append([start.tolist() for start in starts])
        return starts[0] + 1.0


def told(process: Counted, count: int) -> Kept:
    rows, targets = np.zeros((count, 2)), np.arange(float(count))
    return process.believe_in(rows, targets, np.arange(count), count).model


def test_parameters_are_learnt_anew_when_there_are_two_percent_more_results() -> None:
    process = Counted()

    for count in (100, 101, 102, 103, 104):
        told(process, count)

    assert len(process.searches) == 2


def test_search_starts_afresh_as_well_while_results_are_few() -> None:
    few, many = Counted(), Counted()

    for process, counts in ((few, (39, 40)), (many, (40, 41))):
        for count in counts:
            told(process, count)

    assert few.searches == [[[0.0] * 4], [[1.0] * 4, [0.0] * 4]]
    assert many.searches == [[[0.0] * 4], [[1.0] * 4]]


def test_belief_has_the_parameters_that_were_learnt() -> None:
    process = Counted()

    believed = told(process, 5)

    assert believed.parameters.tolist() == [1.0] * 4
    assert process.lengths() == pytest.approx(np.exp([1.0, 1.0]))
    assert process.noise() == pytest.approx(np.e)


def test_running_trials_join_the_results_at_their_prediction() -> None:
    process = Counted()
    rows = np.zeros((3, 2))
    belief = process.believe_in(rows, np.arange(3.0), np.arange(3), 3)

    expecting = process.expecting(belief, [np.ones(2)])

    assert expecting.targets.tolist() == [0.0, 1.0, 2.0, 7.0]
    assert expecting.parameters.tolist() == belief.model.parameters.tolist()


def test_forgotten_parameters_are_learnt_from_the_beginning() -> None:
    process = Counted()
    told(process, 5)

    process.forget()
    told(process, 5)

    assert process.searches == [[[0.0] * 4]] * 2


def test_state_tells_what_was_learnt_from_how_many() -> None:
    process, other = Counted(), Counted()
    told(process, 100)

    other.load_state(process.state())

    assert told(other, 101).parameters.tolist() == [1.0] * 4
    assert other.searches == []


def results(count: int) -> tuple[list[Floats], list[float]]:
    points = list(np.random.default_rng(0).random((count, 2)))
    return points, [float((point[0] - 0.4) ** 2) for point in points]


def surrogate() -> Surrogate:
    return Surrogate(Matern.of(2.5), 1e-6)


def tree_model() -> TreeModel:
    return TreeModel(Blend(np.arange(2), Matern.of(2.5)))


New: TypeAlias = Callable[[], Surrogate | TreeModel]
every_model = pytest.mark.parametrize("new", [surrogate, tree_model])


@every_model
def test_goes_on_from_its_state(new: New) -> None:
    points, losses = results(30)
    first = new()
    first.believe(points[:20], losses[:20])

    second = new()
    second.load_state(json.loads(json.dumps(first.state())))

    left, right = (one.believe(points, losses) for one in (first, second))
    assert left.model.weights.tolist() == right.model.weights.tolist()


@every_model
def test_running_trials_lower_the_doubt_and_keep_the_mean(new: New) -> None:
    points, losses = results(15)
    model: Any = new()
    belief = model.believe(points, losses)
    at = np.array([[0.9, 0.05]])

    expecting = model.expecting(belief, [at[0]])

    assert expecting.predict(at)[1] < 0.2 * belief.model.predict(at)[1]
    assert expecting.predict(at)[0] == pytest.approx(belief.model.predict(at)[0], abs=0.01)


@every_model
def test_nothing_running_changes_nothing(new: New) -> None:
    model: Any = new()
    belief = model.believe(*results(15))

    assert model.expecting(belief, []) is belief.model


@every_model
def test_model_of_many_results_is_bounded_and_holds_the_best(new: New) -> None:
    points, losses = results(1200)

    belief = new().believe(points, losses)

    assert len(belief.points) == 500
    assert points[int(np.argmin(losses))].tolist() in belief.points.tolist()
    assert belief.best == belief.targets.min()


@every_model
def test_one_result_is_enough(new: New) -> None:
    belief = new().believe(*results(1))

    assert np.isfinite(belief.model.predict(np.array([[0.1, 0.2]]))).all()
