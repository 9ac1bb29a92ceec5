import torch

from nni.mutable import Categorical
from nni.nas.strategy.policy.game import SampleGame
from nni.nas.strategy.policy.ppo import PpoPolicy, Trajectory

GAME = SampleGame({label: Categorical([0, 1, 2], label=label) for label in "ab"})


def played(policy: PpoPolicy, count: int) -> list[tuple[int, ...]]:
    return [tuple(policy.play()) for _ in range(count)]


def test_rewarded_actions_become_likely() -> None:
    policy = PpoPolicy(GAME, seed=0, learning_rate=0.01)

    for _ in range(10):
        games = [Trajectory(one, float(one == (2, 1))) for one in played(policy, 20)]
        policy.update(games, batch_size=8, repeat=4)

    # At first each of 9 games has a probability of 1/9: 11 of 100.
    assert played(policy, 100).count((2, 1)) > 60


def test_equal_rewards_teach_little() -> None:
    policy = PpoPolicy(GAME, seed=0)

    games = [Trajectory(one, 5.0) for one in played(policy, 20)]
    policy.update(games, batch_size=32, repeat=1)

    assert len(set(played(policy, 100))) == 9


def test_policies_with_the_same_seed_play_the_same_games() -> None:
    first, second = (PpoPolicy(GAME, seed=3) for _ in range(2))

    for policy in (first, second):
        policy.update([Trajectory((0, 1), 1.0), Trajectory((2, 2), 0.0)], batch_size=2, repeat=2)

    assert played(first, 20) == played(second, 20)


def test_global_random_numbers_are_left_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)

    policy = PpoPolicy(GAME, seed=1)
    policy.update([Trajectory(tuple(policy.play()), 1.0)], batch_size=2, repeat=2)

    torch.testing.assert_close(torch.rand(3), expected)


def test_restored_policy_continues() -> None:
    games = [Trajectory((0, 1), 1.0), Trajectory((2, 2), 0.0)]
    first, second = PpoPolicy(GAME, seed=0), PpoPolicy(GAME, seed=1)
    first.update(games, batch_size=4, repeat=3)

    second.load_state_dict(first.state_dict())
    for policy in (first, second):
        policy.update(games, batch_size=4, repeat=3)

    assert played(first, 20) == played(second, 20)


def test_game_without_steps_teaches_nothing() -> None:
    policy = PpoPolicy(SampleGame({}), seed=0)

    policy.update([Trajectory((), 1.0)], batch_size=4, repeat=1)

    assert policy.play() == []
