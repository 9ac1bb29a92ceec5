"""Folder of a long finished experiment, made by the manager's own decisions in seconds."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

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
    folder = root / experiment_id
    for name in ("db", "log", "trials", "checkpoint"):
        (folder / name).mkdir(parents=True)
    journal = FolderJournals().open(str(folder), debug=False)
    maker = _Maker(random.Random(0), trials, parameters)
    for sequence, payload in enumerate(maker.batches(root, experiment_id), 1):
        journal.record(sequence, payload)
    journal.close()
    return folder


class _Maker:
    def __init__(self, random_: random.Random, trials: int, parameters: int) -> None:
        self._random = random_
        self._trials = trials
        self._names = [f"parameter_{n}" for n in range(parameters)]
        self._experiment = Experiment()
        self._ids = _Ids()
        self._now_ms = BEGIN_MS
        self._batches: list[bytes] = []

    def batches(self, root: Path, experiment_id: str) -> list[bytes]:
        config = config_pb2.ExperimentConfig(
            experiment_name="finished",
            trial_command="python3 trial.py",
            trial_code_directory=str(root),
            trial_concurrency=100,
            max_trial_number=self._trials,
            experiment_working_directory=str(root),
            search_space=to_value(
                {name: {"_type": "uniform", "_value": [0, 1]} for name in self._names}
            ),
        )
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
                item.parameters.CopyFrom(
                    to_value({name: self._random.random() for name in self._names})
                )
            message = inbox_pb2.InboxMessage(parameters_generated=generated)
            notifications += notifications_from(message.SerializeToString())
        return notifications

    def _notifications(self, trial_id: str) -> list[inputs.Notification]:
        reports = report_pb2.RunnerReports(runner_id="r1")
        for sequence in range(INTERMEDIATES + 3):
            report = reports.reports.add(
                trial_id=trial_id, attempt=1, sequence=sequence, claim_id=trial_id
            )
            if sequence == 0:
                report.started.started_at.FromMilliseconds(self._now_ms)
            elif sequence <= INTERMEDIATES + 1:
                report.metric.type = 2 if sequence > INTERMEDIATES else 1  # type: ignore[assignment] # FINAL after PERIODICAL
                report.metric.sequence = sequence - 1 if sequence <= INTERMEDIATES else 0
                report.metric.reported_at.FromMilliseconds(self._now_ms)
                report.metric.value.float_value = self._random.random()
            else:
                report.exited.cause = report_pb2.EXIT_CAUSE_ENDED
                report.exited.exit_code = 0
                report.exited.ended_at.FromMilliseconds(self._now_ms + self._random.randint(1, 99))
        return notifications_from(
            inbox_pb2.InboxMessage(runner_reports=reports).SerializeToString()
        )
