"""Folder of a finished experiment, made by the manager's own decisions in seconds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2, inbox_pb2
from nni_proto.trial.v1 import report_pb2
from nni_wire.values import to_value
from svc_manager.adapters.folder_journals import FolderJournals
from svc_manager.converters.creation import created_event
from svc_manager.converters.events import Stamp, batch_to_bytes
from svc_manager.converters.notifications import notifications_from
from svc_manager.domain import events, inputs
from svc_manager.domain.decide import decide_notification, decide_recorded
from svc_manager.domain.decision_round import Round
from svc_manager.domain.scheduling import settle
from svc_manager.domain.state import Experiment

BEGIN_MS = 1_700_000_000_000
INTERMEDIATES = 3
"""Intermediate reports of each trial."""


@dataclass(frozen=True, slots=True)
class Run:
    """Parameters and reports of one trial, and how it ended."""

    parameters: Mapping[str, object]
    intermediates: Sequence[object] = ()
    result: object = None
    """None: it reported none."""
    end: str = "SUCCEEDED"
    """`SUCCEEDED`, `FAILED` or `EARLY_STOPPED`."""


_EXITS: Final = {
    "SUCCEEDED": (report_pb2.EXIT_CAUSE_ENDED, 0),
    "FAILED": (report_pb2.EXIT_CAUSE_ENDED, 1),
    "EARLY_STOPPED": (report_pb2.EXIT_CAUSE_TIME_LIMIT, 0),
}
"""Exit cause and code that an agent reports for each end."""


class _Ids:
    def __init__(self) -> None:
        self._count = itertools.count()

    def trial_id(self) -> str:
        return f"t{next(self._count):06d}"


def write_finished(root: Path, experiment_id: str, trials: int, parameters: int = 10) -> Path:
    """Write the folder `<root>/<id>` of a finished experiment and return it.

    Args:
        root: an existing folder.
        experiment_id: its id.
        trials: how many it had, all SUCCEEDED.
        parameters: numbers in each trial's parameters.
    """
    random_ = random.Random(0)
    names = [f"parameter_{number}" for number in range(parameters)]
    runs = [
        Run(
            {name: random_.random() for name in names},
            [random_.random() for _ in range(INTERMEDIATES)],
            random_.random(),
        )
        for _ in range(trials)
    ]
    config = config_pb2.ExperimentConfig(
        experiment_name="finished",
        search_space=to_value({name: {"_type": "uniform", "_value": [0, 1]} for name in names}),
    )
    return write_runs(root, experiment_id, runs, config)


def write_runs(
    root: Path, experiment_id: str, runs: Sequence[Run], config: config_pb2.ExperimentConfig
) -> Path:
    """Write the folder `<root>/<id>` of a finished experiment with these trials and return it.

    Args:
        root: an existing folder.
        experiment_id: its id.
        runs: its trials, in order.
        config: name, space, objectives and limits; the rest is set here.
    """
    folder = root / experiment_id
    for name in ("db", "log", "trials", "checkpoint"):
        (folder / name).mkdir(parents=True)
    journal = FolderJournals().open(str(folder), debug=False)
    maker = _Maker(runs)
    for sequence, payload in enumerate(maker.batches(root, experiment_id, config), 1):
        journal.record(sequence, payload)
    journal.close()
    return folder


class _Maker:
    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._experiment = Experiment()
        self._ids = _Ids()
        self._now_ms = BEGIN_MS
        self._batches: list[bytes] = []

    def batches(
        self, root: Path, experiment_id: str, config: config_pb2.ExperimentConfig
    ) -> list[bytes]:
        config.trial_command = "python3 trial.py"
        config.trial_code_directory = str(root)
        config.trial_concurrency = 100
        config.max_trial_number = len(self._runs)
        config.experiment_working_directory = str(root)
        config.tuner.name = "Random"
        config.training_services.add(platform="local")
        created = created_event(
            experiment_id,
            config,
            environment_sha256="",
            interpreter="python3",
            nni_version="0",
            resolved_mode=1,
        )
        self._round([], inputs.RecordedCommand(inputs.Create(created, 0, ""), "", "Create"))
        self._round([events.AlgorithmStarted(1, lookahead=True, assesses=False, provenance={})])
        while self._experiment.state.name != "DONE":
            self._round(self._answers())
            self._round(
                [
                    notification
                    for key in list(self._experiment.live)
                    for notification in self._notifications(key)
                ]
            )
        self._round([], inputs.RecordedCommand(inputs.Stop(), "", "Stop"))
        return self._batches

    def _round(
        self,
        notifications: list[inputs.Notification],
        recorded: inputs.RecordedCommand | None = None,
    ) -> None:
        round_ = Round(self._experiment, self._now_ms, self._ids)
        self._now_ms += 100
        for notification in notifications:
            decide_notification(round_, notification)
        if recorded is not None:
            decide_recorded(round_, recorded)
        settle(round_)
        self._batches.append(batch_to_bytes(round_.events, Stamp(1, 0, self._now_ms), 1))

    def _answers(self) -> list[inputs.Notification]:
        notifications: list[inputs.Notification] = []
        for request_id, ids in self._experiment.algorithm.asked.items():
            generated = event_pb2.ParametersGenerated(request_id=request_id)
            for parameter_id in sorted(ids):
                item = generated.parameters.add(parameter_id=parameter_id)
                item.parameters.CopyFrom(to_value(dict(self._runs[parameter_id].parameters)))
            message = inbox_pb2.InboxMessage(parameters_generated=generated)
            notifications += notifications_from(message.SerializeToString())
        return notifications

    def _notifications(self, trial_id: str) -> list[inputs.Notification]:
        number = self._experiment.trials[trial_id].sequence_id
        run = self._runs[number]
        reports = report_pb2.RunnerReports(runner_id="r1")
        started = self._add(reports, trial_id)
        started.started.started_at.FromMilliseconds(self._now_ms)
        results = [] if run.result is None else [run.result]
        for kind, values in (
            (metric_pb2.METRIC_TYPE_PERIODICAL, run.intermediates),
            (metric_pb2.METRIC_TYPE_FINAL, results),
        ):
            for sequence, value in enumerate(values):
                metric = self._add(reports, trial_id).metric
                metric.type = kind
                metric.sequence = sequence
                metric.reported_at.FromMilliseconds(self._now_ms)
                metric.value.CopyFrom(to_value(value))
        exited = self._add(reports, trial_id).exited
        exited.cause, exited.exit_code = _EXITS[run.end]
        exited.ended_at.FromMilliseconds(self._now_ms + 1 + number * 37 % 99)
        return notifications_from(
            inbox_pb2.InboxMessage(runner_reports=reports).SerializeToString()
        )

    @staticmethod
    def _add(reports: report_pb2.RunnerReports, trial_id: str) -> report_pb2.TrialReport:
        return reports.reports.add(
            trial_id=trial_id, attempt=1, sequence=len(reports.reports), claim_id=trial_id
        )
