"""The tests that every pruner of NNI passes."""

from peak_pruner import PeakPruner

from nni.testing.pruners import PrunerConformance


class TestPeakPruner(PrunerConformance):
    def make(self, model, config_list):
        return PeakPruner(model, config_list)
