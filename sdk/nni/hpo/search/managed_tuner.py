"""Decorator of tuners: initial configurations, duplicates, objectives, and stopping rules.

`ManagedTuner` wraps a tuner, so that these features are the same for every tuner, in one process
and in the service.
"""

import math
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, get_args

from nni.hpo.base import (
    DEFERRED,
    FAILED,
    Resumable,
    StartLater,
    Tuner,
    generate,
    is_resumable,
    samples,
)
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import MINIMIZED, Objectives
from nni.hpo.search._scalarization import Scalarizer, TunerResult
from nni.hpo.search.stopping_rules import StoppingMonitor, StoppingRule
from nni.hpo.space.domains import Space, configuration_hash
from nni.hpo.space.feasibility import broken_constraints, read_parameters
from nni.hpo.space.parser import place
from nni.hpo.tuners.batch import BatchTuner

if TYPE_CHECKING:
    from nni.hpo.search.transfer import TransferProposer

DuplicatePolicy: TypeAlias = Literal["replicate", "resample", "reuse"]

DUPLICATE_POLICIES: Final = get_args(DuplicatePolicy)

_REUSES: Final = 100
"""Consecutive duplicates with known results before a new configuration is sampled instead."""
_RESAMPLES: Final = 20
"""Consecutive rejected duplicates before a new configuration is sampled instead."""
_DRAWS: Final = 1000
"""Samples without a new configuration after which the space counts as exhausted."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Settings of a search beside tuner and space: objectives, duplicates, samples, stop rules."""

    objectives: Objectives = MINIMIZED
    duplicates: DuplicatePolicy = "replicate"
    """Policy for a proposal that was evaluated or is running: `replicate` evaluates it again;
    `resample` requests another one; `reuse` gives the tuner the known result and requests
    another one."""
    first: tuple[JsonValue, ...] = ()
    """Configurations to evaluate before any proposal of the tuner."""
    known: tuple[JsonValue, ...] = ()
    """Samples `{"parameter", "value"}` of earlier searches of the same objective."""
    earlier: tuple[tuple[JsonValue, ...], ...] = ()
    """Samples of related searches, one tuple for each; they enter by their ranks in it."""
    rules: tuple[StoppingRule, ...] = ()
    """Stopping rules; any of them ends the search."""

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown duplicate policy, or ranks with several objectives."""
        if self.duplicates not in DUPLICATE_POLICIES:
            raise ValueError(
                f"duplicates must be one of {', '.join(DUPLICATE_POLICIES)}; "
                f"got {self.duplicates!r}"
            )
        if self.earlier and (self.objectives.several or self.objectives.limits):
            raise ValueError(
                "warm_start_by must be 'value' with several objectives or limits on outcomes, "
                "got 'rank': ranks need a single order of the results"
            )


def managed(tuner: Tuner, plan: SearchPlan, seed: int | None = None) -> "ManagedTuner":
    """Wrap a tuner in a `ManagedTuner` for a plan; resumable if the tuner is.

    Args:
        tuner: a tuner without a space. It must minimise if there are several objectives, else
            have the mode of the only one.
        plan: settings of the search.
        seed: seed of the samples that replace duplicates.
    """
    kind = ResumableManagedTuner if is_resumable(tuner) else ManagedTuner
    return kind(tuner, plan, seed)


@dataclass(slots=True)
class _ConfigurationHistory:
    """Results and running trials of a search, by hash of the configuration."""

    results: dict[str, JsonValue] = field(default_factory=dict)
    """First result of each configuration."""
    running: dict[str, int] = field(default_factory=dict)
    """Number of open trials of each configuration."""

    def start(self, key: str) -> None:
        self.running[key] = self.running.get(key, 0) + 1

    def end(self, key: str) -> None:
        left = self.running.get(key, 0) - 1
        if left > 0:
            self.running[key] = left
        else:
            self.running.pop(key, None)

    def has(self, key: str) -> bool:
        return key in self.results or key in self.running


@dataclass(frozen=True, slots=True)
class _Open:
    """Trial that has not ended: its configuration, hash, and id in the wrapped tuner."""

    inner: int | None
    """Id of the trial in the wrapped tuner; None if the tuner did not propose it."""
    key: str
    configuration: JsonValue


class ManagedTuner(Tuner):
    """Wrapper of a tuner that adds a queue, warm start, duplicates policy and stopping.

    The wrapped tuner has ids of its own, since a rejected duplicate uses an id without a trial.
    """

    learns_stopped: ClassVar[bool] = True

    def __init__(self, tuner: Tuner, plan: SearchPlan, seed: int | None) -> None:
        self._tuner = tuner
        self._plan = plan
        self._rng = Random(seed)
        self._scalarizer = Scalarizer(plan.objectives, vector=tuner.multi_objective)
        self._monitor = StoppingMonitor(plan.rules, plan.objectives)
        self._search_space: JsonValue = None
        self._space: Space | None = None
        self._first = deque(plan.first)
        self._history = _ConfigurationHistory()
        self._next_inner = 0
        self._open: dict[int, _Open] = {}
        self._deferred: dict[int, int] = {}
        self._transfer = self._transfer_proposer(seed) if plan.earlier else None
        if tuner.multi_objective:
            tuner.set_objectives(plan.objectives)

    @property
    def learns_durations(self) -> bool:
        """True if the tuner learns the run times of trials."""
        return self._tuner.learns_durations

    @property
    def ended_because(self) -> str:
        """Reason of the rule that ended the search; empty while it continues."""
        return self._monitor.reason

    @property
    def explanation(self) -> str:
        """The tuner's explanation of its method; empty if it has none."""
        return str(getattr(self._tuner, "explanation", ""))

    def released_checkpoints(self) -> tuple[str, ...]:
        """Return the checkpoint folders that no later trial loads."""
        released = getattr(self._tuner, "released_checkpoints", None)
        return tuple(map(str, released())) if callable(released) else ()

    def proposer_of(self, parameter_id: int) -> str:
        """Return which of several wrapped tuners proposed an open trial; empty if none did."""
        proposer_of = getattr(self._tuner, "proposer_of", None)
        trial = self._open.get(parameter_id)
        if not callable(proposer_of) or trial is None or trial.inner is None:
            return ""
        return str(proposer_of(trial.inner))

    def enqueue(self, configuration: JsonValue) -> None:
        """Enqueue a configuration, to be evaluated before any proposal of the tuner.

        Raises:
            ValueError: the configuration lies outside the search space, or violates a constraint.
        """
        self.require_allowed("enqueued configuration", configuration)
        self._first.append(deepcopy(configuration))

    def require_allowed(self, subject: str, configuration: JsonValue) -> None:
        """Raise ValueError unless a configuration lies in the space and keeps its constraints.

        Args:
            subject: beginning of the error message.
            configuration: that is checked; one of a tuner's own form of spaces always passes.

        Raises:
            ValueError: it does not.
        """
        self._check_constraints(subject, [configuration])
        if self._space is not None:
            try:
                place(self._space, configuration)
            except ValueError as error:
                raise ValueError(
                    f"{subject} {configuration!r:.200} must lie in the search space: {error}"
                ) from error

    def update_search_space(self, search_space: JsonValue) -> None:
        """Set the tuner's space; first import known samples, later dequeue what it forbids.

        With the first space the tuner gets the samples of earlier searches; a later one removes
        enqueued configurations that violate its constraints.
        """
        begins = self._search_space is None
        self._tuner.update_search_space(search_space)
        self._search_space = search_space
        self._space = None
        if not isinstance(self._tuner, BatchTuner):  # its space is a list under any key
            with suppress(ValueError):  # a form of the tuner's own
                self._space = read_parameters(search_space)
        if self._transfer is not None:
            self._transfer.update_search_space(self._required_space())
        if not begins:
            broken = broken_constraints(search_space, tuple(self._first))
            self._first = deque(
                configuration
                for configuration, rule in zip(self._first, broken, strict=True)
                if not rule
            )
            return
        self._check_constraints("enqueued configuration", self._plan.first)
        if self._plan.known:
            self.import_data(list(self._plan.known))

    def prepare_parameters(self) -> None:
        """Prepare the tuner's next proposal, unless the queue or a stopping rule comes first."""
        if not self._first and not self._monitor.reason:
            self._tuner.prepare_parameters()

    def generate_multiple_parameters(
        self, parameter_id_list: list[int], **kwargs: object
    ) -> list[JsonValue]:
        """Return a configuration per id, in order; fewer once the tuner has no more."""
        start_later = kwargs.get("st_callback")
        later = start_later if callable(start_later) else None
        answer: list[JsonValue] = []
        for parameter_id in parameter_id_list:
            configuration = self._next(parameter_id, later)
            if configuration is None:
                break
            answer.append(configuration)
        return answer

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Record a result for duplicates and stopping rules; pass it on, as a scalar if needed."""
        trial = self._open.get(parameter_id)
        key = configuration_hash(parameters) if trial is None else trial.key
        self._history.results.setdefault(key, value)
        self._monitor.tell(parameters, value, self._search_space)
        if self._transfer is not None:
            self._transfer.learn(parameters, value)
        for result in self._scalarizer.tuner_results(parameters, value):
            own = result.parameters is parameters and trial is not None
            if own and trial is not None and trial.inner is not None:
                self._tuner.receive_trial_result(trial.inner, parameters, result.value, **kwargs)
            else:
                self._import_results([result])

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """Close an open trial; report its end to the tuner, a failed foreign one as a sample.

        Args:
            parameter_id: of the trial.
            success: whether it has completed.
            **kwargs: see `Tuner.trial_end`; `intermediate` as the trial has reported it.
        """
        if not self._tuner.learns_durations:
            kwargs.pop("duration_s", None)
        reports = kwargs.pop("intermediate", None)
        if self._tuner.learns_stopped and isinstance(reports, list):
            shown = self._scalarizer.tuner_intermediates(reports)
            kwargs |= {"intermediate": shown} if shown else {}
        trial = self._open.pop(parameter_id, None)
        if trial is None:
            return  # duplicate report
        self._history.end(trial.key)
        failed = kwargs.get("event") == FAILED and trial.key not in self._history.results
        if failed and self._transfer is not None:
            self._transfer.learn(trial.configuration, math.nan)
        if trial.inner is not None:
            self._tuner.trial_end(trial.inner, success, **kwargs)
        elif success and "duration_s" in kwargs:
            known = {"parameter": trial.configuration, "duration_s": kwargs["duration_s"]}
            self.import_durations([known])
        elif failed and self._tuner.imports_failures:
            self._import_results([TunerResult(trial.configuration, math.nan)])

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Record samples as known, dequeue their configurations, and import them into the tuner.

        An enqueued configuration with an imported result is removed from the queue: a resumed
        experiment imports its own results.
        """
        tuner_results: list[TunerResult] = []
        durations: list[dict[str, JsonValue]] = []
        imported: set[str] = set()
        for sample in samples(data):
            key = configuration_hash(sample.parameter)
            imported.add(key)
            self._history.results.setdefault(key, sample.value)
            tuner_results += self._scalarizer.tuner_results(sample.parameter, sample.value)
            if sample.duration_s is not None:
                durations.append({"parameter": sample.parameter, "duration_s": sample.duration_s})
            if self._transfer is not None:
                self._transfer.learn(sample.parameter, sample.value)
        self._first = deque(c for c in self._first if configuration_hash(c) not in imported)
        self._import_results(tuner_results)
        self.import_durations(durations)

    def import_durations(self, durations: list[dict[str, JsonValue]]) -> None:
        """Pass run times of earlier trials to a tuner that learns them."""
        if self._tuner.learns_durations and durations:
            self._tuner.import_durations(durations)

    def import_curves(self, curves: list[dict[str, JsonValue]]) -> None:
        """Pass curves of earlier trials to a tuner that learns from stopped ones."""
        if not self._tuner.learns_stopped:
            return
        own = self._scalarizer.tuner_intermediates
        self._tuner.import_curves(
            [
                {
                    "parameter": curve["parameter"],
                    "value": None if curve["value"] is None else value,
                    "intermediate": shown,
                }
                for curve in curves
                if (shown := own(curve["intermediate"]))
                for value in own([curve["value"]])
            ]
        )

    def expected_results(self, configurations: list[JsonValue]) -> list[float] | None:
        """Return the tuner's expected results; None with several objectives or with limits."""
        objectives = self._plan.objectives
        if objectives.several or objectives.limits:
            return None
        return self._tuner.expected_results(configurations)

    def resume_search(self, data: list[dict[str, JsonValue]]) -> None:
        """Import results of this search from before its interruption; stopping rules count them.

        Stopping rules count them, unlike results of other searches. Of several wrapped tuners, each
        gets the results of its own proposals.
        """
        note_proposers = getattr(self._tuner, "note_proposers", None)
        if callable(note_proposers):
            note_proposers(data)
        self.import_data(data)
        results = [(sample["parameter"], sample["value"]) for sample in data]
        self._monitor.replay(results, self._search_space)

    def _import_results(self, tuner_results: Sequence[TunerResult]) -> None:
        """Pass results of foreign trials to the tuner's `import_data`."""
        if tuner_results:
            self._tuner.import_data(
                [
                    {"parameter": result.parameters, "value": result.value}
                    for result in tuner_results
                ]
            )

    def _check_constraints(self, subject: str, configurations: Sequence[JsonValue]) -> None:
        broken = broken_constraints(self._search_space, configurations)
        for configuration, constraint in zip(configurations, broken, strict=True):
            if constraint:
                raise ValueError(
                    f"{subject} {configuration!r:.200} must keep the constraint {constraint}"
                )

    def _next(self, parameter_id: int, start_later: StartLater | None) -> JsonValue:
        """Open a trial's next configuration; return it, or `DEFERRED`, None if there is none."""
        if self._monitor.reason:
            return None
        if self._first:
            return self._opened(parameter_id, None, deepcopy(self._first.popleft()))
        transferred = self._transferred()
        if transferred is not None:
            return self._opened(parameter_id, None, transferred)
        for count in range(_REUSES):
            inner = self._next_inner
            self._next_inner += 1
            self._deferred[inner] = parameter_id
            answer = generate(self._tuner, [inner], self._later(start_later))
            if inner not in self._deferred:  # deferred and delivered within the same call
                return DEFERRED
            if answer.deferred:
                return DEFERRED
            del self._deferred[inner]
            if not answer.parameters:
                return None
            configuration = answer.parameters[0][1]
            key = configuration_hash(configuration)
            if self._plan.duplicates == "replicate" or not self._history.has(key):
                return self._opened(parameter_id, inner, configuration)
            self._reject_duplicate(inner, key, configuration)
            if count + 1 >= _RESAMPLES and self._plan.duplicates == "resample":
                break
        return self._new_sample(parameter_id)

    def _transferred(self) -> dict[str, JsonValue] | None:
        """Return a proposal by the ranks of earlier searches; None if it is the tuner's turn."""
        if self._transfer is None:
            return None
        return self._transfer.propose(trial.configuration for trial in self._open.values())

    def _transfer_proposer(self, seed: int | None) -> "TransferProposer":
        from nni.hpo.search.transfer import TransferProposer

        return TransferProposer(self._plan.earlier, self._plan.objectives, seed)

    def _required_space(self) -> Space:
        """Return the parsed space; ValueError for a form of the tuner's own."""
        if self._space is None:
            raise ValueError(
                "warm_start_by must be 'value' for a search space of the tuner's own form, "
                "got 'rank': ranks are modelled over named parameters"
            )
        return self._space

    def _reject_duplicate(self, inner: int, key: str, configuration: JsonValue) -> None:
        """End a duplicate proposal in the tuner, with its known result if that is reused."""
        value = self._history.results.get(key)
        reused = self._plan.duplicates == "reuse" and value is not None
        if reused:
            for result in self._scalarizer.tuner_results(configuration, value):
                if result.parameters is configuration:
                    self._tuner.receive_trial_result(inner, configuration, result.value)
                else:
                    self._import_results([result])
        self._tuner.trial_end(inner, reused)

    def _new_sample(self, parameter_id: int) -> JsonValue:
        """Open a new random sample of the space in place of duplicates; None if none is found."""
        if self._space is None:
            return None
        for _ in range(_DRAWS):
            configuration = self._space.draw(self._rng)
            if not self._history.has(configuration_hash(configuration)):
                return self._opened(parameter_id, None, configuration)
        return None

    def _opened(self, parameter_id: int, inner: int | None, configuration: JsonValue) -> JsonValue:
        key = configuration_hash(configuration)
        self._history.start(key)
        self._open[parameter_id] = _Open(inner, key, deepcopy(configuration))
        return configuration

    def _later(self, start_later: StartLater | None) -> StartLater | None:
        """Return a callback that starts a deferred proposal by its waiting trial's id; or None."""
        if start_later is None:
            return None

        def start(inner: int, configuration: JsonValue) -> None:
            parameter_id = self._deferred.pop(inner)
            start_later(parameter_id, self._opened(parameter_id, inner, configuration))

        return start


class ResumableManagedTuner(ManagedTuner):
    """`ManagedTuner` of a tuner whose state can be saved."""

    def state(self) -> dict[str, JsonValue]:
        """Return tuner, random state, queue, known results and open trials as JSON."""
        from nni.hpo.json_value import random_state

        assert isinstance(self._tuner, Resumable)
        return {
            "tuner": self._tuner.state(),
            "rng": random_state(self._rng),
            "scoring": self._scalarizer.state(),
            "watch": self._monitor.state(),
            "first": list(self._first),
            "results": self._history.results,
            "next_inner": self._next_inner,
            "open": [[key, t.inner, t.configuration] for key, t in self._open.items()],
            "deferred": list(self._deferred.items()),
            **({} if self._transfer is None else {"transfer": self._transfer.state()}),
        }

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore tuner, random state, queue, known results and open trials from a state."""
        from nni.hpo.json_value import restore_random

        assert isinstance(self._tuner, Resumable)
        self._tuner.load_state(state["tuner"])
        restore_random(self._rng, state["rng"])
        self._scalarizer.load_state(state["scoring"])
        self._monitor.load_state(state["watch"])
        self._first = deque(state["first"])
        self._history = _ConfigurationHistory(dict(state["results"]))
        self._next_inner = int(state["next_inner"])
        self._deferred = dict(state["deferred"])
        if self._transfer is not None:
            self._transfer.load_state(state["transfer"])
        self._open = {}
        for parameter_id, inner, configuration in state["open"]:
            self._opened(parameter_id, inner, configuration)
