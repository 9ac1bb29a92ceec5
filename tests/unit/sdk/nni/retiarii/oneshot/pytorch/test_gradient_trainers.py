"""One-shot trainers that learn an architecture by gradients."""

import logging
from typing import Any

import pytest
import torch
from torch import nn

from nni.nas.strategy import DARTS
from nni.retiarii import fixed_arch
from nni.retiarii.deprecation import warn_once
from nni.retiarii.oneshot.pytorch import DartsTrainer, ProxylessTrainer
from tests.support.oneshot_trainers import TwoBranches, arguments, points

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


def logits_of(trainer: DartsTrainer) -> torch.Tensor:
    strategy = trainer.strategy
    assert isinstance(strategy, DARTS)
    return strategy.architecture.logits("branch").detach().clone()


@pytest.mark.claim("nas", 59)
def test_exported_architecture_is_one_of_fixed_arch() -> None:
    torch.manual_seed(0)
    trainer = DartsTrainer(
        **arguments(TwoBranches(), epochs=4), dataset=points(256), arc_learning_rate=0.1
    )

    trainer.fit()
    architecture = trainer.export()

    assert architecture == {"branch": "1"}
    with fixed_arch(architecture):
        assert isinstance(TwoBranches().branch, nn.Linear)


@pytest.mark.claim("nas", 59)
def test_second_order_changes_the_gradient_of_the_architecture() -> None:
    learned = []
    for unrolled in (False, True):
        torch.manual_seed(0)
        trainer = DartsTrainer(
            **arguments(TwoBranches()), dataset=points(), arc_learning_rate=0.1, unrolled=unrolled
        )
        trainer.fit()
        learned.append(logits_of(trainer))

    # Both searches see the same batches from the same weights; only the gradient differs.
    assert not torch.equal(*learned)


def test_weights_are_those_of_the_optimizer() -> None:
    model = TwoBranches()
    weight: Any = model.branch["1"].weight
    before = weight.detach().clone()

    DartsTrainer(**arguments(model), dataset=points()).fit()

    assert not torch.equal(weight, before)


def test_gradient_of_the_weights_has_no_limit_for_zero() -> None:
    trainer = DartsTrainer(**arguments(TwoBranches()), dataset=points(), grad_clip=0)

    assert trainer.new_strategy()._options["gradient_clip_val"] is None


def test_metrics_are_logged_from_time_to_time(caplog: pytest.LogCaptureFixture) -> None:
    trainer = DartsTrainer(**arguments(TwoBranches()), dataset=points(), log_frequency=2)

    with caplog.at_level(logging.INFO, "nni.retiarii"):
        trainer.fit()

    # Half of 64 points are two batches, and every second one is logged.
    logged = [one.message for one in caplog.records if "accuracy" in one.message]
    assert logged
    assert all("batch 0: accuracy" in one for one in logged)


def test_search_that_did_not_run_exports_nothing() -> None:
    with pytest.raises(RuntimeError, match="DartsTrainer has no architecture yet; call fit"):
        DartsTrainer(**arguments(TwoBranches()), dataset=points()).export()


def test_proxyless_exports_the_position_of_a_layer() -> None:
    torch.manual_seed(0)
    trainer = ProxylessTrainer(
        **arguments(TwoBranches(), epochs=3), dataset=points(), arc_learning_rate=0.1
    )

    trainer.fit()
    architecture = trainer.export()

    assert set(architecture) == {"branch"}
    assert architecture["branch"] in {0, 1}
    with fixed_arch(architecture):
        assert type(TwoBranches().branch).__name__ == ("Zero", "Linear")[architecture["branch"]]


@pytest.mark.parametrize("trainer", [DartsTrainer, ProxylessTrainer])
def test_trainer_warns_of_the_newer_name_once(trainer: Any) -> None:
    warn_once.cache_clear()
    given = arguments(TwoBranches())
    warn_once.cache_clear()

    with pytest.warns(DeprecationWarning, match=r"nni\.nas\.strategy\.") as caught:
        _ = [trainer(**given, dataset=points()) for _ in range(2)]

    assert len(caught) == 1
