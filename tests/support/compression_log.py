"""Log of a compression job, and the archive of a step's files, for tests of its clients."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from typing import Any

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import to_value
from tests.support.scripted_manager import scheduled

RUNNING = experiment_pb2.EXPERIMENT_STATE_RUNNING
DONE = experiment_pb2.EXPERIMENT_STATE_DONE
ERROR = experiment_pb2.EXPERIMENT_STATE_ERROR
SUCCEEDED = trial_pb2.TRIAL_STATE_SUCCEEDED
FAILED = trial_pb2.TRIAL_STATE_FAILED


def created(job: object, *, job_id: str = "abcd1234", name: str = "halved") -> event_pb2.Event:
    config = config_pb2.ExperimentConfig(experiment_name=name)
    config.compression.job.CopyFrom(to_value(job))
    return event_pb2.Event(
        experiment_created=event_pb2.ExperimentCreated(experiment_id=job_id, config=config)
    )


def changed(state: experiment_pb2.ExperimentState.ValueType, detail: str = "") -> event_pb2.Event:
    cause = experiment_pb2.ExperimentReason(detail=detail)
    change = event_pb2.ExperimentStateChanged(new_state=state, cause=cause)
    return event_pb2.Event(experiment_state_changed=change)


def step_events(
    number: int,
    trial_id: str,
    result: Mapping[str, Any] | None = None,
    state: trial_pb2.TrialState.ValueType = SUCCEEDED,
    checkpoint: str = "",
) -> list[event_pb2.Event]:
    """Return the events of one trial of a step, from its creation to its end."""
    end = event_pb2.TrialEnded(trial_id=trial_id, state=state)
    if checkpoint:
        end.checkpoint.archive.sha256 = checkpoint
    events = [
        scheduled(trial_id, number, to_value({"step": number})),
        event_pb2.Event(trial_started=event_pb2.TrialStarted(trial_id=trial_id)),
    ]
    if result is not None:
        metric = metric_pb2.Metric(type=metric_pb2.METRIC_TYPE_FINAL, value=to_value(result))
        reported = event_pb2.MetricReported(trial_id=trial_id, metric=metric)
        events.append(event_pb2.Event(metric_reported=reported))
    return [*events, event_pb2.Event(trial_ended=end)]


def archive_of(files: Mapping[str, bytes], *, link: str = "") -> tuple[str, bytes]:
    """Return hash and content of a tar archive of these files, and of a link if it is named."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        if link:
            member = tarfile.TarInfo(link)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(member)
    content = buffer.getvalue()
    return hashlib.sha256(content).hexdigest(), content
