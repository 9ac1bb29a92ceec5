"""One-shot trainers that sample paths."""

from typing import Any

import pytest
import torch

from nni.retiarii import fixed_arch
from nni.retiarii.deprecation import warn_once
from nni.retiarii.oneshot.pytorch import EnasTrainer, RandomTrainer, SinglePathTrainer
from nni.retiarii.oneshot.pytorch.reinforce_controller import ReinforceController
from nni.retiarii.oneshot.pytorch.sampling_trainers import RepeatedBatches
from tests.support.oneshot_trainers import TwoBranches, arguments, points, reward

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


def test_policy_learns_the_branch_with_the_higher_reward() -> None:
    torch.manual_seed(0)
    trainer = EnasTrainer(
        **arguments(TwoBranches(), epochs=4),
        reward_function=reward,
        dataset=points(256),
        ctrl_lr=0.05,
        ctrl_steps=10,
        ctrl_steps_aggregate=5,
        baseline_decay=0.5,
        ctrl_kwargs={"lstm_size": 8},
    )

    trainer.fit()
    architecture = trainer.export()

    assert architecture == {"branch": "1"}
    with fixed_arch(architecture):
        assert type(TwoBranches().branch).__name__ == "Linear"


def test_arguments_of_the_controller_reach_the_policy() -> None:
    trainer = EnasTrainer(
        **arguments(TwoBranches()),
        reward_function=reward,
        dataset=points(),
        entropy_weight=0.5,
        ctrl_lr=0.25,
        ctrl_kwargs={"lstm_size": 8},
    )

    policy = trainer.new_strategy()._policy_fn([2, 3])

    assert isinstance(policy, ReinforceController)
    assert (policy.entropy_weight, policy.baseline_decay) == (0.5, 0.999)
    assert policy.recurrent.hidden_size == 8
    assert policy.optimizer.param_groups[0]["lr"] == 0.25


def test_data_of_the_policy_are_all_batches_of_its_half_by_default() -> None:
    trainer = EnasTrainer(**arguments(TwoBranches()), reward_function=reward, dataset=points())

    assert [len(loader) for loader in trainer.loaders()] == [2, 2]


def test_batches_are_repeated_until_there_are_enough() -> None:
    batches = RepeatedBatches([1, 2, 3], 5)

    assert len(batches) == 5
    assert list(batches) == [1, 2, 3, 1, 2]


@pytest.mark.claim("nas", 60)
def test_single_path_exports_labels_of_the_network_only() -> None:
    trainer = SinglePathTrainer(
        **arguments(TwoBranches()), dataset_train=points(), dataset_valid=points(16)
    )

    trainer.fit()
    architecture = trainer.export()

    assert set(architecture) == {"branch"}
    assert architecture["branch"] in {"0", "1"}


def test_random_trainer_is_another_name() -> None:
    assert RandomTrainer is SinglePathTrainer


@pytest.mark.parametrize(
    ("trainer", "data"),
    [
        (EnasTrainer, {"dataset": points(), "reward_function": reward}),
        (SinglePathTrainer, {"dataset_train": points(), "dataset_valid": points()}),
    ],
)
def test_trainer_warns_of_the_newer_name_once(trainer: Any, data: Any) -> None:
    given = arguments(TwoBranches())
    warn_once.cache_clear()

    with pytest.warns(DeprecationWarning, match=r"nni\.nas\.strategy\.") as caught:
        _ = [trainer(**given, **data) for _ in range(2)]

    assert len(caught) == 1
