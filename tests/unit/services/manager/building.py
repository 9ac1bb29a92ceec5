"""Experiments for tests of the manager's domain, built from the events of real ones."""

from __future__ import annotations

import itertools

from nni_proto.common.v1 import value_pb2
from nni_wire.values import to_value
from svc_common.experiment_events.causes import (
    ExperimentCause,
    ExperimentReason,
    LossCause,
    LossReason,
    WaitCause,
    WaitReason,
)
from svc_manager.domain import events, inputs
from svc_manager.domain.callers import Answer, Callers
from svc_manager.domain.decide import decide_notification, decide_recorded
from svc_manager.domain.decision_round import Round
from svc_manager.domain.effects import Effect
from svc_manager.domain.experiment import Budget, ExperimentSettings, ExperimentState
from svc_manager.domain.fold import fold
from svc_manager.domain.reports import (
    ExitCause,
    Exited,
    Lost,
    Report,
    ReportBody,
    Started,
    Waits,
)
from svc_manager.domain.scheduling import settle
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.values import Metric, MetricType, Numbers, OptimizeMode, Parameters

EXPERIMENT_ID = "expt1234"


class CountingIds:
    """`IdSource` and `TrialIds` that count: 00000, 00001, ..."""

    def __init__(self) -> None:
        self._count = itertools.count()

    def trial_id(self) -> str:
        return f"{next(self._count):05d}"

    def experiment_id(self, request_id: str = "", draw: int = 0) -> str:
        del request_id, draw
        return f"exp{next(self._count):05d}"

    def seed(self) -> int:
        return 7


def encoded(data: object) -> bytes:
    return to_value(data).SerializeToString()


def decoded(value: bytes) -> value_pb2.Value:
    return value_pb2.Value.FromString(value)


def final(number: float | str, sequence: int = 0) -> Metric:
    return _metric(MetricType.FINAL, sequence, number)


def intermediate(number: float, sequence: int = 0) -> Metric:
    return _metric(MetricType.PERIODICAL, sequence, number)


def _metric(type_: MetricType, sequence: int, number: float | str) -> Metric:
    numbers: Numbers = float(number) if isinstance(number, int | float) else None
    return Metric(type_, sequence, encoded(number), numbers, 5)


def created(
    budget: Budget | None = None,
    settings: ExperimentSettings | None = None,
) -> events.ExperimentCreated:
    return events.ExperimentCreated(
        experiment_id=EXPERIMENT_ID,
        config=b"",
        settings=settings or ExperimentSettings(optimize_mode=OptimizeMode.MINIMIZE),
        budget=budget or Budget(trial_concurrency=2, max_trial_number=10),
        directory=f"/root/{EXPERIMENT_ID}",
        environment_sha256="",
        interpreter="python3",
        nni_version="0",
        optimize_mode=OptimizeMode.MINIMIZE,
    )


class Lab:
    """One experiment with its log and clock, driven like an actor drives it."""

    def __init__(
        self,
        budget: Budget | None = None,
        settings: ExperimentSettings | None = None,
        *,
        started: bool = True,
        lookahead: bool = False,
        learned_metrics: tuple[str, ...] = (),
    ) -> None:
        self.experiment = Experiment()
        self.ids = CountingIds()
        self.now_ms = 1_000
        self.log: list[tuple[int, events.Event]] = []
        self.effects: list[Effect] = []
        self.last: list[events.Event] = []
        self.callers = Callers()
        self.answers: dict[str, Answer] = {}
        """Answers to the asks of the last round."""
        self.command(inputs.Create(created(budget, settings), 0, ""))
        if started:
            self.notification(
                events.AlgorithmStarted(
                    1, lookahead, assesses=False, provenance={}, learned_metrics=learned_metrics
                )
            )

    def command(self, command: inputs.Command, request_id: str = "") -> list[events.Event]:
        round_ = self._round()
        decide_recorded(round_, inputs.RecordedCommand(command, request_id, "Test"))
        return self._end(round_)

    def commands(self, *commands: inputs.Command) -> list[events.Event]:
        """Decide on several commands in one round."""
        round_ = self._round()
        for command in commands:
            decide_recorded(round_, inputs.RecordedCommand(command, "", "Test"))
        return self._end(round_)

    def notification(self, *notifications: inputs.Notification) -> list[events.Event]:
        round_ = self._round()
        for notification in notifications:
            decide_notification(round_, notification)
        return self._end(round_)

    def _round(self) -> Round:
        return Round(self.experiment, self.now_ms, self.ids, self.callers)

    def _end(self, round_: Round) -> list[events.Event]:
        settle(round_)
        self.log.extend((self.now_ms, event) for event in round_.events)
        self.effects = round_.effects
        self.last = round_.events
        self.answers = round_.answers
        return round_.events

    def refolded(self) -> Experiment:
        """Fold the log from the first event."""
        experiment = Experiment()
        for time_ms, event in self.log:
            fold(experiment, event, time_ms)
        return experiment

    def answer(
        self, *, exhausted: bool = False, deferred: int = 0, count: int | None = None
    ) -> None:
        """Answer every open request of the algorithm."""
        for request_id, ids in list(self.experiment.algorithm.asked.items()):
            given = sorted(ids)[: len(ids) - deferred if count is None else count]
            self.notification(generated(request_id, given, exhausted=exhausted, deferred=deferred))

    def waiting(self) -> Trial:
        """Return the first waiting trial; ask the algorithm if there is none."""
        if not any(t.state is TrialState.WAITING for t in self.experiment.live.values()):
            self.answer()
        return next(t for t in self.experiment.live.values() if t.state is TrialState.WAITING)

    def running(self, claim: str = "claim", runner: str = "r1") -> Trial:
        """Return a trial that has just started."""
        trial = self.waiting()
        self.report(trial, 0, Started(self.now_ms), claim=claim, runner=runner)
        return trial

    def report(
        self,
        trial: Trial,
        sequence: int,
        body: ReportBody,
        *,
        claim: str = "claim",
        runner: str = "r1",
        attempt: int | None = None,
    ) -> list[events.Event]:
        return self.notification(
            Report(
                runner,
                trial.id,
                trial.attempt if attempt is None else attempt,
                sequence,
                claim,
                body,
            )
        )

    def finish(self, trial: Trial, value: float | str = 1.0) -> None:
        """Report a result of a running trial and its successful end."""
        sequence = trial.report_sequence
        self.report(trial, sequence + 1, final(value), claim=trial.claim_id)
        self.report(trial, sequence + 2, exited(), claim=trial.claim_id)


def exited(code: int | None = 0, cause: ExitCause = ExitCause.ENDED, detail: str = "") -> Exited:
    return Exited(9_000, cause, code, 0 if code is not None else 9, detail)


def lost(detail: str) -> Lost:
    return Lost(LossReason(LossCause.AGENT_FAILED, detail=detail))


def waits_for_gpus(count: int = 1) -> Waits:
    return Waits(WaitReason(WaitCause.GPU_IN_USE, gpu_count=count))


def change(
    before: ExperimentState | None,
    after: ExperimentState,
    cause: ExperimentCause = ExperimentCause.UNSPECIFIED,
    detail: str = "",
) -> events.ExperimentStateChanged:
    return events.ExperimentStateChanged(before, after, ExperimentReason(cause, detail), 0)


def generated(
    request_id: str, ids: list[int], *, exhausted: bool = False, deferred: int = 0
) -> events.ParametersGenerated:
    return events.ParametersGenerated(
        request_id,
        tuple(Parameters(n, encoded({"x": n}), encoded({"by": "test"})) for n in ids),
        exhausted,
        deferred,
        (1, 0),
    )


def kinds(events: list[events.Event]) -> list[type]:
    return [type(event) for event in events]
