"""Proximal policy optimisation of the network that chooses samples.

Source: Schulman, Wolski, Dhariwal, Radford and Klimov, Proximal Policy Optimization Algorithms,
2017, equations 7 and 9; the game with one reward at its end follows Zoph and Le, Neural
Architecture Search with Reinforcement Learning, ICLR 2017.

Departures: rewards are standardised among the games of an update, since metrics have any scale; the
advantage is reward minus prediction, as there is one reward and no discount; steps of one game stay
together in a batch, so that the LSTM runs once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch
from torch import Tensor

from nni.nas.strategy.policy.actor_critic import ActorCritic
from nni.nas.strategy.policy.game import SampleGame

LEARNING_RATE: Final = 1e-4
_CLIP: Final = 0.2
_VALUE_WEIGHT: Final = 0.5
_ENTROPY_WEIGHT: Final = 0.01
_GRADIENT_NORM: Final = 0.5
_LEAST_DEVIATION: Final = 1e-8
_SEEDS: Final = 2**63


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One finished game: its actions and the reward."""

    actions: tuple[int, ...]
    """Action of each step."""

    reward: float
    """Metric of the sample."""


class Policy(Protocol):
    """Interface of learners of actions, as `policy_fn` of `PolicyBasedRL` makes them."""

    def play(self) -> list[int]:
        """Return the actions of one game."""
        ...

    def update(self, trajectories: Sequence[Trajectory], *, batch_size: int, repeat: int) -> None:
        """Learn from finished games.

        Args:
            trajectories: the games, the newest last.
            batch_size: steps of a batch, roughly.
            repeat: passes over the games.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return plain values and tensors, from which `load_state_dict` restores the learner."""
        ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore what `state_dict` of a policy for the same game returned."""
        ...


PolicyFunction = Callable[[SampleGame], Policy]
"""Constructor of a learner for a game."""


class PpoPolicy:
    """Policy that learns by proximal policy optimization, with an LSTM.

    Args:
        game: the game.
        seed: of the first weights and all draws.
        learning_rate: of Adam.
    """

    def __init__(self, game: SampleGame, seed: int, learning_rate: float = LEARNING_RATE) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._network = ActorCritic(game.action_counts)
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=learning_rate)
        self._generator = torch.Generator().manual_seed((seed + 1) % _SEEDS)

    def play(self) -> list[int]:
        """Return the actions of one game, drawn from the current policy."""
        return self._network.play(self._generator)

    def update(self, trajectories: Sequence[Trajectory], *, batch_size: int, repeat: int) -> None:
        """Update the network by PPO on finished games with standardised rewards.

        Args:
            trajectories: the games.
            batch_size: steps of a batch; games stay whole.
            repeat: passes over the games.
        """
        actions = torch.tensor([one.actions for one in trajectories])
        if actions.numel() == 0:
            return
        rewards = _standardised(torch.tensor([one.reward for one in trajectories]))
        with torch.no_grad():
            scores, values = self._network(actions)
            old = _of_actions(scores, actions)
            advantages = _standardised(rewards[:, None] - values)
        games = max(1, batch_size // actions.shape[1])
        for _ in range(repeat):
            order = torch.randperm(len(actions), generator=self._generator)
            for batch in torch.split(order, games):
                self._step(actions[batch], rewards[batch], old[batch], advantages[batch])

    def _step(self, actions: Tensor, rewards: Tensor, old: Tensor, advantages: Tensor) -> None:
        scores, values = self._network(actions)
        ratio = (_of_actions(scores, actions) - old).exp()
        clipped = ratio.clamp(1 - _CLIP, 1 + _CLIP)
        gain = torch.minimum(ratio * advantages, clipped * advantages).mean()
        error = (values - rewards[:, None]).square().mean()
        probabilities = scores.exp()
        # An action that a step does not have counts nothing: 0 * -inf would be NaN.
        entropy = -(probabilities * scores.masked_fill(probabilities == 0, 0)).sum(-1).mean()
        loss = -gain + _VALUE_WEIGHT * error - _ENTROPY_WEIGHT * entropy
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._network.parameters(), _GRADIENT_NORM)
        self._optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """Return weights, optimizer and the state of the draws."""
        return {
            "network": self._network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore weights, optimizer and the state of the draws."""
        self._network.load_state_dict(state_dict["network"])
        self._optimizer.load_state_dict(state_dict["optimizer"])
        self._generator.set_state(state_dict["generator"])


def _standardised(values: Tensor) -> Tensor:
    """Return values in deviations from their mean; zeros if all are equal."""
    return (values - values.mean()) / (values.std(correction=0) + _LEAST_DEVIATION)


def _of_actions(scores: Tensor, actions: Tensor) -> Tensor:
    """Return the log-probabilities of the actions taken, `(games, steps)`."""
    return scores.gather(-1, actions[..., None]).squeeze(-1)
