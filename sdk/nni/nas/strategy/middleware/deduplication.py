"""Middleware that evaluates each sample once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Literal

from nni.mutable import Sample
from nni.nas.execution import (
    FinalMetricEvent,
    IntermediateMetricEvent,
    ModelEvent,
    TrainingEndEvent,
)
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware.base import StrategyMiddleware
from nni.nas.strategy.middleware.filtering import PATIENCE, Patience
from nni.nas.strategy.sampling import content_key

DuplicateAction = Literal["invalid", "replay"]
"""What happens to a model whose sample was submitted before."""


class Deduplication(StrategyMiddleware):
    """Middleware that ends models of known samples, as invalid or with the first one's metrics.

    Args:
        action: `invalid` ends a duplicate as invalid; `replay` gives it the metrics and the status
            of the first model with its sample, when that one has ended. A sample whose first model
            was evaluated in an earlier process, and so has no metrics here, is evaluated again.
        patience: duplicates in a row after which the budget ends.
        retain_history: whether `list_models` lists duplicates.

    Raises:
        ValueError: the action is unknown, or `patience` is not positive.

    Examples:
        >>> from nni.nas.strategy import RegularizedEvolution
        >>> from nni.nas.strategy.middleware import Chain, Deduplication
        >>> strategy = Chain(RegularizedEvolution(dedup=False), Deduplication("replay"))
        >>> type(strategy[1]).__name__
        'Deduplication'
    """

    def __init__(
        self,
        action: DuplicateAction,
        patience: int = PATIENCE,
        retain_history: bool = True,  # noqa: FBT001, FBT002 - documented signature
    ) -> None:
        super().__init__(retain_history)
        if action not in {"invalid", "replay"}:
            raise ValueError(f"action must be 'invalid' or 'replay', got {action!r}")
        self.action = action
        self._patience = Patience(patience, "models were duplicates")
        self._lock = threading.Lock()  # of the three below
        self._seen: dict[str, None] = {}
        self._first: dict[str, ExecutableModelSpace] = {}
        self._followers: dict[int, list[ExecutableModelSpace]] = {}
        """Duplicates by the identity of their first model, while that one runs."""

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Submit the models with a new sample, end or replay the others.

        Args:
            *models: frozen models.
        """
        for model in models:
            self.remember(model)
            self._submit(model, content_key(_sample_of(model)))

    def _submit(self, model: ExecutableModelSpace, key: str) -> None:
        with self._lock:
            is_new = key not in self._seen
            first = self._first.get(key)
            if is_new or (first is None and self.action == "replay"):
                self._seen[key] = None
                self._first[key] = model
                self._patience.reset()
                is_new = True
            else:
                self._patience.count()
                if first is not None and id(first) in self._followers:
                    self._followers[id(first)].append(model)
                    return
            if is_new and self.action == "replay":
                self._followers[id(model)] = []
        if is_new:
            self.engine.submit_models(model)
        elif self.action == "replay" and first is not None:
            self._replay(first, model, first.status)
        else:
            self.end_model(model, ModelStatus.Invalid)

    def receive_event(self, event: ModelEvent) -> None:
        """Pass an event up; at a model's end replay its metrics and status for waiting duplicates.

        Args:
            event: the event.
        """
        super().receive_event(event)
        if not isinstance(event, TrainingEndEvent) or event.propagation_stopped:
            return
        with self._lock:
            followers = self._followers.pop(id(event.model), [])
        for follower in followers:
            self._replay(event.model, follower, event.status)

    def _replay(
        self, first: ExecutableModelSpace, model: ExecutableModelSpace, status: ModelStatus
    ) -> None:
        for metric in first.metrics.intermediates:
            self.dispatch_model_event(IntermediateMetricEvent(model, metric))
        if first.metrics.final is not None:
            self.dispatch_model_event(FinalMetricEvent(model, first.metrics.final))
        self.dispatch_model_event(TrainingEndEvent(model, status))

    def budget_available(self) -> bool:
        """Return False after `patience` duplicates in a row, or without budget of the engine below.

        Returns:
            False after `patience` duplicates in a row.
        """
        return not self._patience.ended and super().budget_available()

    def state_dict(self) -> dict[str, Any]:
        """Return keys of the samples whose models have ended, and duplicates in a row.

        Returns:
            `seen` and `duplicates_in_a_row`.
        """
        with self._lock:
            running = {key for key, model in self._first.items() if not model.status.completed()}
            seen = [key for key in self._seen if key not in running]
        return {"seen": seen, "duplicates_in_a_row": self._patience.in_a_row}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the keys of ended samples, and the number of duplicates in a row.

        Args:
            state_dict: what `state_dict` returned.
        """
        with self._lock:
            self._seen = dict.fromkeys(state_dict["seen"])
        self._patience.in_a_row = int(state_dict["duplicates_in_a_row"])


def _sample_of(model: ExecutableModelSpace) -> Sample:
    sample = model.sample
    if sample is None:
        raise ValueError("a model of Deduplication must have a sample; freeze it by a sample")
    return sample
