"""Manager in this process, for tests of its clients: experiments and trials are plain messages.

It serves the gRPC methods that `nni.experiment` and `nnictl` call, and REST documents by path.
Nothing schedules: a test adds trials, metrics and logs, and changes states itself.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc

from nni_proto.bytes.v1 import byte_service_pb2, byte_service_pb2_grpc
from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import (
    config_pb2,
    event_pb2,
    experiment_pb2,
    experiment_service_pb2_grpc,
    history_service_pb2,
    history_service_pb2_grpc,
    study_service_pb2_grpc,
)
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.runner.v1 import (
    invitation_service_pb2,
    invitation_service_pb2_grpc,
    pool_service_pb2_grpc,
)
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2, trial_service_pb2_grpc
from nni_wire.values import from_value, to_value
from tests.support.endpoint_files import SUPERVISOR, process_spawner, write_endpoint
from tests.support.in_memory_pools import InMemoryPools
from tests.support.in_memory_studies import InMemoryStudies

LIVE = (trial_pb2.TRIAL_STATE_WAITING, trial_pb2.TRIAL_STATE_RUNNING)
STOPPED = (experiment_pb2.EXPERIMENT_STATE_STOPPED, experiment_pb2.EXPERIMENT_STATE_VIEWED)
TOKEN = "t0ken"


class LocalStore(byte_service_pb2_grpc.ByteServiceServicer):
    """Store of an installation whose code directories are used in place."""

    def __init__(self, blobs: dict[str, bytes]) -> None:
        self._blobs = blobs

    def PrepareDownload(self, request: Any, context: Any) -> Any:
        if request.key not in self._blobs:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no blob {request.key}")
        return byte_service_pb2.PrepareDownloadResponse(stream=True)

    def Download(self, request: Any, context: Any) -> Iterator[Any]:
        content = self._blobs[request.key]
        for start in range(0, len(content), 1000):
            yield byte_service_pb2.DownloadResponse(data=content[start : start + 1000])

    def PrepareUpload(self, request: Any, context: Any) -> Any:
        return byte_service_pb2.PrepareUploadResponse(stored=True)

    def DescribeStore(self, request: Any, context: Any) -> Any:
        return byte_service_pb2.DescribeStoreResponse()


class InMemoryHistories(history_service_pb2_grpc.HistoryServiceServicer):
    """Saves experiments as their configuration and a log, and loads them as stopped ones."""

    def __init__(self, manager: InMemoryManager) -> None:
        self._manager = manager

    def SaveExperiment(
        self, request: Any, context: Any
    ) -> Iterator[history_service_pb2.SaveExperimentResponse]:
        about = history_service_pb2.SavedExperiment(nni_version="1.0")
        about.experiment.CopyFrom(self._manager.known[request.experiment_id])
        yield history_service_pb2.SaveExperimentResponse(about=about)
        piece = history_service_pb2.FilePiece(name="events.log", data=b"events", last=True)
        yield history_service_pb2.SaveExperimentResponse(piece=piece)

    def LoadExperiment(self, requests: Any, context: Any) -> Any:
        header, *pieces = requests
        self._manager.loaded = b"".join(message.piece.data for message in pieces)
        loaded = self._manager.add_experiment(
            header.header.experiment_id, state=experiment_pb2.EXPERIMENT_STATE_STOPPED, port=0
        )
        loaded.config.trial_code_directory = header.header.trial_code_directory
        return history_service_pb2.LoadExperimentResponse(experiment=loaded)


class InMemoryInvitations(invitation_service_pb2_grpc.InvitationServiceServicer):
    """Invitations that are remembered."""

    def __init__(self) -> None:
        self.made: list[invitation_service_pb2.InviteRunnerRequest] = []
        self.revoked: list[invitation_service_pb2.RevokeInvitationsRequest] = []
        self.front = invitation_service_pb2.GetFrontResponse()

    def InviteRunner(
        self, request: invitation_service_pb2.InviteRunnerRequest, context: Any
    ) -> invitation_service_pb2.InviteRunnerResponse:
        self.made.append(request)
        return invitation_service_pb2.InviteRunnerResponse(
            word="nni1.secret.fingerprint",
            address="10.0.0.1:8081",
            invitation=invitation_service_pb2.Invitation(id="ab12", use_limit=request.use_limit),
        )

    def GetFront(
        self, request: invitation_service_pb2.GetFrontRequest, context: Any
    ) -> invitation_service_pb2.GetFrontResponse:
        return self.front

    def ListInvitations(
        self, request: invitation_service_pb2.ListInvitationsRequest, context: Any
    ) -> invitation_service_pb2.ListInvitationsResponse:
        one = invitation_service_pb2.Invitation(id="ab12", use_limit=3)
        return invitation_service_pb2.ListInvitationsResponse(invitations=[one])

    def RevokeInvitations(
        self, request: invitation_service_pb2.RevokeInvitationsRequest, context: Any
    ) -> invitation_service_pb2.RevokeInvitationsResponse:
        self.revoked.append(request)
        ended = [invitation_service_pb2.Invitation(id=one) for one in request.ids or ("ab12",)]
        return invitation_service_pb2.RevokeInvitationsResponse(invitations=ended)


class InMemoryManager(
    experiment_service_pb2_grpc.ExperimentServiceServicer,
    trial_service_pb2_grpc.TrialServiceServicer,
):
    """See the module; its methods are those of the protos."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.known: dict[str, experiment_pb2.Experiment] = {}
        self.agent_limits: dict[str, config_pb2.AgentLimits] = {}
        self.events: dict[str, list[event_pb2.Event]] = {}
        self.blobs: dict[str, bytes] = {}
        self.trials: dict[str, list[trial_pb2.Trial]] = {}
        self.metrics: dict[str, list[trial_service_pb2.TrialMetric]] = {}
        self.logs: dict[tuple[str, int], bytes] = {}
        """By trial id, empty for the manager's own, and source."""
        self.explanations: dict[str, trial_service_pb2.ExplainTrialResponse] = {}
        self.agents: list[pb.RunnerSummary] = []
        self.drained: list[str] = []
        self.invitations = InMemoryInvitations()
        self.pools = InMemoryPools()
        self.studies = InMemoryStudies(self)
        self.imported: list[Any] = []
        self.documents: dict[str, Any] = {}
        """REST responses by path."""
        self.queries: list[str] = []
        self.created: list[pb.CreateExperimentRequest] = []
        self.loaded = b""
        """Files of the experiment that was loaded last."""
        self.grpc = self.http = ""
        self.refuses_stop = False
        self.on_wait: Callable[[], None] = lambda: None
        """Called when a client begins to wait for a state."""
        self._changed = threading.Condition()

    # What a test does

    def add_experiment(
        self,
        experiment_id: str,
        *,
        state: experiment_pb2.ExperimentState.ValueType = experiment_pb2.EXPERIMENT_STATE_RUNNING,
        port: int = 8080,
        **fields: Any,
    ) -> experiment_pb2.Experiment:
        """Add an experiment with a folder of its own."""
        folder = self.root / experiment_id
        folder.mkdir(parents=True)
        config = config_pb2.ExperimentConfig(
            experiment_name="tuning",
            trial_command="python3 trial.py",
            trial_concurrency=1,
            search_space=to_value({}),
            training_services=[config_pb2.TrainingServiceConfig(platform="local")],
        )
        experiment = experiment_pb2.Experiment(
            id=experiment_id, state=state, config=config, directory=str(folder), port=port, **fields
        )
        experiment.created_at.FromSeconds(1_000 + len(self.known))
        self.known[experiment_id] = experiment
        self.trials[experiment_id] = []
        return experiment

    def add_trial(
        self,
        experiment_id: str,
        trial_id: str,
        *,
        result: Any = None,
        state: trial_pb2.TrialState.ValueType = trial_pb2.TRIAL_STATE_SUCCEEDED,
        parameters: Any = None,
    ) -> trial_pb2.Trial:
        """Add a trial, with a final result unless it is None."""
        number = len(self.trials[experiment_id])
        trial = trial_pb2.Trial(
            id=trial_id,
            state=state,
            sequence_id=number,
            parameter_id=number,
            parameters=to_value({"x": number} if parameters is None else parameters),
            directory=f"{self.known[experiment_id].directory}/trials/{trial_id}",
        )
        if result is not None:
            final = metric_pb2.METRIC_TYPE_FINAL
            trial.final_metric.CopyFrom(metric_pb2.Metric(type=final, value=to_value(result)))
        self.trials[experiment_id].append(trial)
        return trial

    def change_state(
        self, experiment_id: str, state: experiment_pb2.ExperimentState.ValueType
    ) -> None:
        """Set the state of an experiment, and notify those who wait for it."""
        with self._changed:
            self.known[experiment_id].state = state
            self._changed.notify_all()

    # Experiments

    def CreateExperiment(self, request: Any, context: Any) -> Any:
        self.created.append(request)
        if request.experiment_id in self.known:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, f"{request.experiment_id} exists")
        drawn = f"new0000{len(self.created)}"
        new = self.add_experiment(request.experiment_id or drawn, port=request.port)
        new.config.CopyFrom(request.config)
        return pb.CreateExperimentResponse(experiment=new, urls=self._urls(new))

    def _urls(self, experiment: experiment_pb2.Experiment) -> list[str]:
        return [f"http://127.0.0.1:{experiment.port}"] if experiment.port else []

    def _found(self, request: Any, context: Any) -> experiment_pb2.Experiment:
        if request.experiment_id not in self.known:
            name = request.experiment_id
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no experiment {name!r}")
        return self.known[request.experiment_id]

    def _stopped(self, request: Any, context: Any) -> experiment_pb2.Experiment:
        found = self._found(request, context)
        if found.state not in STOPPED:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{found.id} is running")
        found.port = request.port
        return found

    def ResumeExperiment(self, request: Any, context: Any) -> Any:
        found = self._stopped(request, context)
        self.change_state(found.id, experiment_pb2.EXPERIMENT_STATE_RUNNING)
        return pb.ResumeExperimentResponse(experiment=found, urls=self._urls(found))

    def ViewExperiment(self, request: Any, context: Any) -> Any:
        if request.experiment_directory and request.experiment_id not in self.known:
            if "damaged" in request.experiment_id:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "its log is damaged")
            imported = self.add_experiment(
                request.experiment_id, state=experiment_pb2.EXPERIMENT_STATE_STOPPED
            )
            imported.directory = request.experiment_directory
        found = self._stopped(request, context)
        self.change_state(found.id, experiment_pb2.EXPERIMENT_STATE_VIEWED)
        return pb.ViewExperimentResponse(experiment=found, urls=self._urls(found))

    def StopExperiment(self, request: Any, context: Any) -> Any:
        found = self._found(request, context)
        if self.refuses_stop:
            context.abort(grpc.StatusCode.INTERNAL, "the trials do not end")
        found.port = 0
        self.change_state(found.id, experiment_pb2.EXPERIMENT_STATE_STOPPED)
        return pb.StopExperimentResponse(experiment=found)

    def GetExperiment(self, request: Any, context: Any) -> Any:
        found = self._found(request, context)
        return pb.GetExperimentResponse(experiment=found, urls=self._urls(found))

    def ListExperiments(self, request: Any, context: Any) -> Any:
        found = [
            experiment
            for experiment in reversed(self.known.values())
            if request.include_stopped
            or experiment.state != experiment_pb2.EXPERIMENT_STATE_STOPPED
        ]
        return pb.ListExperimentsResponse(experiments=found)

    def DeleteExperiment(self, request: Any, context: Any) -> Any:
        del self.known[self._found(request, context).id]
        return pb.DeleteExperimentResponse()

    def UpdateExperiment(self, request: Any, context: Any) -> Any:
        config = self._found(request, context).config
        for field in ("trial_concurrency", "max_trial_number"):
            if request.HasField(field):
                setattr(config, field, getattr(request, field))
        for field in ("max_experiment_duration", "search_space", "tuner"):
            if request.HasField(field):
                getattr(config, field).CopyFrom(getattr(request, field))
        if request.HasField("agent_limits"):
            self.agent_limits[request.experiment_id] = request.agent_limits
        return pb.UpdateExperimentResponse(experiment=self.known[request.experiment_id])

    def ChangeRemarks(self, request: Any, context: Any) -> Any:
        found = self._found(request, context)
        if found.state == experiment_pb2.EXPERIMENT_STATE_VIEWED:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "it is open for reading only")
        owner = self._trial(request, context) if request.trial_id else found
        if request.HasField("note"):
            owner.remarks.note = request.note
        if request.HasField("tags"):
            owner.remarks.tags[:] = request.tags.tags
        if request.HasField("starred"):
            owner.remarks.starred = request.starred
        return pb.ChangeRemarksResponse(remarks=owner.remarks)

    def WaitExperiment(self, request: Any, context: Any) -> Any:
        found = self._found(request, context)
        context.add_callback(self._wake)
        self.on_wait()
        with self._changed:
            self._changed.wait_for(lambda: found.state in request.states or not context.is_active())
        return pb.WaitExperimentResponse(experiment=found)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def ExportData(self, request: Any, context: Any) -> Any:
        self._found(request, context)
        exported = [
            pb.ExportedTrial(
                trial_id=trial.id, parameters=trial.parameters, value=trial.final_metric.value
            )
            for trial in self.trials[request.experiment_id]
            if trial.HasField("final_metric")
        ]
        return pb.ExportDataResponse(trials=exported)

    def ImportData(self, request: Any, context: Any) -> Any:
        self.imported.append(request.data)
        return pb.ImportDataResponse()

    def FollowEvents(self, request: Any, context: Any) -> Iterator[pb.FollowEventsResponse]:
        self._found(request, context)
        for place, event in enumerate(self.events.get(request.experiment_id, [])):
            position = event_pb2.EventPosition(sequence=place + 1)
            if position.sequence > request.after.sequence:
                yield pb.FollowEventsResponse(position=position, event=event)

    def FollowLogs(self, request: Any, context: Any) -> Iterator[pb.FollowLogsResponse]:
        text = self.logs.get((request.trial_id, request.source), b"")
        yield pb.FollowLogsResponse(data=text[request.offset :], offset=request.offset)

    def ListRunners(self, request: Any, context: Any) -> Any:
        return pb.ListRunnersResponse(runners=self.agents)

    def DrainRunner(self, request: Any, context: Any) -> Any:
        self.drained.append(request.runner_id)
        return pb.DrainRunnerResponse()

    # Trials

    def ListTrials(self, request: Any, context: Any) -> Any:
        self._found(request, context)
        found = [
            trial
            for trial in self.trials[request.experiment_id]
            if (not request.states or trial.state in request.states)
            and (not request.with_result or trial.HasField("final_metric"))
        ]
        if request.order == trial_service_pb2.TRIAL_ORDER_METRIC:
            found.sort(key=lambda trial: float(from_value(trial.final_metric.value)))
        if request.descending:
            found.reverse()
        return trial_service_pb2.ListTrialsResponse(trials=found, total=len(found))

    def _trial(self, request: Any, context: Any) -> trial_pb2.Trial:
        self._found(request, context)
        for trial in self.trials[request.experiment_id]:
            if trial.id == request.trial_id:
                return trial
        context.abort(grpc.StatusCode.NOT_FOUND, f"there is no trial {request.trial_id!r}")
        raise AssertionError  # abort raises

    def GetTrial(self, request: Any, context: Any) -> Any:
        return trial_service_pb2.GetTrialResponse(trial=self._trial(request, context))

    def KillTrial(self, request: Any, context: Any) -> Any:
        trial = self._trial(request, context)
        if trial.state not in LIVE:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"trial {trial.id} is over")
        trial.state = trial_pb2.TRIAL_STATE_USER_CANCELED
        return trial_service_pb2.KillTrialResponse(trial=trial)

    def AddTrial(self, request: Any, context: Any) -> Any:
        experiment_id = self._found(request, context).id
        trial = self.add_trial(
            experiment_id, f"add{len(self.trials[experiment_id]):02}", state=LIVE[0]
        )
        trial.parameters.CopyFrom(request.parameters)
        trial.source = trial_pb2.PARAMETER_SOURCE_CUSTOMIZED
        return trial_service_pb2.AddTrialResponse(parameter_id=trial.parameter_id)

    def ListMetrics(self, request: Any, context: Any) -> Any:
        self._found(request, context)
        found = [
            metric
            for metric in self.metrics.get(request.experiment_id, [])
            if request.trial_id in {"", metric.trial_id}
        ]
        return trial_service_pb2.ListMetricsResponse(metrics=found)

    def ExplainTrial(self, request: Any, context: Any) -> Any:
        if request.trial_id:
            self._trial(request, context)
        return self.explanations[request.trial_id]

    # Life cycle

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve gRPC and REST on free ports."""
        store = LocalStore(self.blobs)  # type: ignore[abstract]  # gRPC refuses the other methods
        server = grpc.server(ThreadPoolExecutor(8))
        experiment_service_pb2_grpc.add_ExperimentServiceServicer_to_server(self, server)
        trial_service_pb2_grpc.add_TrialServiceServicer_to_server(self, server)
        byte_service_pb2_grpc.add_ByteServiceServicer_to_server(store, server)
        histories = InMemoryHistories(self)  # type: ignore[abstract]  # as above
        invitation_service_pb2_grpc.add_InvitationServiceServicer_to_server(
            self.invitations, server
        )
        history_service_pb2_grpc.add_HistoryServiceServicer_to_server(histories, server)
        pool_service_pb2_grpc.add_PoolServiceServicer_to_server(self.pools, server)
        study_service_pb2_grpc.add_StudyServiceServicer_to_server(self.studies, server)
        self.grpc = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        web = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.http = f"http://127.0.0.1:{web.server_address[1]}"
        thread = threading.Thread(target=web.serve_forever, args=(0.01,), name="rest")
        server.start()
        thread.start()
        try:
            yield
        finally:
            server.stop(None).wait()
            web.shutdown()
            thread.join()
            web.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        documents, queries = self.documents, self.queries

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address = urlsplit(self.path)
                queries.append(address.query)
                found = documents.get(address.path)
                body = json.dumps({"error": "not found"} if found is None else found).encode()
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of the base
                pass

        return Handler


@contextmanager
def in_memory_manager(home: Path) -> Iterator[InMemoryManager]:
    """Serve an in-memory manager as the services of the installation in ``home``."""
    home.mkdir(parents=True, exist_ok=True)
    manager = InMemoryManager(home / "experiments")  # type: ignore[abstract]  # gRPC refuses the other methods
    with process_spawner(home) as spawn, manager.served():
        write_endpoint(
            home, spawn(SUPERVISOR).pid, grpc=manager.grpc, http=manager.http, token=TOKEN
        )
        yield manager
