"""Every built-in strategy against the shipped suite."""

import io
from typing import Any

import torch

from nni.hpo import EvolutionTuner, RandomTuner, SMACTuner
from nni.nas.strategy import (
    TPE,
    GridSearch,
    HPOTunerStrategy,
    PolicyBasedRL,
    Random,
    RegularizedEvolution,
    Strategy,
)
from nni.nas.strategy.middleware import (
    Chain,
    Deduplication,
    FailureHandler,
)
from nni.testing.strategies import StrategyConformance


class TestRandom(StrategyConformance):
    def make(self, seed: int) -> Strategy:
        return Random(seed=seed)


class TestRandomWithDuplicates(StrategyConformance):
    never_repeats = False

    def make(self, seed: int) -> Strategy:
        return Random(seed=seed, dedup=False)


class TestGridSearch(StrategyConformance):
    def make(self, seed: int) -> Strategy:
        return GridSearch(seed=seed)


class TestGridSearchInOrder(StrategyConformance):
    def make(self, seed: int) -> Strategy:
        return GridSearch(shuffle=False, seed=seed)


class TestGridSearchWithDuplicates(StrategyConformance):
    def make(self, seed: int) -> Strategy:
        return GridSearch(dedup=False, seed=seed)


class TestRegularizedEvolution(StrategyConformance):
    def make(self, seed: int) -> Strategy:
        return RegularizedEvolution(population_size=8, sample_size=4, mutation_prob=0.3, seed=seed)


class TestRegularizedEvolutionWithCrossover(StrategyConformance):
    never_repeats = False

    def make(self, seed: int) -> Strategy:
        return RegularizedEvolution(
            population_size=6, sample_size=2, crossover=True, dedup=False, seed=seed
        )


class TestTPE(StrategyConformance):
    never_repeats = False
    continues_exactly = False

    def make(self, seed: int) -> Strategy:
        return TPE(seed=seed)


class TestEvolutionTuner(StrategyConformance):
    never_repeats = False
    continues_exactly = False

    def make(self, seed: int) -> Strategy:
        return HPOTunerStrategy(EvolutionTuner("maximize", population_size=6, seed=seed))


class TestRandomTuner(StrategyConformance):
    never_repeats = False
    continues_exactly = False

    def make(self, seed: int) -> Strategy:
        return HPOTunerStrategy(RandomTuner(seed=seed))


class TestSMACTuner(StrategyConformance):
    never_repeats = False
    continues_exactly = False

    def make(self, seed: int) -> Strategy:
        return HPOTunerStrategy(SMACTuner("maximize", seed=seed))


class TestPolicyBasedRL(StrategyConformance):
    numbers = False
    never_repeats = False

    def make(self, seed: int) -> Strategy:
        update = {"repeat": 1, "update_times": 1}
        return PolicyBasedRL(samples_per_update=8, update_kwargs=update, seed=seed)

    def saved_and_loaded(self, state: dict[str, Any]) -> Any:
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        return torch.load(file, weights_only=True)


class TestChain(StrategyConformance):
    def make(self, seed: int) -> Strategy:
        return Chain(Random(seed=seed), FailureHandler(metric=-1.0), Deduplication("replay"))
