import pytest
import torch

from nni.compression.pruning.amc.agent import (
    Agent,
    AgentSettings,
    Transition,
    truncated_normal,
)

SETTINGS = AgentSettings(hidden1=16, hidden2=16, warmup=10, batch_size=8, actor_rate=1e-2, tau=0.1)


def agent(settings: AgentSettings = SETTINGS, seed: int = 0) -> Agent:
    return Agent(2, 100, 0.2, 1.0, settings, torch.Generator().manual_seed(seed))


def test_the_warm_up_is_uniform_in_the_bounds() -> None:
    one = agent()

    found = [one.act([0.0, 0.0], 0) for _ in range(300)]

    assert all(0.2 <= action <= 1 for action in found)
    # The mean of 300 uniform numbers of width 0.8 deviates by 0.8 / sqrt(12 * 300) = 0.013.
    assert abs(sum(found) / 300 - 0.6) < 0.04


def test_noise_decays_after_the_warm_up() -> None:
    assert SETTINGS.noise(10) == 0.5
    assert SETTINGS.noise(12) == pytest.approx(0.5 * 0.99**2)


def test_it_learns_the_action_with_the_best_reward() -> None:
    one = agent()
    for episode in range(200):
        action = one.act([1.0, 0.0], episode)
        reward = 1 - abs(action - 0.8)
        one.remember([Transition([1.0, 0.0], action, [1.0, 0.0], reward, True)])
        if episode >= SETTINGS.warmup:
            one.learn()

    with torch.no_grad():
        learnt = float(one.actor(torch.tensor([[1.0, 0.0]])))
    assert abs(learnt - 0.8) < 0.1


def test_the_same_seed_gives_the_same_agent() -> None:
    found = []
    for _ in range(2):
        one = agent(seed=3)
        one.remember([Transition([0.0, 1.0], 0.5, [1.0, 1.0], 0.3, False)] * 4)
        one.learn()
        found.append([one.act([0.5, 0.5], 20) for _ in range(3)])

    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("mean", "uniform", "expected"),
    [(0.5, 0.0, 0.2), (0.5, 1.0, 1.0), (0.6, 0.5, 0.6), (-9.0, 0.5, 0.2), (9.0, 0.5, 1.0)],
)
def test_numbers_of_a_cut_normal_distribution(mean: float, uniform: float, expected: float) -> None:
    assert truncated_normal(mean, 0.3, 0.2, 1.0, uniform) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden1", 0),
        ("batch_size", 0),
        ("warmup", -1),
        ("critic_rate", 0.0),
        ("init_delta", 0.0),
        ("discount", 0.0),
        ("tau", 2.0),
        ("delta_decay", 1.5),
    ],
)
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*, got {value}"):
        AgentSettings(**{name: value})  # type: ignore[arg-type]  # the test
