"""Base of the tuners that model results over encoded configurations."""

import logging
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, ClassVar, Final, Generic, TypeVar

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.base import EARLY_STOPPED, FAILED, Tuner, samples
from nni.hpo.encoding.encoded_space import EncodedSpace, VectorKey, vector_key, vector_keys
from nni.hpo.json_value import JsonValue, random_state, restore_random
from nni.hpo.models.acceptance import THINNED, accepted
from nni.hpo.models.feasibility import Feasibility, FeasibilityModel
from nni.hpo.models.learning_curves import LearningCurves, plain_losses
from nni.hpo.objectives import checked_optimize_mode, is_numeric, loss_of
from nni.hpo.space.domains import Space
from nni.hpo.space.parser import place

_logger = logging.getLogger(__name__)

_DRAWS: Final = 30
"""Draws until one is untaken; then all vectors of a small space are listed."""
_MOST_LISTED: Final = 50_000
"""Vectors up to which that is done; in a larger space one draws on."""
_MOST_DRAWS: Final = 1000

LossT = TypeVar("LossT", bound=float | tuple[float, ...])


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Random and model state that choosing a vector may change, to undo the choice."""

    generator: Mapping[str, Any]
    """State of the generator, as numpy has it."""
    prior: tuple[Any, ...]
    model: JsonValue


@dataclass(frozen=True, slots=True)
class _Failed:
    """Failed trial: configuration, vector, and the number of observations before it."""

    configuration: JsonValue
    vector: Floats
    position: int
    """Number of observations before it."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Vector that was chosen in advance, with the state after the choice."""

    vector: Floats
    after: _Snapshot
    """State once it has been proposed."""


class ModelBasedTuner(Tuner, Generic[LossT]):
    """Base of tuners that keep observations and running trials as vectors and choose the next one.

    A running trial's configuration is not proposed again while there is another one; nor is an
    observed or failed one, unless the subclass measures it again. A trial that failed, or whose
    result is no finite number, teaches the probability of success. A trial that was stopped early
    has an estimated loss, where there is a single one; see `learning_curves`.

    Args:
        algorithm: name of the tuner, for messages.
        parse: returns the space of a search space; raises ValueError for an unsupported one.
        loss_of_report: returns what is to be minimised; None if a report lacks it.
        seed: of all draws; None for different ones in every process.
    """

    imports_failures: ClassVar[bool] = True
    learns_stopped: ClassVar[bool] = True

    prepares: ClassVar[bool] = False
    """True if choosing a vector changes nothing but the generators and the state of the model, so
    that it can be done ahead."""

    def __init__(
        self,
        algorithm: str,
        parse: Callable[[JsonValue], Space],
        loss_of_report: Callable[[JsonValue], LossT | None],
        seed: int | None,
    ) -> None:
        self._algorithm = algorithm
        self._parse = parse
        self._loss_of_report = loss_of_report
        self._rng = np.random.default_rng(seed)
        self._prior = Random(seed)
        self._space = EncodedSpace(parse({}))
        self._configurations: list[JsonValue] = []
        self._vectors: list[Floats] = []
        self._losses: list[LossT] = []
        self._failed: list[_Failed] = []
        self._feasibility_model = FeasibilityModel(self._space.feature_axes)
        self._running: dict[int, Floats] = {}
        self._curves = LearningCurves()
        self._prepared: _Prepared | None = None

    def update_search_space(self, search_space: JsonValue) -> None:
        """Encode a new space; keep the observations and running trials that lie in it."""
        space = EncodedSpace(self._parse(search_space))
        known, running = self._results(), self._running_configurations()
        failed = self._failures()
        self._space = space
        self._reset_model()
        self._restore_trials(known, running, failed)

    def prepare_parameters(self) -> None:
        """Choose the next vector in advance, and restore all state to before the choice."""
        if not self.prepares or self._prepared is not None or not len(self._space):
            return
        before = self._snapshot()
        vector = self._propose()
        self._prepared = _Prepared(vector, self._snapshot())
        self._restore(before)

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Return the next vector, decoded, and register it as running."""
        del kwargs
        vector = self._next_vector() if len(self._space) else np.empty(0)
        self._running[parameter_id] = vector
        return self._space.decode(vector)

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Remove a trial from the running ones; learn its loss, or that it has no number."""
        del kwargs
        self._remove_running(parameter_id)
        loss = self._loss_of_report(value)
        if isinstance(loss, float):
            self._curves.finish(parameter_id, loss)
        self._learn_report(parameters, value)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """Process the end of a trial; learn a failure, or the estimated loss of a stopped one.

        Args:
            parameter_id: of the trial.
            success: whether it has completed.
            **kwargs: `event` and `intermediate`, see `Tuner.trial_end`.
        """
        del success
        vector = self._running.get(parameter_id)
        self._remove_running(parameter_id)
        losses = self._intermediate_losses(kwargs.get("intermediate"))
        self._curves.end(parameter_id, losses)
        if vector is None:
            return  # it has a result
        if kwargs.get("event") == FAILED:
            self._learn_failure(self._space.decode(vector))
        elif kwargs.get("event") == EARLY_STOPPED:
            self._learn_stopped(self._space.decode(vector), losses)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Learn each sample, NaN as a failure; skip those outside the space or without a number."""
        for sample in samples(data):
            if self._loss_of_report(sample.value) is None and not is_numeric(sample.value):
                _logger.warning(
                    "%s skips an imported sample without a number: %.200r",
                    self._algorithm,
                    sample,
                )
            else:
                self._learn_report(sample.parameter, sample.value)

    def import_curves(self, curves: list[dict[str, JsonValue]]) -> None:
        """Record curves of completed trials, and learn the estimated losses of stopped ones."""
        for curve in curves:
            losses = self._intermediate_losses(curve["intermediate"])
            if curve["value"] is None:
                self._learn_stopped(curve["parameter"], losses)
                continue
            loss = self._loss_of_report(curve["value"])
            if isinstance(loss, float):
                self._curves.complete(losses, loss)

    def state(self) -> dict[str, JsonValue]:
        """Return random states, observations, running trials and the model's state as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return {
            "rng": self._rng.bit_generator.state,
            "prior": random_state(self._prior),
            "observed": [[configuration, loss] for configuration, loss in self._results()],
            "failed": [[configuration, position] for configuration, position in self._failures()],
            "running": [
                [number, configuration] for number, configuration in self._running_configurations()
            ],
            "curves": self._curves.state(),
            "model": self._model_state(),
        }

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore random states, observations, running trials and the model from a state.

        Args:
            state: what `state` of a tuner with the same arguments and search space returned.
        """
        restore_random(self._prior, state["prior"])
        self._rng.bit_generator.state = state["rng"]
        self._reset_model()
        # States of older versions have no failed trials.
        self._restore_trials(state["observed"], state["running"], state.get("failed", []))
        self._curves.load_state(state.get("curves", [[], []]))
        self._load_model_state(state["model"])

    @abstractmethod
    def _propose(self) -> Floats:
        """Return a vector `(d,)` of the space, which has at least one axis."""

    @abstractmethod
    def _reset_model(self) -> None:
        """Drop the model, because the space or the observations change."""

    @abstractmethod
    def _model_state(self) -> JsonValue:
        """Return the state of the model, the observations excepted, as JSON."""

    @abstractmethod
    def _load_model_state(self, state: JsonValue) -> None:
        """Restore the state that `_model_state` returned, after the observations."""

    def _next_vector(self) -> Floats:
        """Return the prepared vector once, with its state restored; else choose one."""
        prepared, self._prepared = self._prepared, None
        if prepared is None:
            return self._propose()
        self._restore(prepared.after)
        return prepared.vector

    def _snapshot(self) -> _Snapshot:
        return _Snapshot(self._rng.bit_generator.state, self._prior.getstate(), self._model_state())

    def _restore(self, snapshot: _Snapshot) -> None:
        self._rng.bit_generator.state = snapshot.generator
        self._prior.setstate(snapshot.prior)
        self._load_model_state(snapshot.model)

    def _remove_running(self, parameter_id: int) -> None:
        if self._running.pop(parameter_id, None) is not None:
            self._prepared = None

    def _results(self) -> list[tuple[JsonValue, LossT]]:
        return list(zip(self._configurations, self._losses, strict=True))

    def _failures(self) -> list[tuple[JsonValue, int]]:
        """Return the failed configurations, each with the number of observations before it."""
        return [(trial.configuration, trial.position) for trial in self._failed]

    def _feasibility(self) -> Feasibility | None:
        """Return the probability of success by the trials so far; None while it is not known."""
        if not self._failed:
            return None
        places = [trial.position for trial in self._failed]
        failed = np.array([trial.vector for trial in self._failed])
        vectors = np.array(self._vectors).reshape(-1, len(self._space))
        succeeded = np.insert(np.ones(len(vectors), dtype=bool), places, values=False)
        trials = np.insert(vectors, places, failed, axis=0)
        return self._feasibility_model.update(self._space.features(trials), succeeded)

    def _running_configurations(self) -> list[tuple[int, JsonValue]]:
        """Return ids and configurations of the running trials."""
        return [(number, self._space.decode(vector)) for number, vector in self._running.items()]

    def _running_vectors(self) -> Floats:
        """Return the encoded parameters `(r, d)` of the running trials."""
        return np.array(list(self._running.values())).reshape(-1, len(self._space))

    def _restore_trials(
        self,
        known: Iterable[tuple[JsonValue, LossT]],
        running: Iterable[tuple[int, JsonValue]],
        failed: Iterable[tuple[JsonValue, int]],
    ) -> None:
        """Replace observations, failed and running trials by those that lie in the space."""
        self._prepared = None
        self._configurations, self._vectors, self._losses = [], [], []
        self._failed = []
        self._feasibility_model = FeasibilityModel(self._space.feature_axes)
        waiting = deque(failed)
        for index, (configuration, loss) in enumerate(known):
            while waiting and waiting[0][1] <= index:
                self._learn_failure(waiting.popleft()[0])
            self._learn(configuration, loss)
        for configuration, _ in waiting:
            self._learn_failure(configuration)
        self._running = {}
        for number, configuration in running:
            try:
                self._running[number] = self._space.encode(configuration)
            except ValueError:
                continue  # of an earlier space; its end changes nothing

    def _learn_report(self, configuration: JsonValue, value: JsonValue) -> None:
        """Learn the loss of a report; one without a finite number is a failure."""
        loss = self._loss_of_report(value)
        if loss is None:
            self._learn_failure(configuration)
        else:
            self._learn(configuration, loss)

    def _intermediate_losses(self, reports: object) -> list[float | None]:
        """Return intermediate losses, None for one without a number; empty if any is a tuple."""
        if not isinstance(reports, list):
            return []
        return plain_losses(map(self._loss_of_report, reports))

    def _learn_stopped(self, configuration: JsonValue, losses: list[float | None]) -> None:
        """Learn a stopped trial's estimated loss, the worst known if no curve reaches its step."""
        estimate: Any = self._curves.estimate(losses)  # Any: several losses have no curves
        if estimate is not None:
            self._learn(configuration, estimate)

    def _learn(self, configuration: JsonValue, loss: LossT) -> None:
        placed = self._placed(configuration)
        if placed is not None:
            self._add(configuration, placed, loss)

    def _learn_failure(self, configuration: JsonValue) -> None:
        placed = self._placed(configuration)
        if placed is not None:
            self._add_failure(configuration, placed)

    def _placed(self, configuration: JsonValue) -> Mapping[str, JsonValue] | None:
        """Return the active parameters of a trial; None, and a warning, outside the space."""
        try:
            return place(self._space.search_space, configuration)
        except ValueError as error:
            _logger.warning(
                "%s drops a result outside the search space: %s", self._algorithm, error
            )
            return None

    def _add_failure(self, configuration: JsonValue, placed: Mapping[str, JsonValue]) -> None:
        """Append a failed trial; drop a prepared vector. Arguments as of `_add`."""
        self._prepared = None
        vector = self._space.encode_placed(placed)
        self._failed.append(_Failed(dict(configuration), vector, len(self._vectors)))

    def _add(self, configuration: JsonValue, placed: Mapping[str, JsonValue], loss: LossT) -> None:
        """Append a configuration, its vector and its loss; drop a prepared vector.

        Args:
            configuration: of the trial.
            placed: its active parameters, as `nni.hpo.space.parser.place` returns them.
            loss: of the trial.
        """
        self._prepared = None
        self._configurations.append(dict(configuration))
        self._vectors.append(self._space.encode_placed(placed))
        self._losses.append(loss)

    def _running_keys(self) -> set[VectorKey]:
        return {vector_key(vector) for vector in self._running.values()}

    def _taken(self) -> set[VectorKey]:
        """Return the keys of all running, observed and failed vectors."""
        failed = {vector_key(trial.vector) for trial in self._failed}
        return self._running_keys() | vector_keys(self._vectors) | failed

    def _random_vector(self) -> Floats:
        """Return a prior draw that no trial has, else that no running one has, else any draw."""
        for taken in (self._taken(), self._running_keys()):
            vector = self._untaken_draw(taken)
            if vector is not None:
                return vector
        return self._space.sample_prior(self._prior)

    def _untaken_draw(self, taken: set[VectorKey]) -> Floats | None:
        """Return a draw not taken, accepted by its probability of success; None if none is found.

        Once trials have failed, a draw is accepted with its probability to succeed.
        """
        found = self._any_untaken_draw(taken)
        feasibility = None if found is None else self._feasibility()
        if found is None or feasibility is None:
            return found
        others = (self._any_untaken_draw(taken) for _ in range(THINNED - 1))
        draws = [found, *(vector for vector in others if vector is not None)]
        values = feasibility.log_probability(self._space.features(np.array(draws)))
        return accepted(draws, values.tolist(), self._prior)

    def _any_untaken_draw(self, taken: set[VectorKey]) -> Floats | None:
        """Return a draw of the prior that is not taken; None if all of the space seems taken."""
        size = self._space.size
        listed = size is not None and size <= _MOST_LISTED
        for _ in range(_DRAWS if listed else _MOST_DRAWS):
            vector = self._space.sample_prior(self._prior)
            if vector_key(vector) not in taken:
                return vector
        vectors = self._space.all_vectors(_MOST_LISTED)
        if vectors is None:
            return None
        untaken = [vector for vector in vectors if vector_key(vector) not in taken]
        return self._prior.choice(untaken) if untaken else None


def loss_of_mode(optimize_mode: str) -> Callable[[JsonValue], float | None]:
    """Return the function from a report to its loss; None for a report without a number.

    Args:
        optimize_mode: `maximize` or `minimize`.
    """
    return partial(loss_of, optimize_mode=checked_optimize_mode(optimize_mode))
