"""Tuners of hyperparameters as strategies: `HPOTunerStrategy`, and `TPE` on top of it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from nni.hpo.base import Tuner, generate
from nni.hpo.json_value import JsonValue
from nni.mutable import Sample, SampleValidationError
from nni.nas.execution import ExecutionEngine, ModelEventType, TrainingEndEvent
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.base import Strategy, has_metric
from nni.nas.strategy.hpo_space import HpoSpace
from nni.nas.strategy.open_models import OpenModels
from nni.nas.strategy.sampling import RETRIES

_logger = logging.getLogger(__name__)

Proposal = tuple[int, JsonValue]
"""Parameter id and configuration of the tuner."""


class HPOTunerStrategy(Strategy):
    """Strategy that asks a tuner of hyperparameters for models.

    Numerical dimensions become parameters of their distribution; a choice of several values becomes
    several choices of one value. Calls of the tuner are made one at a time. The state of the tuner
    is not saved: a resumed search continues the ids and begins to learn anew.

    Args:
        tuner: any object with the methods of `nni.hpo.Tuner`, which must maximise; or the name of
            a tuner of `nni.hpo` such as `"Evolution"`, with its default arguments.

    Raises:
        ValueError: no tuner has this name.

    Examples:
        ```python
        from nni.hpo import SMACTuner
        from nni.nas.strategy.hpo import HPOTunerStrategy

        strategy = HPOTunerStrategy(SMACTuner(optimize_mode="maximize"))
        ```
    """

    def __init__(self, tuner: Tuner | str) -> None:
        super().__init__()
        if isinstance(tuner, str):
            from nni.hpo.registry.factory import create

            tuner = create("tuner", tuner, optimize_mode="maximize")
        self.tuner = tuner
        self._lock = threading.Lock()
        """Held during each call of the tuner."""
        self._open: OpenModels[Proposal] = OpenModels()
        self._next_id = 0
        self._ready: deque[Proposal] = deque()
        """Configurations that the tuner had deferred."""

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        self._hpo_space = HpoSpace(model_space.simplify())
        self.tuner.update_search_space(self._hpo_space.search_space)
        engine.register_model_event_callback(ModelEventType.TrainingEnd, self._model_ended)
        return model_space

    def _run(self) -> None:
        refused = 0
        while self.wait_for_resource():
            proposal = self._proposal()
            if proposal is None:
                return
            sample = self._hpo_space.sample(_mapping(proposal[1]))
            error = self.model_space.check_contains(sample)
            if error is None:
                refused = 0
                self._submit(proposal, sample)
                continue
            refused += 1
            with self._lock:
                self.tuner.trial_end(proposal[0], False)  # noqa: FBT003 - documented
            if refused == RETRIES:
                _logger.info("the search ends: %d invalid models in a row; %s", refused, error)
                return

    def _submit(self, proposal: Proposal, sample: Sample) -> None:
        model = self.model_space.freeze(sample)
        self._open.add(model, proposal)
        self.engine.submit_models(model)

    def _proposal(self) -> Proposal | None:
        """Return the tuner's next configuration, waiting for a deferred one; None for no more."""
        while True:
            with self._lock:
                if self._ready:
                    return self._ready.popleft()
                parameter_id = self._next_id
                self._next_id += 1
                generated = generate(self.tuner, [parameter_id], self._start_later)
            if generated.parameters:
                return generated.parameters[0]
            if generated.exhausted:
                _logger.info("the search ends: the tuner has no more models")
                return None
            self.engine.wait_until(lambda: bool(self._ready) or not len(self._open))
            if not self._ready and not len(self._open):
                _logger.info("the search ends: the tuner waits for results of models that ended")
                return None

    def _start_later(self, parameter_id: int, parameters: JsonValue) -> None:
        self._ready.append((parameter_id, parameters))

    def _model_ended(self, event: TrainingEndEvent) -> None:
        proposal = self._open.end(event)
        if proposal is None:
            return
        parameter_id, configuration = proposal
        with self._lock:
            if has_metric(event.model):
                self.tuner.receive_trial_result(
                    parameter_id, configuration, float(event.model.metric)
                )
            self.tuner.trial_end(parameter_id, event.status is ModelStatus.Trained)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of configurations that were requested.

        Returns:
            `next_id`.
        """
        return {"next_id": self._next_id}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue the ids of configurations; the tuner begins to learn anew.

        Args:
            state_dict: what `state_dict` returned.
        """
        self._next_id = int(state_dict["next_id"])
        _logger.warning(
            "%s resumes after %d configurations, which %s does not know",
            type(self).__name__,
            self._next_id,
            type(self.tuner).__name__,
        )


class TPE(HPOTunerStrategy):
    """Search by tree-structured Parzen estimators, the tuner `TPE` of `nni.hpo`.

    Args:
        *args: of `nni.hpo.TPETuner`.
        **kwargs: of `nni.hpo.TPETuner`; `optimize_mode` is `maximize` unless it is given.

    Examples:
        ```python
        from nni.nas.strategy import TPE

        strategy = TPE(seed=0)
        ```
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - those of the tuner
        from nni.hpo.tuners.tpe import TPETuner

        if not args:
            kwargs.setdefault("optimize_mode", "maximize")
        super().__init__(TPETuner(*args, **kwargs))


TPEStrategy: Final = TPE
"""Name of the strategy in NNI 2.x."""


def _mapping(configuration: JsonValue) -> Mapping[str, Any]:
    if not isinstance(configuration, Mapping):
        raise SampleValidationError(
            f"a configuration of the tuner must be a dict, got {configuration!r:.200}"
        )
    return configuration
