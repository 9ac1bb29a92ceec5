"""The suite of one-shot strategies finds faults."""

from typing import Any

import pytest

from nni.mutable import Sample
from nni.nas.strategy.oneshot import OneShotStrategy, RandomOneShot
from nni.testing.oneshot_strategies import OneShotStrategyConformance


class WrongBranch(RandomOneShot):
    """Exports what is no branch, and trains nothing."""

    def export(self) -> Sample:
        return {"branch": "zero"}

    def train_dataloader(self, train: Any, val: Any) -> Any:
        return []


class Suite(OneShotStrategyConformance):
    epochs = 1

    def make(self) -> OneShotStrategy:
        return WrongBranch()


def test_worse_branch_is_found() -> None:
    with pytest.raises(AssertionError):
        Suite().test_better_branch_is_exported()


def test_missing_training_is_found() -> None:
    with pytest.raises(AssertionError):
        Suite().test_weights_are_trained()


def test_foreign_sample_is_found() -> None:
    with pytest.raises(ValueError, match="no value for label"):
        Suite().test_exported_sample_is_contained_in_the_space()
