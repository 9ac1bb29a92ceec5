"""Tuners with a plan keep the contract of tuners."""

from typing import Any

import pytest

from nni.hpo.base import Tuner
from nni.hpo.objectives import objectives_of
from nni.hpo.registry.built_in import BUILT_IN
from nni.hpo.registry.factory import create
from nni.hpo.search.managed_tuner import DUPLICATE_POLICIES, DuplicatePolicy, SearchPlan, managed
from nni.testing import TunerConformance
from nni.testing.tuners import play
from tests.support.search_spaces import GRID, NESTED, NUMBERS


class TestManagedTPE(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return managed(create("tuner", "TPE", seed=seed), SearchPlan(), seed)


class TestManagedEvolution(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        tuner = create("tuner", "Evolution", {"population_size": 8}, seed=seed)
        return managed(tuner, SearchPlan(), seed)


class TestResampledTPE(TunerConformance):
    search_space = GRID
    finite_size = 18

    def make(self, seed: int) -> Tuner:
        return managed(create("tuner", "TPE", seed=seed), SearchPlan(duplicates="resample"), seed)


class TestReusedAnneal(TunerConformance):
    search_space = GRID
    finite_size = 18

    def make(self, seed: int) -> Tuner:
        return managed(create("tuner", "Anneal", seed=seed), SearchPlan(duplicates="reuse"), seed)


class TestLimitedGP(TunerConformance):
    search_space = NUMBERS

    def make(self, seed: int) -> Tuner:
        plan = SearchPlan(objectives_of("maximize", [{"metric": "default", "max": 0.8}]))
        return managed(create("tuner", "GPTuner", seed=seed), plan, seed)


SPACE: dict[str, Any] = {
    "a": {"_type": "choice", "_value": [1, 2, 4]},
    "b": {"_type": "randint", "_value": [0, 4]},
}
DETERMINED = ("BatchTuner", "PBTTuner", "NetworkMorphism")
"""A list of the user's own; members that share a configuration on purpose; graphs, no points."""


@pytest.mark.parametrize("policy", DUPLICATE_POLICIES)
@pytest.mark.parametrize(
    "name",
    [e.name for e in BUILT_IN if e.kind == "tuner" and e.name not in DETERMINED],
)
def test_every_tuner_supports_every_policy(name: str, policy: DuplicatePolicy) -> None:
    space = dict(SPACE)
    tuner = managed(create("tuner", name, seed=1), SearchPlan(duplicates=policy), 1)
    tuner.update_search_space(space)

    points = play(tuner, 12)

    distinct = {(point["a"], point["b"]) for point in points}
    assert policy == "replicate" or len(distinct) == 12
