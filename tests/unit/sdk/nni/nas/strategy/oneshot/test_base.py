"""Contract of one-shot strategies: what they need, and how they are extended."""

import os
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch import nn

import nni
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.evaluator.pytorch import Lightning, Regression
from nni.nas.execution import Middleware, SequentialExecutionEngine
from nni.nas.nn.pytorch import LayerChoice, ModelSpace
from nni.nas.oneshot.pytorch.architecture import SampledPath
from nni.nas.oneshot.pytorch.path_modules import path_hook
from nni.nas.oneshot.pytorch.supernet import SuperModule
from nni.nas.oneshot.pytorch.training import BaseOneShotLightningModule
from nni.nas.space import RawFormatModelSpace, SimplifiedModelSpace
from nni.nas.strategy.oneshot import DARTS, ENAS, OneShotStrategy, RandomOneShot
from nni.nas.strategy.oneshot.base import only_loader
from nni.testing.oneshot_strategies import quiet_lightning
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Branches, line_data


def evaluator(**arguments: Any) -> Lightning:
    """Return an evaluator without any output."""
    given = {
        "train_dataloaders": line_data(),
        "val_dataloaders": line_data(seed=1),
        "max_epochs": 1,
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        **arguments,
    }
    with quiet_lightning():
        return Regression(**given)


def initialize(made: Any, engine: Any = None, space: Any = RawFormatModelSpace) -> DARTS:
    strategy = DARTS()
    strategy.initialize(space.from_model(Branches(), made), engine or SequentialExecutionEngine())
    return strategy


@pytest.mark.claim("nas", 51)
def test_other_engine_is_refused() -> None:
    with pytest.raises(TypeError, match="needs the sequential engine"):
        initialize(evaluator(), Middleware(SequentialExecutionEngine()))


@pytest.mark.claim("nas", 51)
def test_other_format_is_refused() -> None:
    with pytest.raises(TypeError, match="needs the raw format"):
        initialize(evaluator(), space=SimplifiedModelSpace)


@pytest.mark.claim("nas", 51)
def test_other_evaluator_is_refused() -> None:
    with pytest.raises(TypeError, match="needs a Lightning evaluator"):
        initialize(FunctionalEvaluator(print))


@pytest.mark.claim("nas", 51)
@pytest.mark.parametrize("missing", ["train_dataloaders", "val_dataloaders"])
def test_missing_loader_is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match=f"{missing} of the evaluator is missing"):
        initialize(evaluator(**{missing: None}))


def test_mutable_evaluator_is_refused() -> None:
    with pytest.raises(ValueError, match="without mutable arguments"):
        initialize(evaluator(learning_rate=nni.choice("rate", [0.1, 0.2])))


def test_datamodule_takes_the_place_of_loaders() -> None:
    class Data(pl.LightningDataModule):
        def train_dataloader(self) -> Any:
            return line_data()

        def val_dataloader(self) -> Any:
            return line_data(seed=1)

    data = Data()
    made = evaluator(train_dataloaders=None, val_dataloaders=None, datamodule=data)
    strategy = initialize(made)

    with quiet_lightning():
        strategy.run()

    assert strategy.oneshot_module.trainer.num_training_batches == 2
    assert data.train_dataloader().batch_size == 8


def test_evaluator_of_single_networks_stays_as_it_is() -> None:
    made = evaluator()
    module = made.module

    with quiet_lightning():
        initialize(made).run()

    assert made.module is module
    assert not isinstance(made.train_dataloaders, dict)


def test_only_the_best_model_is_listed() -> None:
    strategy = initialize(evaluator())
    with quiet_lightning():
        strategy.run()

    with pytest.warns(UserWarning, match="has one model"):
        models = strategy.list_models(sort=False, limit=3)

    assert [model.sample for model in models] == [strategy.export()]
    assert models[0].metric is not None


def test_own_checkpoint_of_the_evaluator_wins() -> None:
    strategy = RandomOneShot()
    strategy.mutate_model(Branches())
    strategy.load_state_dict({"ckpt_path": "of-the-state"})
    made = evaluator()

    first = strategy.mutate_evaluator(made)
    made.fit_kwargs["ckpt_path"] = "of-the-user"
    second = strategy.mutate_evaluator(made)

    assert first.fit_kwargs["ckpt_path"] == "of-the-state"
    assert second.fit_kwargs["ckpt_path"] == "of-the-user"


@pytest.mark.parametrize("name", ["supernet", "oneshot_module"])
def test_nothing_is_there_before_the_search(name: str) -> None:
    with pytest.raises(RuntimeError, match="call"):
        getattr(DARTS(), name)


class Doubled(SuperModule, nn.Module):
    """Stands for a primitive that a hook replaces."""

    def forward(self, inputs: Any) -> Any:
        return inputs * 2


def double(module: nn.Module, name: str, memo: Any, arguments: Any) -> Any:
    return Doubled() if isinstance(module, LayerChoice) else None


def test_hooks_of_the_user_precede_all_others() -> None:
    space = Branches()

    RandomOneShot(mutation_hooks=[double]).mutate_model(space)

    assert isinstance(space.branch, Doubled)


def test_hooks_of_the_space_precede_those_of_the_strategy() -> None:
    class Special(Branches):
        @classmethod
        def extra_oneshot_hooks(cls, strategy: object) -> list[Any]:
            return [double] if isinstance(strategy, DARTS) else []

    first, second = Special(), Special()
    DARTS().mutate_model(first)
    RandomOneShot().mutate_model(second)

    assert isinstance(first.branch, Doubled)
    assert isinstance(second.branch, LayerChoice)


class FixedModule(BaseOneShotLightningModule):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return self.loss_of(batch, batch_idx)

    def export(self) -> Any:
        return {"branch": "line"}


class Fixed(OneShotStrategy):
    """Algorithm of a third party: it trains the second branch."""

    def hook_arguments(self, model_space: ModelSpace) -> dict[str, Any]:
        return {"path": SampledPath({"branch": "line"})}

    def default_mutation_hooks(self) -> list[Any]:
        return [path_hook]

    def configure_oneshot_module(self, training_module: pl.LightningModule) -> FixedModule:
        return FixedModule(training_module)


def test_new_algorithm_is_a_strategy_and_a_module() -> None:
    torch.manual_seed(0)
    strategy = Fixed()
    space = RawFormatModelSpace(Branches(), evaluator(learning_rate=0.1, max_epochs=5))

    with quiet_lightning():
        strategy(space, SequentialExecutionEngine())
    (model,) = strategy.list_models()

    assert model.sample == {"branch": "line"}
    assert model.metric < 0.5


# Lightning 2.6 calls functions of torch 2.13 that are deprecated, and advises more processes.
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning")
@pytest.mark.parametrize("kind", [DARTS, ENAS, RandomOneShot])
def test_search_warns_of_nothing(kind: type[OneShotStrategy]) -> None:
    strategy = kind()
    space = RawFormatModelSpace(Branches(), evaluator(log_every_n_steps=1))

    strategy(space, SequentialExecutionEngine())

    assert strategy.status.value == "succeeded"


def test_state_names_the_newest_checkpoint_if_its_own_was_replaced(tmp_path: Path) -> None:
    for age, name in enumerate(("old.ckpt", "new.ckpt")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (age, age))
    strategy = RandomOneShot()

    strategy.load_state_dict({"ckpt_path": str(tmp_path / "deleted.ckpt")})

    assert strategy.state_dict() == {"ckpt_path": str(tmp_path / "new.ckpt")}


class HookedData(pl.LightningDataModule):
    """Data whose batches pass a hook."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths: set[int] = set()

    def train_dataloader(self) -> Any:
        return line_data()

    def val_dataloader(self) -> Any:
        return line_data(seed=1)

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        self.lengths.add(len(batch[0]))
        return batch


@pytest.mark.parametrize("kind", [DARTS, ENAS, RandomOneShot])
def test_hooks_of_a_datamodule_get_the_batches_of_its_loaders(kind: type[OneShotStrategy]) -> None:
    data = HookedData()
    strategy = kind()
    made = evaluator(train_dataloaders=None, val_dataloaders=None, datamodule=data)

    with quiet_lightning():
        strategy(RawFormatModelSpace(Branches(), made), SequentialExecutionEngine())

    assert data.lengths == {8}


@pytest.mark.parametrize("kind", [DARTS, ENAS, RandomOneShot])
def test_datamodule_of_data_sets_is_used(kind: type[OneShotStrategy]) -> None:
    with quiet_lightning():
        data = pl.LightningDataModule.from_datasets(
            line_data().dataset, line_data(seed=1).dataset, batch_size=8
        )
        made = evaluator(train_dataloaders=None, val_dataloaders=None, datamodule=data)
        strategy = kind()
        strategy(RawFormatModelSpace(Branches(), made), SequentialExecutionEngine())

    assert strategy.oneshot_module.trainer.num_training_batches >= 2


@pytest.mark.parametrize(
    ("argument", "value", "remedy"),
    [
        ("gradient_clip_val", 2.0, r"DARTS\(gradient_clip_val=2.0\)"),
        ("accumulate_grad_batches", 2, "larger batches"),
    ],
)
def test_argument_of_a_trainer_that_steps_optimizers_is_refused(
    argument: str, value: float, remedy: str
) -> None:
    strategy = DARTS()
    strategy.mutate_model(Branches())

    with pytest.raises(ValueError, match=f"{argument} of the trainer must be .*{remedy}"):
        strategy.mutate_evaluator(evaluator(**{argument: value}))

    free = RandomOneShot()
    free.mutate_model(Branches())
    assert free.mutate_evaluator(evaluator(**{argument: value})).module is free.oneshot_module


def test_one_loader_is_taken_of_a_list_or_dict() -> None:
    loader = line_data()

    for loaders in ([loader], {"first": loader}, loader):
        assert only_loader(loaders, "val_dataloaders", "ENAS") is loader
    assert only_loader([1, 2], "val_dataloaders", "ENAS") == [1, 2]
    with pytest.raises(ValueError, match="ENAS needs one loader in val_dataloaders, got 2"):
        only_loader([loader, loader], "val_dataloaders", "ENAS")


@pytest.mark.parametrize("kind", [DARTS, ENAS])
def test_space_without_a_choice_is_refused(kind: type[OneShotStrategy]) -> None:
    class Fixed(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 1)

    strategy = kind()
    strategy.mutate_model(Fixed())

    with pytest.raises(ValueError, match=f"space of {kind.__name__} must have a choice"):
        strategy.mutate_evaluator(evaluator())
