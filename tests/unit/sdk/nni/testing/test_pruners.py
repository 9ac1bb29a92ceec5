import pytest
import torch
from torch import Tensor, nn

from nni.compression.base.pruner import Pruner, TargetKey
from nni.compression.pruning import LevelPruner
from nni.testing.pruners import Entry, PrunerConformance


class RandomPruner(Pruner):
    """Pruner that forgets to use the seed."""

    generator = torch.Generator().manual_seed(0)

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:
        return {
            key: torch.rand(blocks.shape[:-1], generator=self.generator)
            for key, blocks in self.weight_blocks()
        }


class RandomSuite(PrunerConformance):
    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return RandomPruner(model, config_list)


class GreedySuite(PrunerConformance):
    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        return LevelPruner(model, [{**entry, "sparse_ratio": 0.9} for entry in config_list])


def test_a_pruner_that_ignores_the_seed_fails() -> None:
    with pytest.raises(AssertionError):
        RandomSuite().test_the_same_model_and_seed_give_the_same_masks()


def test_a_pruner_that_masks_too_much_fails() -> None:
    with pytest.raises(AssertionError):
        GreedySuite().test_the_ratio_is_kept()


def test_a_pruner_that_wraps_rightly_passes_the_other_tests() -> None:
    GreedySuite().test_wrapping_and_unwrapping_leaves_the_model()
    GreedySuite().test_no_gradient_passes_masked_weights()

    assert RandomSuite().make_input().shape == (4, 3, 8, 8)
