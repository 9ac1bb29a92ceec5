"""Driver of a tuner with an optional assessor."""

from dataclasses import dataclass, field
from typing import Any, Final

from nni.hpo.base import Assessor, AssessResult, Tuner, assess, generate, is_resumable
from nni.hpo.search.driver import (
    CallbackGuard,
    MetricCommand,
    ParameterTable,
    Provenance,
    SendMessage,
    Suggestions,
    TrialEndCommand,
    released_by,
)

_PAUSE: Final = 8
"""Results without preparation after a preparation that no request used."""
_NO_PARAMETERS: Final = -1
"""Id of the parameters of an earlier report: no tuner is asked about it."""


@dataclass(slots=True)
class _History:
    """Intermediate results of one trial, with its attempt and the longest assessed length."""

    attempt: int
    values: list[Any] = field(default_factory=list)
    longest_assessed: int = 0
    """Length of the longest assessed history, over all attempts."""


class TunerDriver:
    """`AlgorithmDriver` of a tuner with an optional assessor.

    Args:
        tuner: the tuner.
        assessor: the assessor of running trials; None if there is none.
        origin: constant part of the provenance of suggestions.
        send: callback for messages.
    """

    def __init__(
        self, tuner: Tuner, assessor: Assessor | None, origin: dict[str, Any], send: SendMessage
    ) -> None:
        self.lookahead = bool(getattr(tuner, "lookahead", False))
        self.assesses = assessor is not None
        self._tuner = tuner
        self._assessor = assessor
        self._provenance = Provenance(origin)
        self._send = send
        self._guard = CallbackGuard(send)
        self._table = ParameterTable(send)
        self._histories: dict[str, _History] = {}
        self._requested: set[int] = set()
        self._started: dict[int, Any] = {}
        self._search_space: object = None
        self._has_deferred = False
        self._stop_advised: set[str] = set()
        self._has_new_result = False
        self._prepared = False
        self._pause_left = 0

    def initialize(self, search_space: object) -> None:
        """Set the first search space; exceptions propagate."""
        self._search_space = search_space
        self._tuner.update_search_space(search_space)

    def update_search_space(self, search_space: object) -> None:
        """Replace the search space; exceptions are reported and skipped."""
        self._search_space = search_space
        self._guard.call("update_search_space", self._tuner.update_search_space, search_space)

    def generate(self, parameter_ids: list[int]) -> Suggestions:
        """Ask the tuner for a configuration per id; return those, and how many it deferred."""
        self._requested, self._started = set(parameter_ids), {}
        self._has_new_result = self._prepared = False
        try:
            generated = generate(self._tuner, parameter_ids, self._start_later)
        finally:
            self._requested = set()
        # A configuration deferred and delivered within the same call is part of the answer.
        pairs = dict(generated.parameters) | self._started
        self._has_deferred = self._has_deferred or bool(generated.deferred)
        return Suggestions(
            tuple([self._suggested(*pair) for pair in pairs.items()]),
            deferred=len(set(generated.deferred) - pairs.keys()) if generated.deferred else 0,
            exhausted=generated.exhausted,
            released=released_by(self._tuner),
        )

    def prepare(self) -> None:
        """Compute the tuner's next proposal in advance if a result came since; pause if wasted.

        The time between the result of a trial and the request after its end, while the trial exits,
        is used. If results arrive faster than requests, preparation is wasted and pauses.
        """
        if not self._has_new_result:
            return
        self._has_new_result = False
        if self._pause_left > 0:
            self._pause_left -= 1
            return
        self._prepared = True
        self._guard.call("prepare_parameters", self._tuner.prepare_parameters)

    def _start_later(self, parameter_id: int, parameters: object) -> None:
        if parameter_id in self._requested:
            self._started[parameter_id] = parameters
        else:
            self._send({"late": [self._suggested(parameter_id, parameters)]})

    def _suggested(self, parameter_id: int, parameters: object) -> tuple[int, Any, dict[str, Any]]:
        self._table.put(parameter_id, parameters)
        return parameter_id, parameters, self._origin_of(parameter_id)

    def _origin_of(self, parameter_id: int) -> dict[str, Any]:
        """Return the provenance of a suggestion; with several tuners, also who proposed it."""
        proposer_of = getattr(self._tuner, "proposer_of", None)
        proposer = proposer_of(parameter_id) if callable(proposer_of) else ""
        origin = self._provenance.now()
        return origin | {"tuner": str(proposer)} if proposer else origin

    def metric(self, command: MetricCommand) -> None:
        """Pass an intermediate metric to the assessor, or a proposal's final one to the tuner."""
        if not command.final:
            self._assess(command)
        elif not command.customized:
            self._provenance.results += 1
            if self._prepared:
                self._prepared, self._pause_left = False, _PAUSE
            self._has_new_result = True
            self._guard.call(
                "receive_trial_result",
                self._tuner.receive_trial_result,
                command.parameter_id,
                self._table.get(command.parameter_id),
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
        if len(history.values) <= history.longest_assessed:
            return  # a later attempt that is still shorter than an earlier one
        history.longest_assessed = len(history.values)
        assessment = self._guard.call(
            "assess_trial", assess, self._assessor, command.trial_id, list(history.values)
        )
        if assessment is AssessResult.Bad:
            self._stop_advised.add(command.trial_id)
            self._send({"stop": command.trial_id})

    def trial_end(self, command: TrialEndCommand) -> None:
        """Notify tuner and assessor of a trial's end; forget its metrics and configuration."""
        if not command.customized:
            self._guard.call(
                "trial_end",
                self._tuner.trial_end,
                command.parameter_id,
                command.success,
                trial_job_id=command.trial_id,
                **self._details_of(command),
            )
        if self._assessor is not None:
            self._guard.call(
                "trial_end", self._assessor.trial_end, command.trial_id, command.success
            )
        self._histories.pop(command.trial_id, None)
        self._stop_advised.discard(command.trial_id)
        self._table.forget(command.parameter_id)

    def _details_of(self, command: TrialEndCommand) -> dict[str, Any]:
        """Return the keywords of a tuner's `trial_end` that only some ends and tuners have."""
        details: dict[str, Any] = {} if command.success else {"event": command.event}
        history = self._histories.get(command.trial_id)
        if history is not None and getattr(self._tuner, "learns_stopped", False):
            details["intermediate"] = list(history.values)
        if command.duration_s is not None and getattr(self._tuner, "learns_durations", False):
            details["duration_s"] = command.duration_s
        return details

    def import_data(self, data: object, *, own: bool = False) -> None:
        """Import samples into the tuner; own earlier ones by `resume_search` if it has it."""
        self._provenance.imported(data)
        resume = getattr(self._tuner, "resume_search", None) if own else None
        self._guard.call("import_data", resume or self._tuner.import_data, data)

    def import_curves(self, curves: list[dict[str, Any]]) -> None:
        """Pass curves of earlier trials to a tuner that learns from stopped ones."""
        if getattr(self._tuner, "learns_stopped", False):
            self._guard.call("import_curves", self._tuner.import_curves, curves)

    def import_reports(self, reports: list[list[Any]]) -> None:
        """Pass earlier reports and ends to the assessor alone, as if it had never changed."""
        for trial_id, *rest in reports:
            if len(rest) == 1:
                self.trial_end(TrialEndCommand(trial_id, _NO_PARAMETERS, rest[0], customized=True))
            else:
                attempt, sequence, value = rest
                self._assess(
                    MetricCommand(
                        trial_id,
                        attempt,
                        _NO_PARAMETERS,
                        final=False,
                        sequence=sequence,
                        value=value,
                        customized=True,
                    )
                )

    def add_customized(self, parameter_id: int, parameters: object) -> None:
        """Do nothing: tuners ignore trials that a user has added."""

    def record(self, parameter_id: int, parameters: object) -> None:
        """Set the logged parameters of an id, which override the algorithm's."""
        self._table.record(parameter_id, parameters)

    def knows(self, parameter_id: int) -> bool:
        """Return whether the id belongs to a trial that has not ended."""
        return parameter_id in self._table

    def snapshot(self) -> dict[str, Any] | None:
        """Return the whole state as JSON; None if a part has none or a trial was ever deferred."""
        parts: dict[str, Any] = {"tuner": self._tuner, "assessor": self._assessor}
        if self._has_deferred or not all(map(_is_resumable, parts.values())):
            return None
        return {
            "search_space": self._search_space,
            "algorithms": {name: part.state() for name, part in parts.items() if part is not None},
            "known": self._table.snapshot(),
            "histories": {
                trial_id: (history.attempt, history.values, history.longest_assessed)
                for trial_id, history in self._histories.items()
            },
            "advised": sorted(self._stop_advised),
            "results": self._provenance.results,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a snapshot of an equal algorithm, and send its advised stops again."""
        if state["search_space"] != self._search_space:
            self.initialize(state["search_space"])
        parts: dict[str, Any] = {"tuner": self._tuner, "assessor": self._assessor}
        for name, saved in state["algorithms"].items():
            parts[name].load_state(saved)
        for parameter_id, parameters in state["known"]:
            self._table.put(parameter_id, parameters)
        for trial_id, history in state["histories"].items():
            self._histories[trial_id] = _History(*history)
        self._provenance.results = state["results"]
        for trial_id in state["advised"]:  # the message may be lost
            self._stop_advised.add(trial_id)
            self._send({"stop": trial_id})

    def repeat(self, parameter_ids: list[int]) -> Suggestions:
        """Return logged configurations again for requests made before the snapshot."""
        known = [parameter_id for parameter_id in parameter_ids if parameter_id in self._table]
        return Suggestions(
            tuple((id_, self._table.get(id_), self._origin_of(id_)) for id_ in known),
            exhausted=len(known) < len(parameter_ids),
        )


def _is_resumable(algorithm: object) -> bool:
    """Return whether an algorithm is absent or its state can be saved."""
    return algorithm is None or is_resumable(algorithm)
