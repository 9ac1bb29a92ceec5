"""Policy that chooses one action after another, and learns from rewards.

A recurrent network reads the action before and chooses the next. It learns by the clipped
objective of proximal policy optimization, with a learned value of each state as baseline.

Source: Zoph, Le, Neural Architecture Search with Reinforcement Learning, 2017, section 3; Schulman
et al., Proximal Policy Optimization Algorithms, 2017, equation 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

HIDDEN = 64
"""Width of the recurrent network."""
LEARNING_RATE = 1e-4
CLIP = 0.2
"""Largest change of a ratio of probabilities that the objective rewards."""
VALUE_WEIGHT = 0.5
"""Weight of the loss of the value."""
ENTROPY_WEIGHT = 0.01
"""Weight of the entropy, which keeps the policy from deciding too early."""


@dataclass(frozen=True, slots=True)
class ControllerEpisode:
    """Actions of one episode, their log probabilities, and the reward."""

    actions: tuple[int, ...]
    """Position of the chosen alternative in each step."""
    log_probabilities: tuple[float, ...]
    """Logarithm of the probability of each action when it was chosen."""
    reward: float
    """Reward at the end; larger is better."""


class Controller(nn.Module):
    """Recurrent policy, with a value estimate, for a fixed sequence of decisions.

    Args:
        sizes: number of alternatives of each decision.
        hidden: width of the recurrent network.
        learning_rate: of its optimizer.

    Raises:
        ValueError: there is no decision, or one without alternatives.

    Examples:
        >>> controller = Controller([2, 3])
        >>> actions, _ = controller.act()
        >>> len(actions)
        2
    """

    def __init__(
        self, sizes: Sequence[int], hidden: int = HIDDEN, learning_rate: float = LEARNING_RATE
    ) -> None:
        super().__init__()
        if not sizes or min(sizes) < 1:
            raise ValueError(f"sizes must be numbers of alternatives, each >= 1, got {sizes}")
        self.sizes = list(sizes)
        width = max(sizes)
        # Row 0 stands for the start; action a is row a + 1.
        self.embedding = nn.Embedding(width + 1, hidden)
        self.recurrent = nn.LSTM(hidden, hidden, batch_first=True)
        self.policy = nn.Linear(hidden, width)
        self.value = nn.Linear(hidden, 1)
        allowed = torch.arange(width) < torch.tensor(self.sizes).unsqueeze(1)
        self.register_buffer("_allowed", allowed, persistent=False)
        self.optimizer = torch.optim.Adam(self.parameters(), learning_rate)

    @torch.no_grad()
    def act(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Draw the actions of an episode; return them and the logarithms of their probabilities."""
        state = None
        previous = torch.zeros(1, 1, dtype=torch.long, device=self.policy.weight.device)
        actions, logarithms = [], []
        for allowed in self._allowed_rows():
            output, state = self.recurrent(self.embedding(previous), state)
            logits = self.policy(output[0, 0]).masked_fill(~allowed, float("-inf"))
            chances = functional.softmax(logits, -1)
            action = torch.multinomial(chances, 1)
            actions.append(int(action))
            logarithms.append(float(chances[action].log()))
            previous = action.view(1, 1) + 1
        return tuple(actions), tuple(logarithms)

    @torch.no_grad()
    def best(self) -> tuple[int, ...]:
        """Return greedy actions: each is the most probable one after those before."""
        state = None
        previous = torch.zeros(1, 1, dtype=torch.long, device=self.policy.weight.device)
        actions = []
        for allowed in self._allowed_rows():
            output, state = self.recurrent(self.embedding(previous), state)
            logits = self.policy(output[0, 0]).masked_fill(~allowed, float("-inf"))
            actions.append(int(logits.argmax()))
            previous = logits.argmax().view(1, 1) + 1
        return tuple(actions)

    def evaluate(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log probability of each action, each decision's entropy, and the values.

        Args:
            actions: `(episodes, steps)`, long.

        Returns:
            Logarithms of probabilities, entropies and values; `(episodes, steps)` each.
        """
        previous = functional.pad(actions[:, :-1] + 1, (1, 0))
        output, _ = self.recurrent(self.embedding(previous))
        logits = self.policy(output).masked_fill(~self._allowed_mask(), float("-inf"))
        logarithms = functional.log_softmax(logits, -1)
        chosen = logarithms.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        finite = logarithms.masked_fill(~self._allowed_mask(), 0.0)
        entropy = -(finite.exp() * finite * self._allowed_mask()).sum(-1)
        return chosen, entropy, self.value(output).squeeze(-1)

    def update(
        self, trajectories: Sequence[ControllerEpisode], batch_size: int = 32, repeat: int = 5
    ) -> None:
        """Update the policy by proximal policy optimization on episodes with scaled rewards.

        Args:
            trajectories: episodes with their rewards; none changes nothing.
            batch_size: episodes in a step of the optimizer.
            repeat: how often all episodes are used.
        """
        if not trajectories:
            return
        device = self.policy.weight.device
        actions = torch.tensor([one.actions for one in trajectories], device=device)
        before = torch.tensor([one.log_probabilities for one in trajectories], device=device)
        rewards = torch.tensor([one.reward for one in trajectories], device=device)
        deviation = rewards.std(unbiased=False)
        scaled = (rewards - rewards.mean()) / (deviation if deviation > 0 else 1.0)
        for _ in range(repeat):
            order = torch.randperm(len(trajectories), device=device)
            for rows in torch.split(order, batch_size):
                self._step(actions[rows], before[rows], scaled[rows].unsqueeze(1))

    def _step(self, actions: Tensor, before: Tensor, rewards: Tensor) -> None:
        """Take one optimizer step of clipped policy optimization; rewards are `(episodes, 1)`."""
        logarithms, entropy, value = self.evaluate(actions)
        advantage = rewards - value.detach()
        ratio = (logarithms - before).exp()
        objective = torch.minimum(
            ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage
        ).mean()
        mistake = (value - rewards).square().mean()
        loss = VALUE_WEIGHT * mistake - objective - ENTROPY_WEIGHT * entropy.mean()
        self.optimizer.zero_grad()
        torch.autograd.backward(loss)
        self.optimizer.step()

    def _allowed_mask(self) -> Tensor:
        """Return which alternatives each decision has, `(steps, alternatives)`."""
        allowed: Tensor = self.get_buffer("_allowed")
        return allowed

    def _allowed_rows(self) -> tuple[Tensor, ...]:
        return self._allowed_mask().unbind()
