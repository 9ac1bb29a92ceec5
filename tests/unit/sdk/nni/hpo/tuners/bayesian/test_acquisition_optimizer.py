"""Finding promising points of a tree of parameters."""

from dataclasses import replace

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import TreeCube
from nni.hpo.models.matern import Matern
from nni.hpo.models.plateaus import Familiar
from nni.hpo.models.surrogate import Surrogate
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.acquisition import expected_improvement
from nni.hpo.tuners.bayesian.acquisition_optimizer import (
    Outlook,
    around,
    everywhere,
    whole,
    with_option,
    within,
)
from nni.hpo.tuners.bayesian.acquisition_search import Effort

CUBE = TreeCube(
    parse_space(
        {
            "kind": {
                "_type": "choice",
                "_value": [
                    {"_name": "flat"},
                    {"_name": "bowl", "x": {"_type": "uniform", "_value": [0, 1]}},
                ],
            },
            "y": {"_type": "uniform", "_value": [0, 1]},
        }
    )
)
KIND, Y, X = (
    next(i for i, axis in enumerate(CUBE.axes) if axis.path.endswith(name))
    for name in ("kind", "y", "x")
)

NOWHERE = np.zeros(len(CUBE))


def loss(point: Floats) -> float:
    inner = 1.0 if point[KIND] == 0 else 2 * (point[X] - 0.3) ** 2
    return float(inner + (point[Y] - 0.7) ** 2)


def outlook(count: int = 40) -> tuple[Outlook, Floats]:
    points = CUBE.snap(CUBE.uniform(np.random.default_rng(1), count))
    surrogate = Surrogate(Matern.of(2.5), 1e-6, CUBE.owners)
    belief = surrogate.believe(list(CUBE.features(points)), [loss(p) for p in points])
    return Outlook(CUBE, belief.model, expected_improvement(0.0), belief.best), points


def test_the_best_point_rates_higher_than_candidates_and_results() -> None:
    view, points = outlook()
    candidates = everywhere(CUBE, points[:5], 200, np.random.default_rng(0))

    best = view.best(candidates, whole(CUBE), set(), Effort(200, 3, 30), discrete=True)

    assert best is not None
    assert view.rate(best[None])[0] >= view.rate(np.concatenate([candidates, points])).max()
    assert best[KIND] == 1


def test_climbing_raises_the_rating() -> None:
    view, points = outlook()
    candidates = everywhere(CUBE, points[:0], 20, np.random.default_rng(3))

    still = view.best(candidates, whole(CUBE), set(), Effort(20, 0, 30), discrete=False)
    climbed = view.best(candidates, whole(CUBE), set(), Effort(20, 3, 30), discrete=False)

    assert still is not None
    assert climbed is not None
    assert view.rate(climbed[None])[0] > view.rate(still[None])[0]


def test_candidates_of_a_region_stay_in_it() -> None:
    centre = CUBE.point({"kind": {"_name": "bowl", "x": 0.4}, "y": 0.9})
    region = around(centre, np.ones(len(CUBE)), 0.2, NOWHERE)

    points = within(CUBE, centre, region, 0.2, 300, np.random.default_rng(0))

    assert points[:, Y].min() >= 0.8 - 1e-9
    assert points[:, Y].max() <= 1.0
    assert len(np.unique(points[:, Y])) > 20
    assert set(points[:, KIND]) == {0, 1}


def test_a_region_is_longer_where_the_function_changes_slowly() -> None:
    region = around(np.full(2, 0.5), np.array([0.1, 0.4]), 0.2, np.zeros(2))

    sides = region.high - region.low

    assert sides[1] == pytest.approx(4 * sides[0])
    assert np.sqrt(sides.prod()) == pytest.approx(0.2)


def test_a_region_reaches_beyond_the_plateau_of_its_centre() -> None:
    region = around(np.full(2, 0.5), np.ones(2), 0.02, np.array([0.3, 0.0]))

    assert (region.high - 0.5).tolist() == pytest.approx([0.3, 0.01])
    assert (0.5 - region.low).tolist() == pytest.approx([0.3, 0.01])


def test_a_point_whose_result_is_known_promises_less() -> None:
    view, points = outlook()
    candidate = CUBE.point({"kind": {"_name": "bowl", "x": 0.35}, "y": 0.65})[None, :]
    familiar = Familiar(np.where(CUBE.ordered, 0.2, 0.0), candidate + 0.05 * CUBE.ordered)

    knowing = replace(view, familiar=familiar)

    # Of 0.2 along both axes a quarter is gone, so that the result is the same with 0.75 ** 2.
    assert knowing.rate(candidate) == pytest.approx(view.rate(candidate) + np.log(1 - 0.75**2))
    assert knowing.rate(points[:5]) == pytest.approx(view.rate(points[:5]))


@pytest.mark.parametrize("good", [0, 3])
def test_candidates_with_an_option_all_have_it(good: int) -> None:
    _, points = outlook()

    found = with_option(CUBE, points[:good], (KIND, 1), 50, np.random.default_rng(0))

    assert (found[:, KIND] == 1).all()
    assert len(np.unique(found[:, X])) > 20
