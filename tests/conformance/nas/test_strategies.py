"""Every built-in strategy against the shipped suite."""

from nni.hpo import EvolutionTuner, RandomTuner, SMACTuner
from nni.nas.strategy import (
    TPE,
    GridSearch,
    HPOTunerStrategy,
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


class TestChain(StrategyConformance):
    def make(self, seed: int) -> Strategy:
        return Chain(Random(seed=seed), FailureHandler(metric=-1.0), Deduplication("replay"))
