"""Policy that chooses one action after another."""

import math

import pytest
import torch

from nni.nas.oneshot.pytorch.controller import Controller, ControllerEpisode

SIZES = [3, 2, 4]


def controller(**arguments: float) -> Controller:
    torch.manual_seed(0)
    return Controller(SIZES, hidden=16, **arguments)


def test_actions_are_alternatives_of_their_decision() -> None:
    policy = controller()

    actions = [policy.act()[0] for _ in range(50)]

    for step, size in enumerate(SIZES):
        assert {one[step] for one in actions} == set(range(size))


def test_evaluation_gives_the_probabilities_of_the_choice() -> None:
    policy = controller()
    actions, logarithms = policy.act()

    found, entropy, value = policy.evaluate(torch.tensor([actions]))

    torch.testing.assert_close(found[0].detach(), torch.tensor(logarithms))
    assert entropy.shape == value.shape == (1, 3)


def test_entropy_is_at_most_that_of_the_uniform_choice() -> None:
    _, entropy, _ = controller().evaluate(torch.tensor([[0, 0, 0]]))

    limits = torch.tensor([math.log(size) for size in SIZES])
    assert bool((entropy[0] <= limits + 1e-6).all())
    assert bool((entropy[0] > 0.8 * limits).all())


def test_policy_learns_the_rewarded_actions() -> None:
    policy = controller(learning_rate=0.02)
    target = (2, 1, 0)

    for _ in range(15):
        trajectories = []
        for _ in range(20):
            actions, logarithms = policy.act()
            reward = float(sum(map(int.__eq__, actions, target)))
            trajectories.append(ControllerEpisode(actions, logarithms, reward))
        policy.update(trajectories, batch_size=10, repeat=3)

    assert policy.best() == target


def test_equal_rewards_and_no_trajectories_are_no_error() -> None:
    policy = controller()
    before = {name: value.clone() for name, value in policy.state_dict().items()}

    policy.update([])

    assert all(torch.equal(before[name], value) for name, value in policy.state_dict().items())
    actions, logarithms = policy.act()
    policy.update([ControllerEpisode(actions, logarithms, 1.0)] * 3)
    assert all(bool(value.isfinite().all()) for value in policy.state_dict().values())


@pytest.mark.parametrize("sizes", [[], [2, 0]])
def test_decisions_without_alternatives_are_refused(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="sizes must be"):
        Controller(sizes)
