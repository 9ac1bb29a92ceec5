"""The tests that the strategies of NNI pass."""

from local_search import LocalSearch

from nni.testing.strategies import StrategyConformance


class TestLocalSearch(StrategyConformance):
    def make(self, seed):
        return LocalSearch(seed)
