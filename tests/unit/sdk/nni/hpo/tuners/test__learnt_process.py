"""When parameters are learnt anew and what becomes of them, with a process that keeps them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from nni.hpo.tuners._learnt_process import LearntProcess
from nni.hpo.tuners._parzen import Floats


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
