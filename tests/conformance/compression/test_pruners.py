"""Every pruner passes the conformance suite that `nni.testing.pruners` ships."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.base import Pruner
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.pruning import (
    ActivationAPoZRankPruner,
    ActivationMeanRankPruner,
    ADMMPruner,
    AMCPruner,
    FPGMPruner,
    L1NormPruner,
    L2NormPruner,
    LevelPruner,
    MovementPruner,
    NetAdaptPruner,
    SensitivityPruner,
    SlimPruner,
    TaylorFOWeightPruner,
    TransformerHeadPruner,
)
from nni.testing.pruners import Entry, PrunerConformance
from tests.unit.sdk.nni.compression.attention_model import encoder, tokens


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


def trained(model: nn.Module) -> TorchEvaluator:
    """Return an evaluator that trains with fixed batches."""

    def train(one: nn.Module, optimizer: SGD, step: Any, _schedulers: Any, *limits: Any) -> None:
        generator = torch.Generator().manual_seed(0)
        device = next(one.parameters()).device
        for _ in range(limits[0] or 1):
            optimizer.zero_grad()
            images = torch.randn(4, 3, 8, 8, generator=generator).to(device)
            loss: Tensor = step(images, one)
            torch.autograd.backward(loss)
            optimizer.step()

    optimizer = SGD(model.parameters(), lr=1e-3)
    return TorchEvaluator(train, optimizer, lambda batch, one: one(batch).square().mean())


class TestActivationAPoZRankPruner(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return ActivationAPoZRankPruner(model, config_list, trained(model), 2)


class TestActivationMeanRankPruner(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return ActivationMeanRankPruner(model, config_list, trained(model), 2)


class TestTaylorFOWeightPruner(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return TaylorFOWeightPruner(model, config_list, trained(model), 2)


class TestTaylorFOWeightPrunerInGlobalMode(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return TaylorFOWeightPruner(model, config_list, trained(model), 2, mode="global")


class TestL1NormPrunerInDependencyAwareMode(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        image = self.make_input()
        return L1NormPruner(model, config_list, mode="dependency_aware", dummy_input=image)


class TestTaylorFOWeightPrunerInDependencyAwareMode(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return TaylorFOWeightPruner(
            model, config_list, trained(model), 2, "dependency_aware", self.make_input()
        )


class TestMovementPruner(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return MovementPruner(model, config_list, trained(model), 1, 4)


class TestTransformerHeadPruner(PrunerConformance):
    op_types = ("Linear",)

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return TransformerHeadPruner(model, config_list, 2, dummy_input=self.make_input())

    def make_model(self) -> nn.Module:
        return encoder()

    def make_input(self) -> Tensor:
        return tokens()


class TestADMMPruner(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return ADMMPruner(model, config_list, trained(model), 2, 1)


class TestSlimPruner(PrunerConformance):
    op_types = ("BatchNorm2d",)

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return SlimPruner(model, config_list, trained(model), 2)


class TestADMMPrunerOfChannels(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return ADMMPruner(model, config_list, trained(model), 2, 1, base_algo="l2")


class TestSensitivityPruner(PrunerConformance):
    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        def evaluator(one: nn.Module) -> float:
            return -float(one(self.make_input()).detach().square().mean())

        return SensitivityPruner(model, config_list, evaluator, sparsity_per_iter=0.3)


class TestNetAdaptPruner(PrunerConformance):
    op_types = ("Conv2d", "Linear")
    ratio = 0.3

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        def evaluator(one: nn.Module) -> float:
            return -float(one(self.make_input()).detach().square().mean())

        return NetAdaptPruner(
            model,
            config_list,
            lambda one: None,
            evaluator,
            sparsity_per_iteration=0.15,
            experiment_data_dir=None,
        )

    def test_the_ratio_is_kept(self) -> None:
        """The weights that go, those of the next layer included, are the ratio of all."""
        pruner, masks = self._compressed()

        zeros = sum(float((one["weight"] == 0).sum()) for one in masks.values())
        sizes = [one.parameter("weight").numel() for one in pruner.get_modules_wrapper().values()]
        assert 0 < zeros <= self.ratio * sum(sizes) * 1.01


class TestAMCPruner(PrunerConformance):
    op_types = ("Conv2d", "Linear")

    def config_list(self) -> list[Entry]:
        return [{"op_types": list(self.op_types)}]

    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        def evaluator(batches: list[Tensor], one: nn.Module) -> float:
            return 100 - float(one(batches[0]).detach().square().mean())

        return AMCPruner(
            model,
            config_list,
            evaluator,
            [self.make_input()],
            channel_round=2,
            warmup=1,
            train_episode=2,
            output_dir=None,
        )

    def test_the_ratio_is_kept(self) -> None:
        """The operations that stay are at most the part that is asked for."""
        pruner, _ = self._compressed()

        assert isinstance(pruner, AMCPruner)
        assert all(result.flops_ratio <= 0.5 for result in pruner.history)
