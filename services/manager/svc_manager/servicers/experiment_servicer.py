"""gRPC servicer of experiments, agents and diagnosis."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, TypeAlias

import grpc.aio

from nni_proto.experiment.v1 import config_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.experiment.v1 import experiment_service_pb2_grpc as pb_grpc
from svc_manager.converters.agent_limits import agent_limits_from
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.inputs import ChangeRemarks
from svc_manager.usecases.activation import ActivatedExperiment, NewExperiment, ReopenRequest
from svc_manager.usecases.agents import AgentDirectory
from svc_manager.usecases.diagnosis import Diagnosis
from svc_manager.usecases.experiments import ConfigChange, Experiments
from svc_manager.usecases.request_checks import environment_from, length_ms

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]

_MS_PER_S = 1000


class ExperimentServicer(pb_grpc.ExperimentServiceServicer):
    """gRPC servicer of experiments, their logs and agents: converts messages, calls use cases.

    Args:
        experiments: use cases.
        agents: use cases on agents.
        diagnosis: use case.
    """

    def __init__(
        self, experiments: Experiments, agents: AgentDirectory, diagnosis: Diagnosis
    ) -> None:
        self._experiments = experiments
        self._agents = agents
        self._diagnosis = diagnosis

    async def CreateExperiment(
        self, request: pb.CreateExperimentRequest, context: Context
    ) -> pb.CreateExperimentResponse:
        """Validate a configuration, create and start the experiment; return it, URLs, warnings."""
        opened = await self._experiments.create(
            NewExperiment(
                config=request.config,
                request_id=request.request_id,
                port=request.port,
                url_prefix=request.url_prefix,
                environment=environment_from(request.environment),
                interpreter=request.interpreter,
                experiment_id=request.experiment_id,
                skip_platform_check=request.skip_platform_check,
            )
        )
        await asyncio.sleep(0)  # a view with a large value takes up to 40 ms to copy
        response = pb.CreateExperimentResponse(
            experiment=opened.experiment, urls=opened.urls, warnings=opened.warnings
        )
        await asyncio.sleep(0)
        return response

    async def ResumeExperiment(
        self, request: pb.ResumeExperimentRequest, context: Context
    ) -> pb.ResumeExperimentResponse:
        """Resume a stopped experiment, its trials kept and given to a new algorithm; return it."""
        opened = await self._experiments.resume(
            ReopenRequest(
                experiment_id=request.experiment_id,
                request_id=request.request_id,
                port=request.port,
                url_prefix=request.url_prefix,
                experiment_directory=request.experiment_directory,
                environment=environment_from(request.environment),
                interpreter=request.interpreter,
            )
        )
        return pb.ResumeExperimentResponse(
            experiment=opened.experiment, urls=opened.urls, warnings=opened.warnings
        )

    async def ViewExperiment(
        self, request: pb.ViewExperimentRequest, context: Context
    ) -> pb.ViewExperimentResponse:
        """Open a stopped experiment for reading only; return it with its page's addresses."""
        opened: ActivatedExperiment = await self._experiments.view(
            ReopenRequest(
                experiment_id=request.experiment_id,
                request_id=request.request_id,
                port=request.port,
                experiment_directory=request.experiment_directory,
            )
        )
        return pb.ViewExperimentResponse(
            experiment=opened.experiment, urls=opened.urls, warnings=opened.warnings
        )

    async def StopExperiment(
        self, request: pb.StopExperimentRequest, context: Context
    ) -> pb.StopExperimentResponse:
        """Stop an experiment: cancel its live trials, close its port; return it when STOPPED."""
        experiment = await self._experiments.stop(request.experiment_id, request.request_id)
        return pb.StopExperimentResponse(experiment=experiment)

    async def GetExperiment(
        self, request: pb.GetExperimentRequest, context: Context
    ) -> pb.GetExperimentResponse:
        """Return one experiment by id, with the addresses of its page."""
        opened = await self._experiments.get(request.experiment_id)
        response = pb.GetExperimentResponse(experiment=opened.experiment, urls=opened.urls)
        await asyncio.sleep(0)  # copying and encoding a large search space take 40 ms each
        return response

    async def ListExperiments(
        self, request: pb.ListExperimentsRequest, context: Context
    ) -> pb.ListExperimentsResponse:
        """Return a page of experiments, newest first, by id prefix; stopped ones on request."""
        page = await self._experiments.list(
            include_stopped=request.include_stopped,
            id_prefix=request.id_prefix,
            page_size=request.page_size,
            page_token=request.page_token,
            owned_only=request.owned_only,
        )
        return pb.ListExperimentsResponse(experiments=page.items, next_page_token=page.next_token)

    async def DeleteExperiment(
        self, request: pb.DeleteExperimentRequest, context: Context
    ) -> pb.DeleteExperimentResponse:
        """Delete log, folder and blobs of a stopped experiment; return how many folders remain."""
        remaining = await self._experiments.delete(request.experiment_id, request.request_id)
        return pb.DeleteExperimentResponse(remaining_folders=remaining)

    async def UpdateExperiment(
        self, request: pb.UpdateExperimentRequest, context: Context
    ) -> pb.UpdateExperimentResponse:
        """Change budgets, search space, tuner or agent limits; return the changed experiment."""
        experiment = await self._experiments.update(
            request.experiment_id, _change(request), request.request_id
        )
        response = pb.UpdateExperimentResponse(experiment=experiment)
        await asyncio.sleep(0)  # copying and encoding a large search space take 40 ms each
        return response

    async def ChangeRemarks(
        self, request: pb.ChangeRemarksRequest, context: Context
    ) -> pb.ChangeRemarksResponse:
        """Set note, star or the whole tag list of experiment or trial; return all its remarks."""
        change = ChangeRemarks(
            request.trial_id,
            request.note if request.HasField("note") else None,
            tuple(request.tags.tags) if request.HasField("tags") else None,
            request.starred if request.HasField("starred") else None,
        )
        remarks = await self._experiments.change_remarks(
            request.experiment_id, change, request.request_id
        )
        return pb.ChangeRemarksResponse(remarks=remarks)

    async def ImportData(
        self, request: pb.ImportDataRequest, context: Context
    ) -> pb.ImportDataResponse:
        """Import samples into the experiment's algorithm; return warnings on broken constraints."""
        warnings = await self._experiments.import_data(
            request.experiment_id, request.data, request.request_id
        )
        return pb.ImportDataResponse(warnings=warnings)

    async def ExportData(
        self, request: pb.ExportDataRequest, context: Context
    ) -> pb.ExportDataResponse:
        """Return a page of the trials with a final result, on request with intermediate metrics."""
        page = await self._experiments.export(
            request.experiment_id,
            include_intermediates=request.include_intermediates,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        return pb.ExportDataResponse(trials=page.items, next_page_token=page.next_token)

    async def FollowEvents(
        self, request: pb.FollowEventsRequest, context: Context
    ) -> AsyncIterator[pb.FollowEventsResponse]:
        """Stream an experiment's events after a position; with `follow`, new ones too."""
        feed = self._experiments.follow_events(
            request.experiment_id,
            request.after if request.HasField("after") else None,
            follow=request.follow,
        )
        async with aclosing(feed):
            async for item in feed:
                yield item

    async def FollowLogs(
        self, request: pb.FollowLogsRequest, context: Context
    ) -> AsyncIterator[pb.FollowLogsResponse]:
        """Stream a log of experiment, dispatcher or trial from an offset; `follow`: as it grows."""
        feed = self._experiments.follow_logs(
            request.experiment_id,
            request.source,
            trial_id=request.trial_id,
            offset=request.offset,
            attempt=request.attempt,
            follow=request.follow,
        )
        async with aclosing(feed):
            async for item in feed:
                yield item

    async def WaitExperiment(
        self, request: pb.WaitExperimentRequest, context: Context
    ) -> pb.WaitExperimentResponse:
        """Wait until the experiment is, or since was, in one of these states; return it."""
        experiment = await self._experiments.wait(request.experiment_id, request.states)
        return pb.WaitExperimentResponse(experiment=experiment)

    async def ListRunners(
        self, request: pb.ListRunnersRequest, context: Context
    ) -> pb.ListRunnersResponse:
        """Return a page of agents by id: connected ones, and those that platforms run or start."""
        page = await self._agents.list(page_size=request.page_size, page_token=request.page_token)
        return pb.ListRunnersResponse(runners=page.items, next_page_token=page.next_token)

    async def DrainRunner(
        self, request: pb.DrainRunnerRequest, context: Context
    ) -> pb.DrainRunnerResponse:
        """Order an agent to take no more tasks and to end after its last trial."""
        await self._agents.drain(request.runner_id, request.request_id)
        return pb.DrainRunnerResponse()

    async def DiagnoseServices(
        self, request: pb.DiagnoseServicesRequest, context: Context
    ) -> pb.DiagnoseServicesResponse:
        """Check bus, stores, dispatcher and agents; return a finding with a remedy for each."""
        findings = [
            pb.Finding(
                check=finding.check,
                result=finding.result.value,  # type: ignore[arg-type] # the contract's numbers
                explanation=finding.explanation,
            )
            for finding in await self._diagnosis.run()
        ]
        return pb.DiagnoseServicesResponse(findings=findings)


def _change(request: pb.UpdateExperimentRequest) -> ConfigChange:
    return ConfigChange(
        request.trial_concurrency if request.HasField("trial_concurrency") else None,
        request.max_trial_number if request.HasField("max_trial_number") else None,
        (
            length_ms(request.max_experiment_duration, "max_experiment_duration") / _MS_PER_S
            if request.HasField("max_experiment_duration")
            else None
        ),
        request.search_space if request.HasField("search_space") else None,
        request.tuner if request.HasField("tuner") else None,
        _limits(request.agent_limits) if request.HasField("agent_limits") else None,
    )


def _limits(message: config_pb2.AgentLimits) -> AgentLimits:
    """Return limits of agents; raise InvalidArgumentError if a duration is out of range."""
    length_ms(message.idle_time, "idleTime")
    length_ms(message.max_agent_time, "maxAgentTime")
    return agent_limits_from(message)
