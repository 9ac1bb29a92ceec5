"""Client of compression jobs: submit, list, follow, cancel, resume, fetch."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from nni.compression.job.description import JobDescription
from nni.compression.remote.checkpoint_files import unpack_checkpoint
from nni.compression.remote.status import JobStatus, StatusFold, StepStatus
from nni.experiment.client import ManagerClient
from nni.experiment.endpoint import Endpoint
from nni.experiment.environment import experiment_environment
from nni.experiment.errors import NotFoundError, WrongStateError
from nni.experiment.local_shape import ensure_local_shape, running_endpoint
from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_service_pb2
from nni_wire.values import to_value

_STDERR: Final = experiment_service_pb2.LOG_SOURCE_TRIAL_STDERR
_STDOUT: Final = experiment_service_pb2.LOG_SOURCE_TRIAL_STDOUT
OVER: Final = frozenset({"DONE", "ERROR", "STOPPED", "VIEWED"})
"""States in which a job runs no more steps."""


class RemoteJob:
    """Handle of a compression job of the services; use it as a context manager, or `close` it.

    Args:
        job_id: id of the job's experiment.
        client: connection to the services, which the handle closes; None: one to those that run.

    Examples:
        See `docs/compression-jobs.md`, where a job is submitted, followed and fetched.
    """

    def __init__(self, job_id: str, client: ManagerClient | None = None) -> None:
        self.id = job_id
        self._client = client or ManagerClient(running_endpoint())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; may be called twice. The job continues."""
        self._client.close()

    def status(self) -> JobStatus:
        """Return the status of the job and of each step.

        Raises:
            NotFoundError: no experiment has this id, or it is no compression job.
        """
        status, _ = self._read(StatusFold())
        return status

    def follow(self) -> Iterator[JobStatus]:
        """Yield the status now and after each change, until the job runs no more steps.

        Raises:
            NotFoundError: no experiment has this id, or it is no compression job.
        """
        fold = StatusFold()
        status, after = self._read(fold)
        yield status
        if status.state in OVER:
            return
        with closing(self._client.events(self.id, after=after, follow=True)) as items:
            for item in items:
                fold.feed(item.event)
                changed = self._job_status(fold)
                if changed != status:
                    status = changed
                    yield status
                if status.state in OVER:
                    return

    def wait(self) -> JobStatus:
        """Wait until the job runs no more steps; return its last status."""
        *_, last = self.follow()
        return last

    def cancel(self) -> None:
        """Stop the job; the steps that succeeded stay, and `resume` continues after them."""
        self._client.stop(self.id)

    def resume(self) -> None:
        """Go on with a stopped or failed job after its last step that succeeded.

        Raises:
            WrongStateError: it is running.
        """
        if self.status().state == "ERROR":
            self._client.stop(self.id)
        self._client.resume(
            experiment_service_pb2.ResumeExperimentRequest(
                experiment_id=self.id,
                environment=experiment_environment(),
                interpreter=sys.executable,
            )
        )

    def output(self, step: int | None = None) -> Iterator[bytes]:
        """Yield the stderr, then the stdout, of a step until they end; None: the last started.

        Args:
            step: number of the step; None: the last one that was started.

        Raises:
            WrongStateError: the step was not started.
        """
        started = [
            one for one in self.status().steps if one.trial_id and step in {None, one.number}
        ]
        if not started:
            raise WrongStateError(f"job {self.id} has not started such a step; see its status")
        for source in (_STDERR, _STDOUT):
            with contextlib.suppress(NotFoundError):  # nothing was written
                yield from self._client.follow_logs(self.id, source, trial_id=started[-1].trial_id)

    def fetch(self, folder: str | Path, step: int | None = None) -> Path:
        """Download the files of a step, by default the last succeeded, to a folder; return it.

        Args:
            folder: where the files go; made if missing. Files of the same names are replaced.
            step: number of the step; None: the last one that succeeded.

        Returns:
            The folder, for `nni.compression.speedup.load_smaller` and `safetensors`.

        Raises:
            WrongStateError: the step has not succeeded.
            ConfigError: the folder cannot be written.
        """
        found = self._fetchable(self.status().steps, step)
        target = Path(folder)
        unpack_checkpoint(self._client.download(found.checkpoint), target)
        return target

    def _read(self, fold: StatusFold) -> tuple[JobStatus, event_pb2.EventPosition | None]:
        """Feed the whole log to a fold; return the status and the last position."""
        position = None
        for item in self._client.events(self.id):
            fold.feed(item.event)
            position = item.position
        return self._job_status(fold), position

    def _fetchable(self, steps: tuple[StepStatus, ...], number: int | None) -> StepStatus:
        wanted = [step for step in steps if step.checkpoint and number in {None, step.number}]
        if not wanted:
            which = "no step" if number is None else f"step {number} is none that"
            raise WrongStateError(f"{which} of job {self.id} has succeeded; follow its status")
        return wanted[-1]

    def _job_status(self, fold: StatusFold) -> JobStatus:
        status = fold.status
        if status is None:
            raise NotFoundError(f"experiment {self.id} is no compression job")
        return status


def submit_job(
    job: Mapping[str, object],
    code_directory: str | Path,
    *,
    name: str = "",
    port: int = 0,
    endpoint: Endpoint | None = None,
) -> RemoteJob:
    """Check and submit a job, starting this machine's services if need be; return its handle.

    Args:
        job: description of the job; see `nni.compression.job.JobDescription`.
        code_directory: folder with the modules that it names.
        name: name of its experiment.
        port: port of the experiment's page; 0: none of its own.
        endpoint: services to use; None: those of this machine, or those that `NNI_ENDPOINT` names.

    Returns:
        The job, which is running.

    Raises:
        JobError: the description breaks a rule; nothing was started.
        ExperimentError: the services refuse it, or cannot be reached.
    """
    JobDescription.of(job)
    config = config_pb2.ExperimentConfig(
        experiment_name=name, trial_code_directory=str(Path(code_directory).resolve())
    )
    config.compression.job.CopyFrom(to_value(dict(job)))
    client = ManagerClient(endpoint or ensure_local_shape())
    try:
        answer = client.create(
            config,
            port=port,
            url_prefix="",
            environment=experiment_environment(),
            interpreter=sys.executable,
        )
    except BaseException:
        client.close()
        raise
    return RemoteJob(answer.experiment.id, client)


def list_jobs() -> list[JobStatus]:
    """Return the status of all compression jobs of the services, newest first.

    Raises:
        ExperimentError: the services cannot be reached.
    """
    with ManagerClient(ensure_local_shape()) as client:
        ids = [
            one.id
            for one in client.experiments(include_stopped=True)
            if one.config.HasField("compression")
        ]
        return [RemoteJob(job_id, client).status() for job_id in ids]
