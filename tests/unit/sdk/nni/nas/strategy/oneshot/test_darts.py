"""DARTS: gradient descent on a relaxation of all choices."""

from typing import Any

import pytest

import nni
from nni.nas.nn.pytorch import ModelSpace, MutableLinear
from nni.nas.oneshot.pytorch.architecture import ArchitectureWeights
from nni.nas.oneshot.pytorch.differentiable_training import DifferentiableLightningModule
from nni.nas.strategy.oneshot import DARTS
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Everything, Training


def test_every_label_that_is_no_part_of_a_cell_has_logits() -> None:
    strategy = DARTS()
    space = strategy.mutate_model(Everything())

    labels = set(strategy.architecture.values)

    assert {"width", "layer", "depth", "skip"} <= labels
    assert not any(label.startswith(("cell/op", "cell/input")) for label in labels)
    assert space.simplify().keys() >= {"cell/op_1_0", "cell/input_2_0"}


def test_label_of_the_space_itself_has_logits() -> None:
    class Registered(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.width = self.add_mutable(nni.choice("unused", [1, 2]))
            self.layer = MutableLinear(2, nni.choice("width", [1, 2]))

    strategy = DARTS()
    with pytest.warns(RuntimeWarning, match="'unused' of Registered have no effect in DARTS"):
        strategy.mutate_model(Registered())

    assert set(strategy.architecture.values) == {"unused", "width"}


def test_arguments_reach_the_training() -> None:
    strategy = DARTS(
        arc_learning_rate=0.5,
        gradient_clip_val=2.0,
        log_prob_every_n_step=3,
        warmup_epochs=4,
        unrolled=True,
    )
    space = strategy.mutate_model(Everything())

    module = strategy.configure_oneshot_module(Training(space))

    assert isinstance(module, DifferentiableLightningModule)
    assert module.architecture_optimizers()[0].param_groups[0]["lr"] == 0.5
    assert module.gradient_clip_val == 2.0
    assert module.log_prob_every_n_step == 3
    assert module.warmup_epochs == 4
    assert module.unrolled


def test_optimizer_of_the_logits_is_that_of_the_paper() -> None:
    strategy = DARTS()
    space = strategy.mutate_model(Everything())
    (optimizer,) = strategy.configure_oneshot_module(Training(space)).architecture_optimizers()

    (group,) = optimizer.param_groups

    assert (group["lr"], group["betas"], group["weight_decay"]) == (3e-4, (0.5, 0.999), 1e-3)


def test_batches_of_both_loaders_are_read_together() -> None:
    assert DARTS().train_dataloader("train", "val") == {"train": "train", "val": "val"}
    assert DARTS().val_dataloader("train", "val") is None  # type: ignore[func-returns-value]  # no validation


@pytest.mark.parametrize(
    "arguments",
    [{"arc_learning_rate": -1}, {"log_prob_every_n_step": 0}, {"warmup_epochs": -1}],
)
def test_number_outside_its_range_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        DARTS(**arguments)


def test_penalty_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="ExpectationProfilerPenalty"):
        DARTS(penalty=3)


def test_there_are_no_logits_before_the_conversion() -> None:
    with pytest.raises(RuntimeError, match="call mutate_model first"):
        assert isinstance(DARTS().architecture, ArchitectureWeights)


def test_penalty_on_labels_without_probabilities_is_refused() -> None:
    class Cost:
        expression = nni.choice("other", [1, 2]) + nni.choice("width", [2, 4])

    strategy = DARTS(penalty={"profiler": Cost(), "baseline": 1})
    space = strategy.mutate_model(Everything())

    with pytest.raises(ValueError, match=r"must depend on labels .* got 'other': labels of a Cell"):
        strategy.configure_oneshot_module(Training(space))
