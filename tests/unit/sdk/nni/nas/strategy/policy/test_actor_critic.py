import torch

from nni.nas.strategy.policy.actor_critic import ActorCritic


def network(*action_counts: int) -> ActorCritic:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = ActorCritic(action_counts)
        torch.nn.init.normal_(made.actor.weight)  # so that actions differ
    return made


def test_actions_that_a_step_lacks_have_no_probability() -> None:
    scores, _ = network(2, 4, 3)(torch.tensor([[1, 3, 2]]))

    assert (scores.exp() == 0).tolist() == [
        [[False, False, True, True], [False] * 4, [False, False, False, True]]
    ]
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(1, 3))


def test_later_actions_do_not_change_earlier_distributions() -> None:
    made = network(3, 3, 3)

    first, _ = made(torch.tensor([[0, 1, 2]]))
    second, _ = made(torch.tensor([[0, 2, 0]]))

    torch.testing.assert_close(first[:, :2], second[:, :2])
    assert not torch.allclose(first[:, 2], second[:, 2])


def test_games_are_drawn_from_the_distribution() -> None:
    made, generator = network(2, 3), torch.Generator().manual_seed(0)

    games = [tuple(made.play(generator)) for _ in range(2000)]

    for first in range(2):
        for second in range(3):
            with torch.no_grad():
                scores, _ = made(torch.tensor([[first, second]]))
            expected = scores[0, 0, first].exp() * scores[0, 1, second].exp()
            share = games.count((first, second)) / len(games)
            # Standard error is at most sqrt(0.25 / 2000) = 0.011; five of them.
            assert abs(share - expected.item()) < 0.056


def test_first_policy_is_nearly_uniform() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        scores, _ = ActorCritic((4, 4))(torch.tensor([[0, 3]]))

    torch.testing.assert_close(scores.exp(), torch.full((1, 2, 4), 0.25), atol=0.01, rtol=0)


def test_game_without_steps_has_no_actions() -> None:
    assert ActorCritic(()).play(torch.Generator()) == []
