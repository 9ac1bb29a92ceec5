"""Maximisation of acquisition functions over spaces, flat, discrete, constrained and branched."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace, VectorKey, vector_key
from nni.hpo.json_value import JsonValue
from nni.hpo.models.feasibility import Feasibility
from nni.hpo.models.gp_regression import GPPosterior, Kernel, gp_posterior
from nni.hpo.models.loss_model import LossModel
from nni.hpo.models.matern import Matern
from nni.hpo.models.plateaus import KnownPlateaus
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.acquisition import confidence_bound, expected_improvement
from nni.hpo.tuners.bayesian.acquisition_optimizer import (
    AcquisitionOptimizer,
    LossAcquisition,
    weighted_by_success,
)
from nni.hpo.tuners.bayesian.candidates import global_candidates, whole_region
from nni.hpo.tuners.bayesian.search_budget import SearchBudget

TREE = EncodedSpace(
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
    next(i for i, axis in enumerate(TREE.axes) if axis.path.endswith(name))
    for name in ("kind", "y", "x")
)
SQUARE = {key: {"_type": "uniform", "_value": [0, 1]} for key in "xy"}
GRID = {key: {"_type": "randint", "_value": [0, 4]} for key in "xy"}
FINE_GRID = {key: {"_type": "randint", "_value": [0, 1000]} for key in "xy"}
LOWEST = confidence_bound(0.0)


def space_of(search_space: JsonValue) -> EncodedSpace:
    return EncodedSpace(parse_space(search_space))


def bowl(lowest: tuple[float, float] = (0.3, 0.6)) -> GPPosterior:
    """Return the posterior of a bowl with a given lowest place."""
    inputs = np.random.default_rng(0).random((60, 2))
    targets = ((inputs - lowest) ** 2).sum(axis=1) * 10 - 1
    kernel = Kernel(np.arange(2), Matern.of(2.5))
    return gp_posterior(inputs, targets, kernel, np.array([*np.log([0.7, 0.7, 1e-8]), -7.0]))


def optimizer(
    space: EncodedSpace,
    budget: SearchBudget,
    taken: set[VectorKey] | None = None,
    posterior: GPPosterior | None = None,
) -> AcquisitionOptimizer:
    """Return an optimizer that looks for the least mean of a bowl."""
    acquisition = LossAcquisition(space, posterior or bowl(), LOWEST, 0.0)
    return AcquisitionOptimizer(space, acquisition, taken or set(), budget)


def loss(vector: Floats) -> float:
    inner = 1.0 if vector[KIND] == 0 else 2 * (vector[X] - 0.3) ** 2
    return float(inner + (vector[Y] - 0.7) ** 2)


def tree_acquisition(count: int = 40) -> tuple[LossAcquisition, Floats]:
    vectors = TREE.snap(TREE.sample_filled(np.random.default_rng(1), count))
    model = LossModel(Kernel(TREE.feature_axes, Matern.of(2.5), 1e-6))
    fitted = model.update(TREE.features(vectors), np.array([loss(vector) for vector in vectors]))
    function = expected_improvement(0.0)
    return LossAcquisition(TREE, fitted.posterior, function, fitted.best_target), vectors


def test_climbs_to_the_best_vector_between_candidates() -> None:
    space = space_of(SQUARE)
    candidates = global_candidates(space, np.empty((0, 2)), 20, np.random.default_rng(0))
    budget = SearchBudget(20, 2, 40)

    vector = optimizer(space, budget).best_from(candidates, whole_region(space), discrete=True)

    assert vector == pytest.approx([0.3, 0.6], abs=0.02)


def test_evaluates_every_vector_of_a_small_space() -> None:
    space = space_of(GRID)
    vectors = space.all_vectors(100)
    assert vectors is not None
    budget = SearchBudget(100, 1, 1)

    best = optimizer(space, budget).best_of(vectors)
    assert best is not None
    second = optimizer(space, budget, {vector_key(best)}).best_of(vectors)

    assert len(vectors) == 16
    assert space.decode(best) == {"x": 1, "y": 2}
    assert second is not None
    assert second.tolist() != best.tolist()


def test_nothing_is_left_when_all_vectors_are_taken() -> None:
    space = space_of(GRID)
    vectors = space.all_vectors(100)
    assert vectors is not None
    taken = {vector_key(vector) for vector in vectors}

    assert optimizer(space, SearchBudget(100, 1, 1), taken).best_of(vectors) is None


def test_steps_to_better_values_of_a_discrete_space() -> None:
    space = space_of(FINE_GRID)
    candidates = global_candidates(space, np.empty((0, 2)), 10, np.random.default_rng(0))
    search = optimizer(space, SearchBudget(10, 1, 40))

    vector = search.best_from(candidates, whole_region(space), discrete=True)

    assert vector is not None
    assert vector_key(space.snap(vector[None, :])[0]) == vector_key(vector)
    assert vector == pytest.approx([0.3, 0.6], abs=0.02)


def test_ascent_ends_at_the_edge_of_a_constraint() -> None:
    space = space_of({**SQUARE, "_constraints": ["x + y <= 0.5"]})
    start = np.array([[0.1, 0.3]])
    search = optimizer(space, SearchBudget(1, 1, 40))

    vector = search.best_from(start, whole_region(space), discrete=True)

    # The lowest place (0.3, 0.6) is against the constraint; on the straight way to it from the
    # start 0.2 of the distance is allowed.
    assert vector is not None
    assert space.allows(vector)
    assert vector == pytest.approx([0.14, 0.36], abs=0.01)


def test_discrete_steps_pass_by_neighbours_against_a_constraint() -> None:
    options = [1, 2, 4, 8, 16]
    choice = {"_type": "choice", "_value": options}
    free = space_of({"x": choice, "y": choice})
    bound = space_of({"x": choice, "y": choice, "_constraints": ["x <= 4"]})
    start = free.encode({"x": 2, "y": 16})[None, :]
    posterior = bowl(lowest=(0.75, 0.0))

    ends = [
        optimizer(space, SearchBudget(1, 1, 1), posterior=posterior).best_from(
            start, whole_region(space), discrete=True
        )
        for space in (free, bound)
    ]

    # Four steps: y must fall by four of them, x rises only where the gain is greater.
    assert ends[0] is not None
    assert ends[1] is not None
    assert bound.decode(ends[1])["x"] <= 4
    assert bound.decode(ends[1])["y"] < 16


def test_the_best_vector_has_a_higher_value_than_candidates_and_results() -> None:
    acquisition, vectors = tree_acquisition()
    candidates = global_candidates(TREE, vectors[:5], 200, np.random.default_rng(0))
    search = AcquisitionOptimizer(TREE, acquisition, set(), SearchBudget(200, 3, 30))

    best = search.best_from(candidates, whole_region(TREE), discrete=True)

    assert best is not None
    values = acquisition.values(np.concatenate([candidates, vectors]))
    assert acquisition.values(best[None])[0] >= values.max()
    assert best[KIND] == 1


def test_climbing_raises_the_value() -> None:
    acquisition, vectors = tree_acquisition()
    candidates = global_candidates(TREE, vectors[:0], 20, np.random.default_rng(3))
    still, climbing = (
        AcquisitionOptimizer(TREE, acquisition, set(), SearchBudget(20, climbs, 30)).best_from(
            candidates, whole_region(TREE), discrete=False
        )
        for climbs in (0, 3)
    )

    assert still is not None
    assert climbing is not None
    assert acquisition.values(climbing[None])[0] > acquisition.values(still[None])[0]


def test_gradient_is_that_of_the_values() -> None:
    acquisition, _ = tree_acquisition()
    at = TREE.encode({"kind": {"_name": "bowl", "x": 0.6}, "y": 0.35})
    step = 1e-6 * np.eye(len(TREE))

    value, gradient = acquisition.value_and_gradient(TREE.features(at[None])[0])

    assert value == pytest.approx(acquisition.values(at[None])[0])
    for axis in (X, Y):
        higher, lower = acquisition.values(np.array([at + step[axis], at - step[axis]]))
        expected = (higher - lower) / 2e-6
        assert gradient[TREE.axes[axis].feature] == pytest.approx(expected, rel=1e-3)


@dataclass(frozen=True)
class CountedAcquisition:
    """Acquisition of equal values everywhere that keeps what it was asked."""

    asked: list[Floats]

    def values(self, vectors: Floats) -> Floats:
        """Return 0 everywhere."""
        self.asked.append(vectors)
        return np.zeros(len(vectors))

    def value_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return 0 and no direction."""
        return 0.0, np.zeros_like(features)


def test_only_allowed_neighbours_are_evaluated() -> None:
    space = space_of({**FINE_GRID, "_constraints": ["x + y <= 700"]})
    asked: list[Floats] = []
    search = AcquisitionOptimizer(space, CountedAcquisition(asked), set(), SearchBudget(1, 1, 1))

    search.best_from(
        space.encode({"x": 350, "y": 350})[None, :], whole_region(space), discrete=True
    )

    neighbours = [space.decode(vector) for vector in asked[1][1:]]
    assert neighbours == [{"x": 349, "y": 350}, {"x": 350, "y": 349}]


def test_a_vector_whose_result_is_known_has_a_lower_value() -> None:
    acquisition, vectors = tree_acquisition()
    candidate = TREE.encode({"kind": {"_name": "bowl", "x": 0.35}, "y": 0.65})[None, :]
    plateaus = KnownPlateaus(np.where(TREE.ordered, 0.2, 0.0), candidate + 0.05 * TREE.ordered)

    knowing = replace(acquisition, plateaus=plateaus)

    # Of 0.2 along both axes a quarter is gone, so that the result is the same with 0.75 ** 2.
    plain = acquisition.values(candidate)
    assert knowing.values(candidate) == pytest.approx(plain + np.log(1 - 0.75**2))
    assert knowing.values(vectors[:5]) == pytest.approx(acquisition.values(vectors[:5]))


def test_log_weight_of_success_is_added_where_it_is_known() -> None:
    space = space_of(SQUARE)
    plain = LossAcquisition(space, bowl(), LOWEST, 0.0)
    feasibility = Feasibility(bowl((0.8, 0.2)), 0.0, 0.1, math.log(0.7), math.log(0.2))
    vectors = np.random.default_rng(2).random((5, 2))

    found = weighted_by_success(space, plain, feasibility)

    assert weighted_by_success(space, plain, None) is plain
    weights = feasibility.log_weight(vectors)
    assert found.values(vectors) == pytest.approx(plain.values(vectors) + weights)
    value, gradient = found.value_and_gradient(vectors[0])
    own, slope = plain.value_and_gradient(vectors[0])
    weight, weight_slope = feasibility.log_weight_and_gradient(vectors[0])
    assert value == pytest.approx(own + weight)
    assert gradient == pytest.approx(slope + weight_slope)


def test_gradient_of_success_points_to_where_trials_succeed() -> None:
    space = space_of(SQUARE)
    plain = LossAcquisition(space, bowl(), LOWEST, 0.0)
    feasibility = Feasibility(bowl((0.8, 0.2)), 0.0, 0.1, math.log(0.7), math.log(0.2))
    border = np.array([0.56, 0.15])  # success becomes likely on the way to the left

    _, gradient = weighted_by_success(space, plain, feasibility).value_and_gradient(border)

    _, slope = plain.value_and_gradient(border)
    _, weight_slope = feasibility.log_weight_and_gradient(border)
    assert weight_slope[0] < -1
    assert gradient == pytest.approx(slope + weight_slope)


@dataclass(frozen=True)
class RisingAcquisition:
    """Acquisition that is the sum of the coordinates."""

    slope: float = 1.0

    def values(self, vectors: Floats) -> Floats:
        """Return the sums."""
        found: Floats = vectors.sum(axis=1)
        return found

    def value_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return the sum and its gradient."""
        return self.slope * float(features.sum()), np.full_like(features, self.slope)


def test_moves_to_four_better_neighbours_at_most() -> None:
    space = space_of({"x": {"_type": "randint", "_value": [0, 10]}})
    search = AcquisitionOptimizer(space, RisingAcquisition(0.0), set(), SearchBudget(1, 1, 1))

    ends = [
        search.best_from(space.encode({"x": x})[None, :], whole_region(space), discrete=discrete)
        for x, discrete in ((2, True), (7, True), (2, False))
    ]

    assert [space.decode(end)["x"] for end in ends if end is not None] == [6, 9, 2]


def test_a_way_against_a_constraint_is_halved_eight_times() -> None:
    space = space_of({"x": {"_type": "uniform", "_value": [0, 1]}, "_constraints": ["x <= 0.7021"]})
    search = AcquisitionOptimizer(space, RisingAcquisition(), set(), SearchBudget(1, 1, 40))

    end = search.best_from(np.array([[0.0]]), whole_region(space), discrete=False)

    assert end is not None
    assert end.tolist() == [179 / 256]
