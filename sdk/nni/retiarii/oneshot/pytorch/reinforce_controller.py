"""Policy that learns by REINFORCE with a moving baseline, as ENAS of NNI 2.x did.

Source: Pham et al., Efficient Neural Architecture Search via Parameter Sharing, 2018, section 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nni.nas.oneshot.pytorch.controller import HIDDEN, Controller, ControllerEpisode


class ReinforceController(Controller):
    """Recurrent policy whose baseline is a moving average of the rewards.

    Args:
        sizes: number of alternatives of each decision.
        hidden: width of the recurrent network.
        learning_rate: of its optimizer.
        entropy_weight: weight of the entropy in the objective.
        baseline_decay: share of the old baseline in the new one.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        hidden: int = HIDDEN,
        learning_rate: float = 3.5e-4,
        entropy_weight: float = 1e-4,
        baseline_decay: float = 0.999,
    ) -> None:
        super().__init__(sizes, hidden, learning_rate)
        self.entropy_weight = entropy_weight
        self.baseline_decay = baseline_decay
        self.register_buffer("baseline", torch.tensor(0.0))

    def update(
        self, trajectories: Sequence[ControllerEpisode], batch_size: int = 32, repeat: int = 1
    ) -> None:
        """Learn from episodes by REINFORCE in batches, `repeat` times; without any, change nothing.

        Args:
            trajectories: episodes with their rewards; none changes nothing.
            batch_size: episodes in a step of the optimizer.
            repeat: how often all episodes are used.
        """
        device = self.policy.weight.device
        for _ in range(repeat):
            for start in range(0, len(trajectories), batch_size):
                batch = trajectories[start : start + batch_size]
                actions = torch.tensor([one.actions for one in batch], device=device)
                rewards = torch.tensor([one.reward for one in batch], device=device)
                self._learn(actions, rewards)

    def _learn(self, actions: Tensor, rewards: Tensor) -> None:
        """Take one optimizer step on `(episodes, steps)` actions; rewards move the baseline."""
        advantages = torch.stack([self._above_baseline(reward) for reward in rewards])
        logarithms, entropy, _ = self.evaluate(actions)
        objective = (logarithms.sum(1) * advantages).mean()
        loss = -objective - self.entropy_weight * entropy.sum(1).mean()
        self.optimizer.zero_grad()
        torch.autograd.backward(loss)
        self.optimizer.step()

    def _above_baseline(self, reward: Tensor) -> Tensor:
        """Move the baseline towards a reward; return the distance of the reward from it."""
        baseline = self.get_buffer("baseline")
        baseline.mul_(self.baseline_decay).add_(reward, alpha=1 - self.baseline_decay)
        return reward - baseline
