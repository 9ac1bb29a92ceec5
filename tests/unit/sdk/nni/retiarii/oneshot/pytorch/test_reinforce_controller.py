"""Policy that learns by REINFORCE with a moving baseline."""

import pytest
import torch

from nni.nas.oneshot.pytorch.controller import ControllerEpisode
from nni.retiarii.oneshot.pytorch.reinforce_controller import ReinforceController


def chance(policy: ReinforceController, action: int) -> float:
    return float(policy.evaluate(torch.tensor([[action]]))[0].detach().exp())


def test_action_with_a_reward_above_the_baseline_becomes_more_probable() -> None:
    torch.manual_seed(0)
    policy = ReinforceController([2], hidden=4, learning_rate=0.1, baseline_decay=0.5)
    before = chance(policy, 1)

    policy.update([ControllerEpisode((1,), (0.0,), 1.0)])

    assert chance(policy, 1) > before


def test_baseline_moves_towards_the_rewards() -> None:
    policy = ReinforceController([2], baseline_decay=0.75)

    policy.update([ControllerEpisode((0,), (0.0,), 8.0)] * 2)

    # A quarter of the reward, then three quarters of that and another quarter of the reward.
    assert float(policy.get_buffer("baseline")) == pytest.approx(3.5)


def test_entropy_alone_evens_the_actions_out() -> None:
    torch.manual_seed(0)
    policy = ReinforceController([2], hidden=4, learning_rate=0.05, entropy_weight=1.0)
    before = abs(chance(policy, 0) - 0.5)

    policy.update([ControllerEpisode((0,), (0.0,), 0.0)] * 4, batch_size=1)

    assert abs(chance(policy, 0) - 0.5) < before


def test_no_episode_changes_nothing() -> None:
    policy = ReinforceController([2])
    before = [one.detach().clone() for one in policy.parameters()]

    policy.update([])

    assert all(map(torch.equal, before, policy.parameters()))
