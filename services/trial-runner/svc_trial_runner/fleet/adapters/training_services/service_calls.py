"""Calls of a custom training service, whose results are checked and whose errors are translated."""

import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nni_wire.training_services import (
    JobApplicationForm,
    JobRefusedError,
    MetricListener,
    TrainingService,
    TrialJobDetail,
    TrialJobStatus,
)
from svc_trial_runner.fleet.domain.agents import AgentName, parse_agent_name
from svc_trial_runner.fleet.ports import PlatformError

_SHOWN_CHARACTERS = 400


class TrainingServiceError(PlatformError):
    """Error of a training service: one that it raised, or a result that breaks its contract."""


class ServiceCalls:
    """Caller of a training service's methods: checks their results, translates their errors.

    Args:
        service: the object.
    """

    def __init__(self, service: TrainingService) -> None:
        self._service = service

    @classmethod
    def create(
        cls, service_class: object, section: Mapping[str, Any], folder: Path
    ) -> "ServiceCalls":
        """Make an object of a service's class; return its calls.

        Raises:
            TrainingServiceError: it is no class of a training service, or refuses the section.
        """
        if not isinstance(service_class, type) or not issubclass(service_class, TrainingService):
            raise TrainingServiceError(
                f"service must be a subclass of TrainingService, got {service_class!r:.80}",
                "repair the PlatformEntry of its package",
                permanent=True,
            )
        try:
            return cls(service_class(section, folder))
        except Exception as error:
            permanent = isinstance(error, ValueError | TypeError)  # the section, not the platform
            raise _failure(service_class.__name__, error, permanent=permanent) from error

    def listen(self, listener: MetricListener) -> None:
        """Add a listener of metrics.

        Raises:
            TrainingServiceError: the service fails.
        """
        try:
            self._service.add_trial_job_metric_listener(listener)
        except Exception as error:
            raise _failure("add_trial_job_metric_listener", error) from error

    async def jobs(self) -> list[TrialJobDetail]:
        """Return all jobs of the service.

        Raises:
            TrainingServiceError: the service fails, or its result is no list of jobs.
        """
        found = await self._call("list_trial_jobs")
        if not isinstance(found, list | tuple):
            raise _wrong_result("list_trial_jobs", "a list of TrialJobDetail", found)
        return [_checked("list_trial_jobs", job) for job in found]

    async def submit(self, form: JobApplicationForm) -> TrialJobDetail:
        """Submit a job.

        Raises:
            TrainingServiceError: the service fails or refuses the job, or returns no job.
        """
        return _checked("submit_trial_job", await self._call("submit_trial_job", form))

    async def cancel(self, job_id: str) -> None:
        """Cancel a job.

        Raises:
            TrainingServiceError: the service fails.
        """
        await self._call("cancel_trial_job", job_id)

    async def set_metadata(self, key: str, value: str) -> None:
        """Set a value that concerns all jobs.

        Raises:
            TrainingServiceError: the service fails.
        """
        await self._call("set_cluster_metadata", key, value)

    async def clean_up(self) -> None:
        """Call the service's `clean_up`, which releases its resources.

        Raises:
            TrainingServiceError: the service fails.
        """
        await self._call("clean_up")

    async def run(self) -> None:
        """Run the main loop of the service until its end.

        Raises:
            TrainingServiceError: the service fails.
        """
        await self._call("run")

    async def _call(self, operation: str, *arguments: object) -> Any:  # noqa: ANN401 - result of another package
        try:
            pending = getattr(self._service, operation)(*arguments)
            if inspect.isawaitable(pending):
                return await pending
        except JobRefusedError as error:
            remedy = getattr(error, "remedy", "")
            raise TrainingServiceError(_words(error), str(remedy), permanent=True) from error
        except Exception as error:
            raise _failure(operation, error) from error
        raise _wrong_result(operation, "awaitable: write it with async def", pending)


def agent_of(job: TrialJobDetail) -> AgentName | None:
    """Return the agent that a job runs, by its tags; None: it runs no agent."""
    tags: Iterable[object] = job.tags or (() if job.form is None else job.form.tags)
    names = (parse_agent_name(tag) for tag in tags if isinstance(tag, str))
    return next((name for name in names if name is not None), None)


def _checked(operation: str, job: object) -> TrialJobDetail:
    if not isinstance(job, TrialJobDetail):
        raise _wrong_result(operation, "a TrialJobDetail", job)
    fields: Any = job  # of another package, which need not keep the types
    if not isinstance(fields.id, str) or not fields.id:
        raise _wrong_result(f"{operation}: id", "a text that is not empty", job.id)
    if not isinstance(fields.status, TrialJobStatus):
        raise _wrong_result(f"{operation}: status", "a TrialJobStatus", job.status)
    if not isinstance(fields.tags, list | tuple):
        raise _wrong_result(f"{operation}: tags", "a tuple of texts", job.tags)
    return job


def _wrong_result(operation: str, rule: str, value: object) -> TrainingServiceError:
    return TrainingServiceError(
        f"the result of {operation} must be {rule}, got {value!r:.80}",
        "repair the class of the training service",
        permanent=True,
    )


def _failure(operation: str, error: Exception, *, permanent: bool = False) -> TrainingServiceError:
    return TrainingServiceError(f"{operation}: {_words(error)}", permanent=permanent)


def _words(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__)[:_SHOWN_CHARACTERS]
