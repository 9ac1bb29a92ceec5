"""Every pruner passes the conformance suite that `nni.testing.pruners` ships."""

from torch import nn

from nni.compression.base import Pruner
from nni.compression.pruning import FPGMPruner, L1NormPruner, L2NormPruner, LevelPruner
from nni.testing.pruners import Entry, PrunerConformance


class TestLevelPruner(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return LevelPruner(model, config_list)


class TestL1NormPruner(PrunerConformance):
    op_types = ("Conv2d",)

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return L1NormPruner(model, config_list)


class TestL2NormPruner(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return L2NormPruner(model, config_list)


class TestFPGMPruner(PrunerConformance):
    op_types = ("Conv2d", "Linear")
    ratio = 0.25

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return FPGMPruner(model, config_list)


class TestGlobalRanking(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def config_list(self) -> list[Entry]:
        return [{**entry, "global_group_id": "all"} for entry in super().config_list()]

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return L1NormPruner(model, config_list)
