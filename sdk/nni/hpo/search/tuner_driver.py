"""Hosts a tuner, an assessor, or both."""

from dataclasses import dataclass, field
from typing import Any, Final

from nni.hpo.base import Assessor, AssessResult, Tuner, assess, generate
from nni.hpo.search.driver import (
    Answer,
    KnownParameters,
    MetricCommand,
    Provenance,
    Rim,
    Say,
    TrialEndCommand,
    released_by,
)

_PAUSE: Final = 8
"""Results for which nothing is prepared after a preparation that no request came for."""


@dataclass(slots=True)
class _History:
    """Intermediate results of one trial."""

    attempt: int
    values: list[Any] = field(default_factory=list)
    longest_told: int = 0
    """Length of the longest history the assessor has seen, over all attempts."""


class TunerHosting:
    """Calls tuner and assessor as their base classes promise.

    Args:
        tuner: proposes.
        assessor: judges running trials; None if there is none.
        origin: what is the same in the provenance of every suggestion.
        say: where answers go.
    """

    def __init__(
        self, tuner: Tuner, assessor: Assessor | None, origin: dict[str, Any], say: Say
    ) -> None:
        self.lookahead = bool(getattr(tuner, "lookahead", False))
        self.assesses = assessor is not None
        self._tuner = tuner
        self._assessor = assessor
        self._provenance = Provenance(origin)
        self._say = say
        self._rim = Rim(say)
        self._known = KnownParameters(say)
        self._histories: dict[str, _History] = {}
        self._asked: set[int] = set()
        self._started: dict[int, Any] = {}
        self._search_space: object = None
        self._has_deferred = False
        self._advised: set[str] = set()
        self._news = False
        self._prepared = False
        self._in_vain = 0

    def initialize(self, search_space: object) -> None:
        """See `HostedAlgorithm`."""
        self._search_space = search_space
        self._tuner.update_search_space(search_space)

    def update_search_space(self, search_space: object) -> None:
        """See `HostedAlgorithm`."""
        self._search_space = search_space
        self._rim.call("update_search_space", self._tuner.update_search_space, search_space)

    def generate(self, parameter_ids: list[int]) -> Answer:
        """See `HostedAlgorithm`."""
        self._asked, self._started = set(parameter_ids), {}
        self._news = self._prepared = False
        try:
            generated = generate(self._tuner, parameter_ids, self._start_later)
        finally:
            self._asked = set()
        # Deferred and yet started within the same call: simply part of the answer.
        pairs = dict(generated.parameters) | self._started
        self._has_deferred = self._has_deferred or bool(generated.deferred)
        return Answer(
            tuple(self._suggested(parameter_id, pairs[parameter_id]) for parameter_id in pairs),
            deferred=len(set(generated.deferred) - pairs.keys()),
            exhausted=generated.exhausted,
            released=released_by(self._tuner),
        )

    def prepare(self) -> None:
        """See `HostedAlgorithm`.

        Between the result of a trial and the request that follows its end there is time: as long as
        the trial takes to exit. Where results come faster than requests, preparing is in vain and
        pauses.
        """
        if not self._news:
            return
        self._news = False
        if self._in_vain > 0:
            self._in_vain -= 1
            return
        self._prepared = True
        self._rim.call("prepare_parameters", self._tuner.prepare_parameters)

    def _start_later(self, parameter_id: int, parameters: object) -> None:
        if parameter_id in self._asked:
            self._started[parameter_id] = parameters
        else:
            self._say({"late": [self._suggested(parameter_id, parameters)]})

    def _suggested(self, parameter_id: int, parameters: object) -> tuple[int, Any, dict[str, Any]]:
        self._known.put(parameter_id, parameters)
        return parameter_id, parameters, self._provenance.now()

    def metric(self, command: MetricCommand) -> None:
        """See `HostedAlgorithm`."""
        if not command.final:
            self._assess(command)
        elif not command.customized:
            self._provenance.results += 1
            if self._prepared:
                self._prepared, self._in_vain = False, _PAUSE
            self._news = True
            self._rim.call(
                "receive_trial_result",
                self._tuner.receive_trial_result,
                command.parameter_id,
                self._known.get(command.parameter_id),
                command.value,
                trial_job_id=command.trial_id,
                customized=False,
            )

    def _assess(self, command: MetricCommand) -> None:
        if self._assessor is None:
            return
        history = self._histories.get(command.trial_id)
        if history is None:
            history = self._histories[command.trial_id] = _History(command.attempt)
        if command.attempt != history.attempt:
            history.attempt = command.attempt
            history.values.clear()
        history.values.append(command.value)
        if len(history.values) <= history.longest_told:
            return  # a later attempt that has not yet come as far as an earlier one
        history.longest_told = len(history.values)
        verdict = self._rim.call(
            "assess_trial", assess, self._assessor, command.trial_id, list(history.values)
        )
        if verdict is AssessResult.Bad:
            self._advised.add(command.trial_id)
            self._say({"stop": command.trial_id})

    def trial_end(self, command: TrialEndCommand) -> None:
        """See `HostedAlgorithm`."""
        if not command.customized:
            self._rim.call(
                "trial_end",
                self._tuner.trial_end,
                command.parameter_id,
                command.success,
                trial_job_id=command.trial_id,
            )
        if self._assessor is not None:
            self._rim.call("trial_end", self._assessor.trial_end, command.trial_id, command.success)
        self._histories.pop(command.trial_id, None)
        self._advised.discard(command.trial_id)
        self._known.forget(command.parameter_id)

    def import_data(self, data: object, *, own: bool = False) -> None:
        """See `HostedAlgorithm`; only a tuner with a plan around it tells the two apart."""
        self._provenance.imported(data)
        resume = getattr(self._tuner, "resume_search", None) if own else None
        self._rim.call("import_data", resume or self._tuner.import_data, data)

    def add_customized(self, parameter_id: int, parameters: object) -> None:
        """See `HostedAlgorithm`; tuners are not told."""

    def record(self, parameter_id: int, parameters: object) -> None:
        """See `HostedAlgorithm`."""
        self._known.record(parameter_id, parameters)

    def knows(self, parameter_id: int) -> bool:
        """See `HostedAlgorithm`."""
        return parameter_id in self._known

    def snapshot(self) -> dict[str, Any] | None:
        """See `HostedAlgorithm`; what deferring tuners have promised is not in their state."""
        parts: dict[str, Any] = {"tuner": self._tuner, "assessor": self._assessor}
        if self._has_deferred or not all(map(_tells_its_state, parts.values())):
            return None
        return {
            "search_space": self._search_space,
            "algorithms": {name: part.state() for name, part in parts.items() if part is not None},
            "known": self._known.snapshot(),
            "histories": {
                trial_id: (history.attempt, history.values, history.longest_told)
                for trial_id, history in self._histories.items()
            },
            "advised": sorted(self._advised),
            "results": self._provenance.results,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """See `HostedAlgorithm`."""
        if state["search_space"] != self._search_space:
            self.initialize(state["search_space"])
        parts: dict[str, Any] = {"tuner": self._tuner, "assessor": self._assessor}
        for name, kept in state["algorithms"].items():
            parts[name].load_state(kept)
        for parameter_id, parameters in state["known"]:
            self._known.put(parameter_id, parameters)
        for trial_id, history in state["histories"].items():
            self._histories[trial_id] = _History(*history)
        self._provenance.results = state["results"]
        for trial_id in state["advised"]:  # it may not have arrived
            self._advised.add(trial_id)
            self._say({"stop": trial_id})

    def repeat(self, parameter_ids: list[int]) -> Answer:
        """See `HostedAlgorithm`."""
        known = [parameter_id for parameter_id in parameter_ids if parameter_id in self._known]
        return Answer(
            tuple((id_, self._known.get(id_), self._provenance.now()) for id_ in known),
            exhausted=len(known) < len(parameter_ids),
        )


def _tells_its_state(algorithm: object) -> bool:
    """Whether an algorithm can be saved; true where there is none."""
    return algorithm is None or (hasattr(algorithm, "state") and hasattr(algorithm, "load_state"))
