"""ENAS: a policy learns which paths earn a high reward."""

from collections.abc import Sequence
from typing import Any

import pytest

from nni.nas.nn.pytorch import InputChoice, ModelSpace
from nni.nas.oneshot.pytorch.controller import Controller
from nni.nas.strategy.oneshot import ENAS
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Everything, Training, line_data


@pytest.mark.claim("nas", 57)
def test_filter_is_refused() -> None:
    with pytest.raises(ValueError, match="filter must be None"):
        ENAS(filter=lambda sample: True)


@pytest.mark.parametrize(
    "arguments",
    [{"batches_per_update": 0}, {"log_prob_every_n_step": 0}, {"warmup_epochs": -1}],
)
def test_number_outside_its_range_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        ENAS(**arguments)


def test_positive_penalty_on_the_reward_warns() -> None:
    class Cost:
        def profile(self, sample: Any) -> float:
            return 1.0

    with pytest.warns(UserWarning, match="normally negative"):
        ENAS(penalty={"profiler": Cost(), "baseline": 1, "scale": 1})


def test_policy_is_built_for_the_decisions_of_the_space() -> None:
    built: list[list[int]] = []

    def policy(sizes: Sequence[int]) -> Controller:
        built.append(list(sizes))
        return Controller(sizes, hidden=4)

    strategy = ENAS(policy_fn=policy)
    space = strategy.mutate_model(Everything())
    module = strategy.configure_oneshot_module(Training(space))

    # Width, layer, depth, skip, two operators and their inputs.
    assert built == [[2, 2, 3, 3, 2, 2, 1, 2]]
    assert space.contains(module.export())


def test_several_inputs_at_once_are_refused() -> None:
    class Pairs(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.skip = InputChoice(3, 2, label="skip")

    with pytest.raises(ValueError, match="must choose one candidate"):
        ENAS().mutate_model(Pairs())


def test_training_precedes_validation_in_an_epoch() -> None:
    loader = ENAS().train_dataloader([1, 2], [3])

    assert list(loader) == [("train", 1), ("train", 2), ("val", 3)]
    assert ENAS().val_dataloader([1], [2]) is None  # type: ignore[func-returns-value]  # no validation


def test_module_needs_a_supernet() -> None:
    with pytest.raises(RuntimeError, match="call mutate_model first"):
        ENAS().configure_oneshot_module(Training(Everything()))


def test_loaders_in_lists_are_taken_out() -> None:
    loader = ENAS().train_dataloader([line_data(8)], {"val": line_data(16)})

    assert [name for name, _ in loader] == ["train", "val", "val"]
