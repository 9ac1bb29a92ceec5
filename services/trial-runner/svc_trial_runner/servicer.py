"""gRPC servicer of the agent: `RunnerService`."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING

from google.protobuf.timestamp_pb2 import Timestamp
from nni_proto.runner.v1.runner_service_pb2_grpc import RunnerServiceServicer

from nni_proto.runner.v1 import runner_service_pb2 as pb
from svc_common.errors import InvalidArgumentError
from svc_common.experiment_events.cause_text import wait_text
from svc_trial_runner.agent.agent import Agent
from svc_trial_runner.agent.log_files import LogFile, TrialLogReader
from svc_trial_runner.agent.presence import RunnerIdentity
from svc_trial_runner.attempts.execution import AttemptRun
from svc_trial_runner.attempts.gpu_allocation import GpuAllocator
from svc_trial_runner.attempts.process_reuse import ReusedProcesses
from svc_trial_runner.converters import write_wait

if TYPE_CHECKING:
    from grpc.aio import ServicerContext

_DEFAULT_PAGE = 100
_LARGEST_PAGE = 1000

_FILES = {
    pb.LOG_STREAM_UNSPECIFIED: LogFile.TRIAL_LOG,
    pb.LOG_STREAM_TRIAL_LOG: LogFile.TRIAL_LOG,
    pb.LOG_STREAM_STDOUT: LogFile.STDOUT,
    pb.LOG_STREAM_STDERR: LogFile.STDERR,
}


class RunnerServicer(RunnerServiceServicer):
    """gRPC servicer of the agent: description, trials, drain, log streaming.

    Args:
        agent: source of the attempts.
        identity: of this process.
        started_at: start of this process.
        gpus: allocator of the machine's GPUs.
        processes: counts warm interpreters.
        logs: reader of trial output.
    """

    def __init__(
        self,
        agent: Agent,
        identity: RunnerIdentity,
        started_at: datetime,
        gpus: GpuAllocator,
        processes: ReusedProcesses,
        logs: TrialLogReader,
    ) -> None:
        self._agent = agent
        self._identity = identity
        self._started_at = started_at
        self._gpus = gpus
        self._processes = processes
        self._logs = logs

    async def DescribeRunner(
        self,
        request: pb.DescribeRunnerRequest,
        context: "ServicerContext[pb.DescribeRunnerRequest, pb.DescribeRunnerResponse]",
    ) -> pb.DescribeRunnerResponse:
        """Return the agent's identity, its load, and its GPUs with the trials that use them."""
        identity = self._identity
        devices, active = await self._gpus.devices()
        return pb.DescribeRunnerResponse(
            runner_id=identity.runner_id,
            boot_id=identity.boot_id,
            pool=identity.pool,
            host_name=identity.host_name,
            version=identity.version,
            started_at=_timestamp(self._started_at),
            devices=[
                pb.Device(
                    index=device.index,
                    name=device.name,
                    memory_bytes=device.memory_bytes,
                    active=device.index in active,
                    trial_ids=self._gpus.holders_of(device.index),
                )
                for device in devices
            ],
            draining=self._agent.draining,
            running_count=len(self._agent.attempts),
            warm_interpreter_count=self._processes.warm_count,
        )

    async def ListRunnerTrials(
        self,
        request: pb.ListRunnerTrialsRequest,
        context: "ServicerContext[pb.ListRunnerTrialsRequest, pb.ListRunnerTrialsResponse]",
    ) -> pb.ListRunnerTrialsResponse:
        """Return a page of the agent's attempts, sorted by experiment, trial and attempt."""
        size = min(request.page_size or _DEFAULT_PAGE, _LARGEST_PAGE)
        if size < 1:
            raise InvalidArgumentError("page_size", "must be >= 0", request.page_size)
        runs = sorted(self._agent.attempts, key=lambda run: run.key)
        rest = [run for run in runs if _page_token(run) > request.page_token]
        page = rest[:size]
        return pb.ListRunnerTrialsResponse(
            trials=[_trial(run) for run in page],
            next_page_token=_page_token(page[-1]) if len(rest) > size else "",
        )

    async def DrainRunner(
        self,
        request: pb.DrainRunnerRequest,
        context: "ServicerContext[pb.DrainRunnerRequest, pb.DrainRunnerResponse]",
    ) -> pb.DrainRunnerResponse:
        """Drain the agent: take no more tasks, exit after the last trial; may be repeated."""
        self._agent.drain()
        return pb.DrainRunnerResponse()

    async def FollowLogs(
        self,
        request: pb.FollowLogsRequest,
        context: "ServicerContext[pb.FollowLogsRequest, pb.FollowLogsResponse]",
    ) -> AsyncIterator[pb.FollowLogsResponse]:
        """Stream a trial's output file from an offset, on request until the trial ends."""
        file = _FILES.get(request.stream)
        if file is None:
            raise InvalidArgumentError("stream", "must be one of LogStream", request.stream)
        pieces = self._logs.read(
            request.experiment_id,
            request.trial_id,
            file,
            offset=request.offset,
            follow=request.follow,
        )
        async for offset, data in pieces:
            yield pb.FollowLogsResponse(data=data, offset=offset)


def _trial(run: AttemptRun) -> pb.RunnerTrial:
    process = run.process
    trial = pb.RunnerTrial(
        experiment_id=run.key.experiment_id,
        trial_id=run.key.trial_id,
        attempt=run.key.attempt,
        process_group_id=process.identity.pid if process else 0,
        gpu_indices=run.gpu_indices,
        warm=process.warm if process else False,
    )
    if run.wait is not None:
        trial.waiting_for = wait_text(run.wait)
        write_wait(trial.wait, run.wait)
    if run.started_at is not None:
        trial.started_at.CopyFrom(_timestamp(run.started_at))
    return trial


def _page_token(run: AttemptRun) -> str:
    """Return a text that sorts like the attempts' keys."""
    return f"{run.key.experiment_id}/{run.key.trial_id}/{run.key.attempt:08d}"


def _timestamp(moment: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp
