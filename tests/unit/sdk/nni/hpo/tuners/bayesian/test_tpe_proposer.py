"""Proposals of TPE beside those of another model."""

import json
from random import Random

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace, vector_key
from nni.hpo.json_value import JsonValue
from nni.hpo.models.cost_model import CostModel, CostPrediction
from nni.hpo.models.gp_regression import Kernel, gp_posterior
from nni.hpo.models.matern import Matern
from nni.hpo.models.plateaus import KnownPlateaus
from nni.hpo.space.parser import parse_space, place
from nni.hpo.tuners.bayesian.tpe_proposer import TPEProposer

NUMBER = {"_type": "uniform", "_value": [0, 1]}
LINE = {"x": NUMBER}
BRANCHED = {"m": {"_type": "choice", "_value": [{"_name": "flat"}, {"_name": "deep", "x": NUMBER}]}}
MANY = {f"x{index}": NUMBER for index in range(81)}


def space_of(search_space: JsonValue) -> EncodedSpace:
    return EncodedSpace(parse_space(search_space))


def taught(seed: int = 0, count: int = 40) -> TPEProposer:
    proposer = TPEProposer(seed)
    proposer.update_search_space(LINE)
    learn(proposer, count)
    return proposer


def learn(proposer: TPEProposer, count: int) -> None:
    for number in range(count):
        configuration = {"x": (number + 0.5) / count}
        placed = place(parse_space(LINE), configuration)
        proposer.learn(configuration, placed, abs(configuration["x"] - 0.7))


def proposed(proposer: TPEProposer, plateaus: KnownPlateaus | None = None) -> Floats:
    vector = proposer.propose(space_of(LINE), set(), plateaus)
    assert vector is not None
    return vector


@pytest.mark.parametrize(("search_space", "share"), [(LINE, 0.15), (BRANCHED, 0.5), (MANY, 0.7)])
def test_share_depends_on_the_space(search_space: JsonValue, share: float) -> None:
    assert TPEProposer(0).share(space_of(search_space)) == share


def test_proposals_lie_near_good_results() -> None:
    proposer = taught()

    found = [float(proposed(proposer)[0]) for _ in range(20)]

    assert np.median(found) == pytest.approx(0.7, abs=0.15)


def test_taken_vectors_are_not_proposed() -> None:
    first = proposed(taught())

    other = taught().propose(space_of(LINE), {vector_key(first)}, None)

    assert other is not None
    assert other.tolist() != first.tolist()


def test_gives_up_where_every_result_is_known() -> None:
    everything = KnownPlateaus(np.array([np.inf]), np.array([[0.5]]))

    assert taught().propose(space_of(LINE), set(), everything) is None


def test_reset_drops_the_observations() -> None:
    proposer = taught()

    proposer.reset()

    found = [float(proposed(proposer)[0]) for _ in range(40)]
    assert np.std(found) > 0.2


def test_goes_on_from_its_state() -> None:
    first, second = taught(seed=1), taught(seed=2)

    second.load_state(json.loads(json.dumps(first.state())))

    assert proposed(first).tolist() == proposed(second).tolist()


def test_of_several_proposals_a_cheap_one_is_accepted() -> None:
    inputs, space = np.linspace(0, 1, 20)[:, None], space_of(LINE)
    cost = CostModel(np.arange(1)).predict(inputs, 100 ** inputs[:, 0], exponent=1.0)
    draws: list[list[float]] = [[], []]
    for found, prediction in zip(draws, (None, cost), strict=True):
        proposer, rng = taught(), Random(0)
        for _ in range(20):
            vector = proposer.propose_by_cost(space, set(), None, prediction, rng)
            assert vector is not None
            found.append(float(vector[0]))

    assert np.mean(draws[1]) < np.mean(draws[0])


def test_of_proposals_that_cost_the_same_the_first_is_accepted() -> None:
    inputs, space = np.linspace(0, 1, 20)[:, None], space_of(LINE)
    kernel = Kernel(np.arange(1), Matern.of(2.5))
    posterior = gp_posterior(inputs, np.full(20, 3.0), kernel, np.array([0.0, np.log(1e-6), 2.0]))
    same = CostPrediction(posterior, spread=1.0, exponent=1.0)

    for seed in range(5):
        vector = taught(seed).propose_by_cost(space, set(), None, same, Random(seed))

        assert vector is not None
        assert vector.tolist() == proposed(taught(seed)).tolist()


def test_nothing_is_accepted_where_every_result_is_known() -> None:
    inputs, space = np.linspace(0, 1, 20)[:, None], space_of(LINE)
    cost = CostModel(np.arange(1)).predict(inputs, 100 ** inputs[:, 0], exponent=1.0)
    everything = KnownPlateaus(np.array([np.inf]), np.array([[0.5]]))

    assert taught().propose_by_cost(space, set(), everything, cost, Random(0)) is None


def test_space_of_eighty_numbers_has_not_many_yet() -> None:
    space = space_of({f"x{index}": NUMBER for index in range(80)})

    assert TPEProposer(0).share(space) == 0.15


def test_region_where_trials_fail_is_avoided() -> None:
    beyond = []
    for failing in (False, True):
        proposer = TPEProposer(0)
        proposer.update_search_space(LINE)
        for number in range(40):
            configuration = {"x": (number + 0.5) / 40}
            placed = place(parse_space(LINE), configuration)
            if configuration["x"] < 0.6:
                proposer.learn(configuration, placed, abs(configuration["x"] - 0.7))
            elif failing:
                proposer.learn_failure(configuration, placed)
        beyond.append(sum(float(proposed(proposer)[0]) > 0.65 for _ in range(20)))

    assert beyond[1] < beyond[0]


@pytest.mark.parametrize(("taken", "found"), [(4, True), (5, False)])
def test_gives_up_after_five_taken_vectors(taken: int, found: bool) -> None:
    proposer = taught()
    vectors = [proposed(proposer) for _ in range(5)]
    keys = {vector_key(vector) for vector in vectors[:taken]}

    vector = taught().propose(space_of(LINE), keys, None)

    assert (vector is not None) is found
    assert vector is None or vector.tolist() == vectors[4].tolist()


@pytest.mark.parametrize(("reach", "taken"), [(0.16, True), (0.2, False)])
def test_vector_is_taken_if_its_result_is_likely_new(reach: float, taken: bool) -> None:
    vector = proposed(taught())
    # The probability of a new result is 0.09 / reach: 0.56 or 0.45.
    plateaus = KnownPlateaus(np.array([reach]), vector[None, :] + 0.09)

    found = taught().propose(space_of(LINE), set(), plateaus)

    assert (found is not None and found.tolist() == vector.tolist()) is taken
