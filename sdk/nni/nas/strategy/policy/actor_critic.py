"""Network that proposes actions and predicts the reward, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn

HIDDEN_SIZE: Final = 64
_SMALL: Final = 0.01
"""Factor of the first weights of the actor, so that the first samples are nearly uniform."""


class ActorCritic(nn.Module):
    """LSTM over the actions so far, with a head for the next action and one for the reward.

    Args:
        action_counts: number of actions of each step.
        hidden_size: width of embeddings and LSTM.
    """

    mask: Tensor
    """`(steps, actions)`, bool: the actions that a step has."""

    def __init__(self, action_counts: Sequence[int], hidden_size: int = HIDDEN_SIZE) -> None:
        super().__init__()
        self.steps = len(action_counts)
        widest = max(action_counts, default=1)
        self.action_embedding = nn.Embedding(widest + 1, hidden_size)  # one more for the start
        self.step_embedding = nn.Embedding(max(self.steps, 1), hidden_size)
        self.lstm = nn.LSTM(hidden_size, hidden_size, batch_first=True)
        self.actor = nn.Linear(hidden_size, widest)
        self.critic = nn.Linear(hidden_size, 1)
        with torch.no_grad():
            self.actor.weight.mul_(_SMALL)
            self.actor.bias.zero_()
        mask = torch.arange(widest)[None, :] < torch.tensor(list(action_counts) or [1])[:, None]
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return log probabilities of each step's actions after those before, and reward estimates.

        Args:
            actions: `(games, steps)`, int64.

        Returns:
            Log-probabilities `(games, steps, actions)`, minus infinity where a step has no such
            action, and rewards `(games, steps)`.
        """
        previous = torch.nn.functional.pad(actions[:, :-1] + 1, (1, 0))
        hidden, _ = self.lstm(self.action_embedding(previous) + self.step_embedding.weight)
        return self._log_probabilities(hidden, self.mask), self.critic(hidden).squeeze(-1)

    @torch.no_grad()
    def play(self, generator: torch.Generator) -> list[int]:
        """Return the actions of one game, each drawn from its distribution.

        Args:
            generator: source of the draws.
        """
        actions: list[int] = []
        state: tuple[Tensor, Tensor] | None = None
        for step in range(self.steps):
            token = torch.tensor([[actions[-1] + 1 if actions else 0]])
            embedded = self.action_embedding(token) + self.step_embedding.weight[step]
            hidden, state = self.lstm(embedded, state)
            probabilities = self._log_probabilities(hidden[0, 0], self.mask[step]).exp()
            actions.append(int(torch.multinomial(probabilities, 1, generator=generator)))
        return actions

    def _log_probabilities(self, hidden: Tensor, mask: Tensor) -> Tensor:
        scores: Tensor = self.actor(hidden).masked_fill(~mask, -torch.inf)
        return torch.log_softmax(scores, dim=-1)
