"""How fast does the manager fold a log, and what does one trial cost it in decisions?

Run: `python -m tests.benchmarks.bench_fold`. No service and no bus: domain and converters only.
"""

from __future__ import annotations

import sys
import time

from nni_proto.experiment.v1 import config_pb2, event_pb2, inbox_pb2
from nni_proto.trial.v1 import report_pb2
from nni_wire.values import to_value
from svc_manager.converters.creation import created_event
from svc_manager.converters.events import Stamp, batch_to_bytes
from svc_manager.converters.notifications import notifications_from
from svc_manager.converters.tasks import spec_of, task_of
from svc_manager.domain import events, inputs
from svc_manager.domain.decide import decide_notification, decide_recorded
from svc_manager.domain.decision_round import Round
from svc_manager.domain.effects import PublishTask
from svc_manager.domain.scheduling import settle
from svc_manager.domain.state import Experiment
from svc_manager.event_log.reader import FoldedExperiment, fold_batch
from svc_manager.event_log.snapshot import decode_snapshot, encode_snapshot
from tests.benchmarks.measure import print_figure, print_header

TRIALS = 5_000
CONCURRENCY = 8
REPEATS = 5
PARAMETERS = {f"p{n}": 0.1 * n for n in range(10)}


class _Ids:
    def __init__(self) -> None:
        self._count = 0

    def trial_id(self) -> str:
        self._count += 1
        return f"{self._count:05d}"


class _Load:
    """Drives an experiment as agent and dispatcher do, through encoded messages."""

    def __init__(self) -> None:
        self.experiment = Experiment()
        self.ids = _Ids()
        self.batches: list[bytes] = []
        self.event_count = 0
        self.now_ms = 1
        config = config_pb2.ExperimentConfig(
            trial_command="python3 trial.py",
            trial_concurrency=CONCURRENCY,
            max_trial_number=TRIALS,
            experiment_working_directory="/tmp/x",
        )
        created = created_event(
            "bench000",
            config,
            environment_sha256="",
            interpreter="python3",
            nni_version="0",
            resolved_mode=1,
        )
        self.round([], inputs.RecordedCommand(inputs.Create(created, 0, ""), "", "Create"))
        self.round([events.AlgorithmStarted(1, lookahead=False, assesses=False, provenance={})])
        self.spec = spec_of(self.experiment)

    def round(
        self,
        notifications: list[inputs.Notification],
        recorded: inputs.RecordedCommand | None = None,
    ) -> Round:
        round_ = Round(self.experiment, self.now_ms, self.ids)
        self.now_ms += 1
        for notification in notifications:
            decide_notification(round_, notification)
        if recorded is not None:
            decide_recorded(round_, recorded)
        settle(round_)
        self.event_count += len(round_.events)
        self.batches.append(batch_to_bytes(round_.events, Stamp(1, 0, self.now_ms), 1))
        for effect in round_.effects:
            if isinstance(effect, PublishTask):
                trial = self.experiment.trials[effect.trial_id]
                task_of("bench000", trial, self.spec, 0).SerializeToString()
        return round_


def _answers(load: _Load) -> list[bytes]:
    messages = []
    for request_id, ids in load.experiment.algorithm.asked.items():
        generated = event_pb2.ParametersGenerated(request_id=request_id)
        for parameter_id in sorted(ids):
            item = generated.parameters.add(parameter_id=parameter_id)
            item.parameters.CopyFrom(to_value(PARAMETERS))
        messages.append(inbox_pb2.InboxMessage(parameters_generated=generated).SerializeToString())
    return messages


def _attempt_reports(trial_id: str) -> bytes:
    reports = report_pb2.RunnerReports(runner_id="r1")
    for sequence in range(4):
        report = reports.reports.add(
            trial_id=trial_id, attempt=1, sequence=sequence, claim_id=trial_id
        )
        if sequence == 0:
            report.started.pid = 1
        elif sequence < 3:
            report.metric.type = 3 - sequence  # type: ignore[assignment] # PERIODICAL 1 after FINAL 2
            report.metric.value.float_value = 0.5
        else:
            report.exited.cause = report_pb2.EXIT_CAUSE_ENDED
            report.exited.exit_code = 0
    return inbox_pb2.InboxMessage(runner_reports=reports).SerializeToString()


def _run() -> tuple[float, _Load]:
    """Return the CPU time of all decisions and encodings, and what was written."""
    load = _Load()
    spent = 0.0
    while load.experiment.state.name != "DONE":
        messages = _answers(load) or [_attempt_reports(next(iter(load.experiment.live)))]
        begin = time.process_time()
        for message in messages:
            load.round(notifications_from(message))
        spent += time.process_time() - begin
    return spent, load


def main() -> int:
    """Print the figures."""
    print_header(__doc__ or "", packages=["protobuf"])
    costs, rates, encodes, decodes = [], [], [], []
    for _ in range(REPEATS):
        spent, load = _run()
        costs.append(spent / TRIALS * 1e3)
        folded = FoldedExperiment(Experiment())
        begin = time.process_time()
        for sequence, payload in enumerate(load.batches, 1):
            fold_batch(folded, sequence, payload)
        rates.append(load.event_count / (time.process_time() - begin))
        begin = time.process_time()
        snapshot = encode_snapshot(folded)
        encodes.append((time.process_time() - begin) * 1e3)
        begin = time.process_time()
        assert decode_snapshot(snapshot).experiment == folded.experiment
        decodes.append((time.process_time() - begin) * 1e3)
    print_figure("decide, fold, encode, tasks: CPU of a trial", costs, "ms", target="<= 1.2")
    print_figure("fold of a log", rates, "events/s", target=">= 50000")
    print_figure(f"snapshot of {TRIALS} trials, write", encodes, "ms")
    print_figure(f"snapshot of {TRIALS} trials, read", decodes, "ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
