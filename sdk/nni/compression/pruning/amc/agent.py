"""Agent that learns one number in [0, 1] for each state: deep deterministic policy gradient."""

import copy
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

_BASELINE_MOMENTUM: Final = 0.5
"""Weight of the old mean reward in the moving one."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Settings of an agent: widths, learning rates, warm-up, discount, batch size, noise.

    Raises:
        ValueError: a number is out of range.
    """

    hidden1: int = 300
    """Width of the first hidden layer."""
    hidden2: int = 300
    """Width of the second hidden layer."""
    critic_rate: float = 1e-3
    """Learning rate of the critic."""
    actor_rate: float = 1e-4
    """Learning rate of the actor."""
    warmup: int = 100
    """Episodes of random actions, before it learns."""
    discount: float = 1.0
    """Weight of the value of the next state."""
    batch_size: int = 64
    """Transitions of an update."""
    tau: float = 0.01
    """Part of the networks that moves into their targets in an update."""
    init_delta: float = 0.5
    """Standard deviation of the noise after the warm-up."""
    delta_decay: float = 0.99
    """Factor of the standard deviation for each episode."""

    def __post_init__(self) -> None:
        for name in ("hidden1", "hidden2", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, got {getattr(self, name)}")
        if self.warmup < 0:
            raise ValueError(f"warmup must be >= 0, got {self.warmup}")
        for name in ("critic_rate", "actor_rate", "init_delta"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)}")
        for name in ("discount", "tau", "delta_decay"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in (0, 1], got {getattr(self, name)}")

    def noise(self, episode: int) -> float:
        """Return the standard deviation of the noise in an episode after the warm-up.

        Args:
            episode: number of the episode, from 0.
        """
        return self.init_delta * self.delta_decay ** (episode - self.warmup)


@dataclass(frozen=True, slots=True)
class Transition:
    """Step of an episode: state, action, next state, reward, and whether it is the last."""

    state: Sequence[float]
    """State before the step."""
    action: float
    """What was done."""
    next_state: Sequence[float]
    """State after the step."""
    reward: float
    """Reward of the episode."""
    done: bool
    """Whether the episode ended with the step."""


class _Critic(nn.Module):
    """Network that returns the value of an action in a state."""

    def __init__(self, states: int, hidden1: int, hidden2: int) -> None:
        super().__init__()
        self.of_state = nn.Linear(states, hidden1)
        self.of_action = nn.Linear(1, hidden1)
        self.hidden = nn.Linear(hidden1, hidden2)
        self.value = nn.Linear(hidden2, 1)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        found = torch.relu(self.of_state(state) + self.of_action(action))
        value: Tensor = self.value(torch.relu(self.hidden(found)))
        return value


class Agent:
    """DDPG agent: actor, critic, their slow copies, and a bounded memory of transitions.

    Args:
        state_size: numbers in a state.
        memory_size: transitions that are remembered, >= 1.
        lower: smallest action.
        upper: largest action.
        settings: see `AgentSettings`.
        generator: source of random numbers, on the CPU.

    Attributes:
        actor: network from a state to an action.
        critic: network from a state and an action to their value.

    Source: Lillicrap et al., Continuous control with deep reinforcement learning, 2015, with the
        exploration of He et al., AMC, 2018.
    """

    def __init__(
        self,
        state_size: int,
        memory_size: int,
        lower: float,
        upper: float,
        settings: AgentSettings,
        generator: torch.Generator,
    ) -> None:
        self._settings = settings
        self._generator = generator
        self._bounds = lower, upper
        self._memory: deque[Transition] = deque(maxlen=memory_size)
        self._baseline: float | None = None
        widths = settings.hidden1, settings.hidden2
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))
            self.actor = _actor(state_size, *widths)
            self.critic: nn.Module = _Critic(state_size, *widths)
        self._target_actor = copy.deepcopy(self.actor)
        self._target_critic = copy.deepcopy(self.critic)
        self._actor_steps = torch.optim.Adam(self.actor.parameters(), lr=settings.actor_rate)
        self._critic_steps = torch.optim.Adam(self.critic.parameters(), lr=settings.critic_rate)

    def act(self, state: Sequence[float], episode: int) -> float:
        """Return an action: a random one in the warm-up, then the actor's with noise.

        Args:
            state: numbers of the state.
            episode: number of the episode, from 0.
        """
        lower, upper = self._bounds
        if episode < self._settings.warmup:
            return lower + (upper - lower) * self._uniform()
        with torch.no_grad():
            mean = float(self.actor(torch.tensor([state], dtype=torch.float32)))
        return truncated_normal(mean, self._settings.noise(episode), lower, upper, self._uniform())

    def remember(self, transitions: Sequence[Transition]) -> None:
        """Add the transitions of an episode to the memory; if full, it drops the oldest.

        Args:
            transitions: in order.
        """
        self._memory.extend(transitions)

    def learn(self) -> None:
        """Update actor, critic and slow copies once, by a random batch of the memory."""
        count = min(self._settings.batch_size, len(self._memory))
        order = torch.randperm(len(self._memory), generator=self._generator)[:count].tolist()
        batch = [self._memory[index] for index in order]
        states = torch.tensor([list(one.state) for one in batch], dtype=torch.float32)
        following = torch.tensor([list(one.next_state) for one in batch], dtype=torch.float32)
        actions = torch.tensor([[one.action] for one in batch], dtype=torch.float32)
        rewards = torch.tensor([[one.reward] for one in batch], dtype=torch.float32)
        goes_on = torch.tensor([[float(not one.done)] for one in batch])
        mean = float(rewards.mean())
        old = mean if self._baseline is None else self._baseline
        self._baseline = _BASELINE_MOMENTUM * old + (1 - _BASELINE_MOMENTUM) * mean
        with torch.no_grad():
            value = self._target_critic(following, self._target_actor(following))
            wanted = rewards - self._baseline + self._settings.discount * goes_on * value
        found = self.critic(states, actions)
        _step(self._critic_steps, nn.functional.mse_loss(found, wanted))
        _step(self._actor_steps, -self.critic(states, self.actor(states)).mean())
        self._follow()

    def _follow(self) -> None:
        """Move the target networks' parameters towards the trained ones, by the part `tau`."""
        with torch.no_grad():
            for target, source in self._pairs():
                target.lerp_(source, self._settings.tau)

    def _pairs(self) -> Iterator[tuple[Tensor, Tensor]]:
        yield from zip(self._target_actor.parameters(), self.actor.parameters(), strict=True)
        yield from zip(self._target_critic.parameters(), self.critic.parameters(), strict=True)

    def _uniform(self) -> float:
        return float(torch.rand((), generator=self._generator, dtype=torch.float64))


def truncated_normal(
    mean: float, deviation: float, lower: float, upper: float, uniform: float
) -> float:
    """Return the number at quantile `uniform` of a normal distribution cut to a range.

    Args:
        mean: of the whole distribution.
        deviation: standard deviation of the whole distribution, > 0.
        lower: smallest number.
        upper: largest number.
        uniform: random number in [0, 1), which decides.

    Examples:
        >>> truncated_normal(0.5, 0.1, 0.2, 0.8, 0.5)
        0.5
    """
    scale = deviation * math.sqrt(2)
    first, last = math.erf((lower - mean) / scale), math.erf((upper - mean) / scale)
    place = torch.tensor(first + (last - first) * uniform, dtype=torch.float64)
    quantile = float(torch.erfinv(place))
    found = mean + scale * quantile if math.isfinite(quantile) else mean  # far outside the range
    return min(max(found, lower), upper)


def _actor(states: int, hidden1: int, hidden2: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(states, hidden1),
        nn.ReLU(),
        nn.Linear(hidden1, hidden2),
        nn.ReLU(),
        nn.Linear(hidden2, 1),
        nn.Sigmoid(),
    )


def _step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()
