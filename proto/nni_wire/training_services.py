"""Contract of a custom training service: a class that submits, lists and cancels jobs.

The fleet makes a platform of it: each job is an agent, which runs the trials. A package names the
class in its `PlatformEntry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path


class TrialJobStatus(StrEnum):
    """States of a job."""

    WAITING = "WAITING"
    """Accepted, and not started."""
    RUNNING = "RUNNING"
    UNKNOWN = "UNKNOWN"
    """The state cannot be determined now; counted as live."""
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    USER_CANCELED = "USER_CANCELED"
    SYS_CANCELED = "SYS_CANCELED"
    """Ended by the platform, as by pre-emption."""
    EARLY_STOPPED = "EARLY_STOPPED"


LIVE_STATUSES: Final = frozenset(
    {TrialJobStatus.WAITING, TrialJobStatus.RUNNING, TrialJobStatus.UNKNOWN}
)
"""States of jobs that have not ended."""


class JobRefusedError(Exception):
    """Error of `submit_trial_job`: the platform refuses this job however often it is submitted.

    Attributes:
        remedy: what a person can do about it; empty: nothing is known.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class JobNotFoundError(LookupError):
    """Error of a job's id that the service does not know."""


@dataclass(frozen=True, slots=True)
class HyperParameters:
    """Parameters of a job: JSON text, and their index."""

    value: str = "{}"
    index: int = 0


@dataclass(frozen=True, slots=True)
class JobApplicationForm:
    """Order of a job: command, folder of its files, tags that find it again, GPUs."""

    sequence_id: int
    """Number of the job in its experiment; no two jobs have the same."""
    command: str
    """Line of the shell that runs the job until its end, in a copy of `code_directory`, or in that
    folder itself."""
    code_directory: str
    """Private folder with the files of this job; its files have credentials."""
    tags: tuple[str, ...] = ()
    """Texts that `list_trial_jobs` returns with the job, also by another process of the service."""
    hyper_parameters: HyperParameters = HyperParameters()
    placement_constraint: Mapping[str, Any] | None = None
    """`{"type": "GPUNumber", "gpus": [count]}`; `None`: no GPU is needed."""


@dataclass(frozen=True, slots=True)
class TrialJobDetail:
    """State of one job."""

    id: str
    status: TrialJobStatus
    form: JobApplicationForm | None = None
    """As submitted; `None`: the service has not stored it, and `tags` has its tags."""
    submit_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    tags: tuple[str, ...] = ()
    """Tags of the form."""
    url: str = ""
    """Page of the job; empty: none."""
    working_directory: str = ""
    """Folder of the job on its machine; empty: not known."""
    sequence_id: int | None = None
    is_early_stopped: bool = False
    message: str = ""
    """Why the job waits or has failed, in the platform's words; empty: no reason is known."""


@dataclass(frozen=True, slots=True)
class TrialJobMetric:
    """Metric of a job: its id and the data."""

    id: str
    data: str


MetricListener = Callable[[TrialJobMetric], None]
"""Called for each metric of a job."""


class TrainingService(ABC):
    """Base class of custom training services; `list_`, `submit_` and `cancel_trial_job` are due.

    All calls come from one event loop. Blocking work belongs into threads (`asyncio.to_thread`).
    The words of an error that a method raises are shown to the user; `submit_trial_job` may be
    called again for a form after an error. The process of the service may be killed at any time:
    another one must find the jobs of the earlier one, with their tags.

    Args:
        section: section of the configuration by its camelCase names, secret values included.
        folder: private folder of the service on this machine.

    Attributes:
        section: as above.
        folder: as above.
    """

    def __init__(self, section: Mapping[str, Any], folder: Path) -> None:
        self.section = section
        self.folder = folder
        self._metric_listeners: list[MetricListener] = []
        self._metadata: dict[str, str] = {}

    @abstractmethod
    async def list_trial_jobs(self) -> Sequence[TrialJobDetail]:
        """Return all known jobs with their tags; ended ones as long as the platform has them."""

    @abstractmethod
    async def submit_trial_job(self, form: JobApplicationForm) -> TrialJobDetail:
        """Submit a job, which may wait in a queue; return its details, with the tags of `form`.

        Args:
            form: order of the job.

        Raises:
            JobRefusedError: the platform refuses this job for good.
        """

    @abstractmethod
    async def cancel_trial_job(self, trial_job_id: str, is_early_stopped: bool = False) -> None:  # noqa: FBT001, FBT002 - the documented signature
        """Cancel a job, which may end later: EARLY_STOPPED or USER_CANCELED.

        Args:
            trial_job_id: of a job that has not ended.
            is_early_stopped: True if its results so far were the reason.
        """

    async def get_trial_job(self, trial_job_id: str) -> TrialJobDetail:
        """Return one job; by default it is looked up in `list_trial_jobs`.

        Args:
            trial_job_id: of the job.

        Returns:
            The job as it is now.

        Raises:
            JobNotFoundError: there is no such job.
        """
        for job in await self.list_trial_jobs():
            if job.id == trial_job_id:
                return job
        raise JobNotFoundError(f"trial_job_id must be the id of a job, got {trial_job_id!r}")

    async def update_trial_job(self, trial_job_id: str, form: JobApplicationForm) -> TrialJobDetail:
        """Refresh the state of a job and return it; by default as `get_trial_job`.

        Args:
            trial_job_id: of the job.
            form: its order.

        Returns:
            The job as it is now.

        Raises:
            JobNotFoundError: there is no such job.
        """
        _ = form
        return await self.get_trial_job(trial_job_id)

    def is_multi_phase_job_supported(self) -> bool:
        """Return False: a job gets its parameters once."""
        return False

    def add_trial_job_metric_listener(self, listener: MetricListener) -> None:
        """Add a listener of the jobs' metrics.

        Args:
            listener: called for each metric.
        """
        self._metric_listeners.append(listener)

    def remove_trial_job_metric_listener(self, listener: MetricListener) -> None:
        """Remove a listener; do nothing if it was not added.

        Args:
            listener: the one to remove.
        """
        if listener in self._metric_listeners:
            self._metric_listeners.remove(listener)

    def send_metric(self, metric: TrialJobMetric) -> None:
        """Call all listeners with a metric.

        Args:
            metric: of a job.
        """
        for listener in tuple(self._metric_listeners):
            listener(metric)

    async def set_cluster_metadata(self, key: str, value: str) -> None:
        """Set a value that concerns all jobs, before the first one; by default it is remembered.

        Args:
            key: such as `trial_config`.
            value: JSON text.
        """
        self._metadata[key] = value

    async def get_cluster_metadata(self, key: str) -> str:
        """Return a value that was set; empty: none was.

        Args:
            key: of the value.

        Returns:
            The value.
        """
        return self._metadata.get(key, "")

    async def run(self) -> None:  # noqa: B027 - a service need not have a main loop
        """Run the main loop of the service until it is cancelled; by default there is none."""

    async def clean_up(self) -> None:  # noqa: B027 - it need not hold anything
        """Release all resources at the experiment's end, after its jobs; by default do nothing."""
