"""Reinforcement learning of a policy that chooses models."""

from __future__ import annotations

import logging
import math
import random
import threading
import warnings
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from nni.mutable import Sample, SampleValidationError
from nni.nas.execution import ExecutionEngine, ModelEventType, TrainingEndEvent
from nni.nas.space import ExecutableModelSpace
from nni.nas.strategy.base import Strategy, has_metric, ignore_old_keywords
from nni.nas.strategy.open_models import OpenModels
from nni.nas.strategy.policy.game import SampleGame

if TYPE_CHECKING:
    from nni.nas.strategy.policy.ppo import Policy, PolicyFunction, Trajectory

_logger = logging.getLogger(__name__)

_UPDATE: Final = {"batch_size": 32, "repeat": 5, "update_times": 5}
"""Default arguments of an update."""
_INVALID_IN_A_ROW: Final = 20
"""Invalid samples in a row that the search survives."""
_OLD_KEYWORDS: Final = {
    "max_collect": "set max_trial_number of the experiment",
    "optimize_mode": "metrics are always maximised",
}
_SEEDS: Final = 2**32


class PolicyBasedRL(Strategy):
    """Search by a policy that learns which choices lead to good models.

    A model is a game with one step for each dimension, and its metric is the reward at the end. The
    policy, by default PPO with an LSTM, is updated after each `samples_per_update` models. Models
    may be evaluated several times. The space has choices of one value or of any subset only.

    Args:
        samples_per_update: models after which the policy is updated.
        replay_buffer_size: steps of the newest games that an update takes; None for those of
            `samples_per_update` games.
        reward_for_invalid: reward for samples that break a constraint and models without a
            metric; None: the policy does not learn from them.
        policy_fn: function of the `SampleGame` that returns the policy, see
            `nni.nas.strategy.policy.ppo.Policy`; None for PPO.
        update_kwargs: `batch_size`, `repeat` and `update_times`, where given in place of 32, 5, 5.
        seed: of first weights and all draws; None for another one each time.
        **old_keywords: `max_collect` and `optimize_mode` of NNI 2.x are ignored with a warning;
            `trial_per_collect` is the former name of `samples_per_update`.

    Raises:
        ValueError: `samples_per_update` is not positive, or an argument of updates is unknown.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.space import RawFormatModelSpace
        >>> from nni.testing.strategies import SimulatedEngine, TableSpace
        >>> space = TableSpace(Categorical([8, 16, 32], label="width"))
        >>> strategy = PolicyBasedRL(samples_per_update=5, seed=0)
        >>> strategy(
        ...     RawFormatModelSpace(space), SimulatedEngine(lambda sample: sample["width"], 20)
        ... )
        >>> strategy.list_models(limit=1)[0].sample
        {'width': 32}
    """

    def __init__(
        self,
        *,
        samples_per_update: int = 20,
        replay_buffer_size: int | None = None,
        reward_for_invalid: float | None = None,
        policy_fn: PolicyFunction | None = None,
        update_kwargs: Mapping[str, int] | None = None,
        seed: int | None = None,
        **old_keywords: Any,  # noqa: ANN401 - of any kind
    ) -> None:
        super().__init__()
        if "trial_per_collect" in old_keywords:
            samples_per_update = old_keywords.pop("trial_per_collect")
            warnings.warn(
                "trial_per_collect of PolicyBasedRL is now samples_per_update",
                DeprecationWarning,
                stacklevel=2,
            )
        ignore_old_keywords("PolicyBasedRL", old_keywords, _OLD_KEYWORDS)
        if samples_per_update < 1:
            raise ValueError(f"samples_per_update must be >= 1, got {samples_per_update}")
        unknown = set(update_kwargs or {}) - _UPDATE.keys()
        if unknown:
            raise ValueError(
                f"update_kwargs must have keys of {', '.join(_UPDATE)}, got {sorted(unknown)}"
            )
        self._samples_per_update = samples_per_update
        self._replay_buffer_size = replay_buffer_size
        self._reward_for_invalid = reward_for_invalid
        self._policy_fn = policy_fn
        self._update = {**_UPDATE, **(update_kwargs or {})}
        self._seed = random.SystemRandom().randrange(_SEEDS) if seed is None else seed
        self._lock = threading.Lock()
        """Held while a game is played or has ended, so that a state has both halves or neither."""
        self._open: OpenModels[tuple[int, ...]] = OpenModels()
        self._trajectories: deque[Trajectory] = deque()
        self._new = 0
        """Trajectories since the last update."""

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        self._game = SampleGame(model_space.simplify())
        steps = max(1, len(self._game.action_counts))
        size = self._replay_buffer_size or steps * self._samples_per_update
        self._trajectories = deque(maxlen=max(1, size // steps))
        self._policy = self._make_policy()
        engine.register_model_event_callback(ModelEventType.TrainingEnd, self._model_ended)
        return model_space

    def _make_policy(self) -> Policy:
        if self._policy_fn is not None:
            return self._policy_fn(self._game)
        from nni.nas.strategy.policy.ppo import PpoPolicy

        return PpoPolicy(self._game, self._seed)

    def _run(self) -> None:
        invalid = 0
        while self.wait_for_resource():
            with self._lock:
                self._update_if_due()
                model = self._next_model()
            if model is not None:
                invalid = 0
                self.engine.submit_models(model)
                continue
            invalid += 1
            if invalid > _INVALID_IN_A_ROW:
                _logger.warning("the search ends: %d invalid samples in a row", invalid)
                return

    def _next_model(self) -> ExecutableModelSpace | None:
        """Play a game and return its model; record a fixed reward and return None if invalid."""
        actions = tuple(self._policy.play())
        sample: Sample = self._game.sample(actions)
        try:
            model: ExecutableModelSpace = self.model_space.freeze(sample)
        except SampleValidationError as error:
            _logger.info("the policy chose an invalid sample: %s", error)
            self._add(actions, self._reward_for_invalid)
            return None
        self._open.add(model, actions)
        return model

    def _add(self, actions: tuple[int, ...], reward: float | None) -> None:
        from nni.nas.strategy.policy.ppo import Trajectory

        if reward is not None:
            self._trajectories.append(Trajectory(actions, reward))
            self._new += 1

    def _update_if_due(self) -> None:
        if self._new < self._samples_per_update:
            return
        self._new = 0
        for _ in range(self._update["update_times"]):
            self._policy.update(
                list(self._trajectories),
                batch_size=self._update["batch_size"],
                repeat=self._update["repeat"],
            )

    def _model_ended(self, event: TrainingEndEvent) -> None:
        with self._lock:
            actions = self._open.end(event)
            if actions is not None:
                self._add(actions, self._reward(event.model))

    def _reward(self, model: ExecutableModelSpace) -> float | None:
        """Return a model's finite metric, else the reward for invalid models."""
        if has_metric(model) and math.isfinite(float(model.metric)):
            return float(model.metric)
        return self._reward_for_invalid

    def state_dict(self) -> dict[str, Any]:
        """Return policy state, replay buffer, and the number of games since the last update.

        Returns:
            `policy`, with tensors, `trajectories` and `new`.
        """
        with self._lock:
            return {
                "policy": self._policy.state_dict(),
                "trajectories": [(list(one.actions), one.reward) for one in self._trajectories],
                "new": self._new,
            }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore policy state, replay buffer, and the number of games since the last update.

        Args:
            state_dict: what `state_dict` returned.
        """
        from nni.nas.strategy.policy.ppo import Trajectory

        with self._lock:
            self._policy.load_state_dict(state_dict["policy"])
            self._trajectories.clear()
            self._trajectories.extend(
                Trajectory(tuple(actions), reward) for actions, reward in state_dict["trajectories"]
            )
            self._new = state_dict["new"]
