"""Client of the manager: one typed, blocking method per call."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf import duration_pb2

from nni.experiment.client_errors import translated
from nni.experiment.pool_calls import PoolCalls
from nni.experiment.remark_calls import RemarkCalls
from nni.experiment.sample_pieces import sample_pieces
from nni.experiment.study_calls import StudyCalls
from nni_proto.bytes.v1 import byte_service_pb2
from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import (
    config_pb2,
    event_pb2,
    experiment_pb2,
    history_service_pb2,
)
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from nni_wire.pools import LOCAL_PLATFORM

SLOW_CALL_TIMEOUT_S: Final = 120.0
"""Time-out of calls that start or end processes."""
_DELETION_PAUSES_S: Final = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Pauses between the questions how far a deletion is."""
_WAIT_ROUND_S: Final = 600.0
"""Deadline of one wait; it is asked again, so that no dead connection is waited on for ever."""


_WithUrls: TypeAlias = (
    pb.CreateExperimentResponse
    | pb.ResumeExperimentResponse
    | pb.ViewExperimentResponse
    | pb.GetExperimentResponse
)


def new_request_id() -> str:
    """Return an id that makes a repeated call take effect once."""
    return uuid.uuid4().hex


class ManagerClient(PoolCalls, RemarkCalls, StudyCalls):
    """gRPC client of a manager, one method per call; calls wait while it is restarted."""

    # Experiments

    def create(
        self,
        config: config_pb2.ExperimentConfig,
        *,
        port: int,
        url_prefix: str,
        environment: Mapping[str, str],
        interpreter: str,
        skip_platform_check: bool = False,
        experiment_id: str = "",
    ) -> pb.CreateExperimentResponse:
        """Upload code where workers need it; create and start an experiment, and return it.

        Args:
            config: a checked configuration.
            port: of its page; 0: none.
            url_prefix: path below which page and REST are served.
            environment: of the trials.
            interpreter: of the trials.
            skip_platform_check: platforms are not asked whether they accept their sections.
            experiment_id: its id; empty: one is drawn.
        """
        request = pb.CreateExperimentRequest(
            request_id=new_request_id(),
            config=config,
            port=self._listener_port(port),
            url_prefix=url_prefix,
            skip_platform_check=skip_platform_check,
            experiment_id=experiment_id,
        )
        elsewhere = self.store().code_travels
        sends_code = elsewhere and not config.HasField("callers")
        if sends_code or any(
            service.platform != LOCAL_PLATFORM for service in config.training_services
        ):
            from nni.experiment.byte_client import upload_code

            folder = Path(config.trial_code_directory)
            request.config.code_archive.CopyFrom(upload_code(self, folder))
        if elsewhere:
            # Nothing of this machine is there: neither its folders nor what its variables name.
            request.config.experiment_working_directory = ""
        else:
            request.environment.update(environment)
            request.interpreter = interpreter
        answer: pb.CreateExperimentResponse = self._call(
            lambda: self._experiments.CreateExperiment, request, SLOW_CALL_TIMEOUT_S
        )
        self._replace_urls(answer)
        return answer

    def resume(self, request: pb.ResumeExperimentRequest) -> pb.ResumeExperimentResponse:
        """Resume a stopped experiment; return it and the addresses of its page."""
        request.request_id = request.request_id or new_request_id()
        request.port = self._listener_port(request.port)
        answer: pb.ResumeExperimentResponse = self._call(
            lambda: self._experiments.ResumeExperiment, request, SLOW_CALL_TIMEOUT_S
        )
        self._replace_urls(answer)
        return answer

    def view(
        self, experiment_id: str, *, port: int, experiment_directory: str = ""
    ) -> pb.ViewExperimentResponse:
        """Open a stopped experiment for reading only; return it and the addresses of its page."""
        request = pb.ViewExperimentRequest(
            request_id=new_request_id(),
            experiment_id=experiment_id,
            port=self._listener_port(port),
            experiment_directory=experiment_directory,
        )
        answer: pb.ViewExperimentResponse = self._call(
            lambda: self._experiments.ViewExperiment, request, SLOW_CALL_TIMEOUT_S
        )
        self._replace_urls(answer)
        return answer

    def _listener_port(self, port: int) -> int:
        """Return the port to request; services of another machine choose the port of every page."""
        return 0 if self.endpoint.remote is not None else port

    def _replace_urls(self, answer: _WithUrls) -> None:
        """Replace the page addresses of another machine by one that this machine can reach."""
        if self.endpoint.remote is not None:
            del answer.urls[:]
            answer.urls.append(f"{self.endpoint.http.rstrip('/')}/?id={answer.experiment.id}")

    def page_urls(self, urls: Sequence[str], experiment_id: str) -> list[str]:
        """Return the addresses of an experiment's page; without a port the page of all."""
        return list(urls) or [f"{self.endpoint.http.rstrip('/')}/?id={experiment_id}"]

    def stop(self, experiment_id: str) -> experiment_pb2.Experiment:
        """Stop an experiment; return it once it is STOPPED."""
        request = pb.StopExperimentRequest(request_id=new_request_id(), experiment_id=experiment_id)
        answer = self._call(lambda: self._experiments.StopExperiment, request, SLOW_CALL_TIMEOUT_S)
        experiment: experiment_pb2.Experiment = answer.experiment
        return experiment

    def get(self, experiment_id: str) -> pb.GetExperimentResponse:
        """Return an experiment as it is now, and the addresses of its page."""
        request = pb.GetExperimentRequest(experiment_id=experiment_id)
        answer: pb.GetExperimentResponse = self._call(
            lambda: self._experiments.GetExperiment, request
        )
        self._replace_urls(answer)
        return answer

    def experiments(
        self, *, include_stopped: bool = False, id_prefix: str = ""
    ) -> list[experiment_pb2.Experiment]:
        """Return experiments, newest first; stopped ones only with ``include_stopped``."""
        request = pb.ListExperimentsRequest(
            include_stopped=include_stopped, id_prefix=id_prefix, page_size=1000
        )
        pages = self._pages(lambda: self._experiments.ListExperiments, request)
        return [experiment for page in pages for experiment in page.experiments]

    def delete(
        self, experiment_id: str, on_remaining: Callable[[int], None] = lambda _: None
    ) -> None:
        """Delete a stopped experiment; return once none of its folders is left.

        The services complete the deletion in any case, also if this process ends.

        Args:
            experiment_id: the experiment.
            on_remaining: called with the number of trial folders that are still to be deleted.
        """
        request = pb.DeleteExperimentRequest(
            request_id=new_request_id(), experiment_id=experiment_id
        )
        for pause_s in chain(_DELETION_PAUSES_S, repeat(_DELETION_PAUSES_S[-1])):
            answer = self._call(
                lambda: self._experiments.DeleteExperiment, request, SLOW_CALL_TIMEOUT_S
            )
            if not answer.remaining_folders:
                return
            on_remaining(answer.remaining_folders)
            time.sleep(pause_s)

    def update(
        self,
        experiment_id: str,
        *,
        trial_concurrency: int | None = None,
        max_trial_number: int | None = None,
        max_experiment_duration: duration_pb2.Duration | None = None,
        search_space: value_pb2.Value | None = None,
        tuner: config_pb2.AlgorithmConfig | None = None,
    ) -> experiment_pb2.Experiment:
        """Change limits, search space or tuner, those that are not None; return the experiment."""
        request = pb.UpdateExperimentRequest(
            request_id=new_request_id(),
            experiment_id=experiment_id,
            trial_concurrency=trial_concurrency,
            max_trial_number=max_trial_number,
            max_experiment_duration=max_experiment_duration,
            search_space=search_space,
            tuner=tuner,
        )
        answer = self._call(lambda: self._experiments.UpdateExperiment, request)
        experiment: experiment_pb2.Experiment = answer.experiment
        return experiment

    def import_data(self, experiment_id: str, data: value_pb2.Value) -> list[str]:
        """Feed samples to the experiment's algorithm, in several calls if many; return warnings."""
        warnings: list[str] = []
        for piece in sample_pieces(data):
            request = pb.ImportDataRequest(experiment_id=experiment_id, data=piece)
            request.request_id = new_request_id()
            warnings += self._call(lambda: self._experiments.ImportData, request).warnings
        return warnings

    def export(
        self, experiment_id: str, *, include_intermediates: bool = False
    ) -> Iterator[pb.ExportedTrial]:
        """Yield the trials with a final result, in order of creation."""
        request = pb.ExportDataRequest(
            experiment_id=experiment_id, include_intermediates=include_intermediates
        )
        for page in self._pages(lambda: self._experiments.ExportData, request):
            yield from page.trials

    def events(
        self,
        experiment_id: str,
        *,
        after: event_pb2.EventPosition | None = None,
        follow: bool = False,
    ) -> Generator[pb.FollowEventsResponse]:
        """Yield the events of an experiment with their positions and times.

        A stream that breaks because the manager is restarted is taken up where it broke.

        Args:
            experiment_id: the experiment.
            after: only events behind this one; None: all.
            follow: yield later ones, too, without an end.
        """
        request = pb.FollowEventsRequest(experiment_id=experiment_id, after=after, follow=follow)

        def go_on(item: pb.FollowEventsResponse) -> None:
            request.after.CopyFrom(item.position)

        yield from self._resumed(
            lambda: self._experiments.FollowEvents, request, go_on, follow=follow
        )

    def follow_logs(
        self,
        experiment_id: str,
        source: pb.LogSource.ValueType,
        *,
        trial_id: str = "",
        follow: bool = False,
        offset: int = 0,
    ) -> Iterator[bytes]:
        """Yield a log piece by piece; with ``follow`` until its writer is done.

        A stream that breaks because the manager is restarted is taken up where it broke.
        """
        request = pb.FollowLogsRequest(
            experiment_id=experiment_id,
            source=source,
            trial_id=trial_id,
            follow=follow,
            offset=offset,
        )

        def go_on(piece: pb.FollowLogsResponse) -> None:
            request.attempt, request.offset = piece.attempt, piece.offset + len(piece.data)

        pieces = self._resumed(lambda: self._experiments.FollowLogs, request, go_on, follow=follow)
        for piece in pieces:
            yield piece.data

    def wait(
        self,
        experiment_id: str,
        states: tuple[experiment_pb2.ExperimentState.ValueType, ...],
        on_tick: Callable[[], None] = lambda: None,
        tick_s: float = 1.0,
    ) -> experiment_pb2.Experiment:
        """Wait until an experiment is, or since the call was, in one of ``states``; return it.

        Args:
            experiment_id: the experiment.
            states: those waited for.
            on_tick: called every ``tick_s`` seconds while waiting, for a display; an error in it
                ends the wait.
            tick_s: as said.
        """
        request = pb.WaitExperimentRequest(experiment_id=experiment_id, states=states)

        def once() -> Any:  # noqa: ANN401 - the stub is untyped
            future = self._experiments.WaitExperiment.future(
                request, timeout=_WAIT_ROUND_S, metadata=self._metadata
            )
            try:
                while True:
                    try:
                        return future.result(timeout=tick_s)
                    except grpc.FutureTimeoutError:
                        on_tick()
            finally:
                future.cancel()

        experiment: experiment_pb2.Experiment = self.patiently(once).experiment
        return experiment

    # Histories

    def replay(self, experiment_id: str) -> Iterator[history_service_pb2.ReplayExperimentResponse]:
        """Yield the messages of a replay: progress, differences, verdict; begin anew if cut early.

        One that breaks because the services are restarted begins anew.
        """
        request = history_service_pb2.ReplayExperimentRequest(experiment_id=experiment_id)
        away_since: float | None = None
        while True:
            stream = self._started(
                lambda: self._histories.ReplayExperiment(request, metadata=self._metadata)
            )
            started = False
            try:
                for message in stream:
                    started = started or message.HasField("difference")
                    yield message
                    away_since = None
            except grpc.RpcError as error:
                if started:  # differences that were yielded would be yielded again
                    raise translated(error) from error
                away_since = self._retry_or_raise(error, away_since)
            else:
                return
            finally:
                stream.cancel()

    def save(
        self, experiment_id: str, *, with_files: bool
    ) -> Iterator[history_service_pb2.SaveExperimentResponse]:
        """Yield an experiment's description, then its files in pieces; raise if it breaks off.

        Raises:
            ExperimentError: it was refused, or broke off; begin anew.
        """
        self._call(  # the services may have to be brought up first
            lambda: self._experiments.GetExperiment,
            pb.GetExperimentRequest(experiment_id=experiment_id),
        )
        request = history_service_pb2.SaveExperimentRequest(
            experiment_id=experiment_id, without_files=not with_files
        )
        stream = self._started(
            lambda: self._histories.SaveExperiment(request, metadata=self._metadata)
        )
        try:
            yield from stream
        except grpc.RpcError as error:
            raise translated(error) from error
        finally:
            stream.cancel()

    def load(
        self,
        header: history_service_pb2.LoadHeader,
        pieces: Callable[[], Iterator[history_service_pb2.FilePiece]],
    ) -> experiment_pb2.Experiment:
        """Load a saved experiment and return it; start again if the connection breaks.

        Args:
            header: what it is and where it goes.
            pieces: gives its files from the beginning at each call.
        """
        header.request_id = header.request_id or new_request_id()

        def messages() -> Iterator[history_service_pb2.LoadExperimentRequest]:
            yield history_service_pb2.LoadExperimentRequest(header=header)
            for piece in pieces():
                yield history_service_pb2.LoadExperimentRequest(piece=piece)

        def once() -> Any:  # noqa: ANN401 - the stub is untyped
            return self._histories.LoadExperiment(
                messages(), timeout=_WAIT_ROUND_S, metadata=self._metadata
            )

        experiment: experiment_pb2.Experiment = self.patiently(once).experiment
        return experiment

    # Trials

    def trials(self, request: trial_service_pb2.ListTrialsRequest) -> Iterator[trial_pb2.Trial]:
        """Yield the trials of all pages of ``request``, whose page size is set if it is 0."""
        request.page_size = request.page_size or 1000
        for page in self._pages(lambda: self._trials.ListTrials, request):
            yield from page.trials

    def trial(self, experiment_id: str, trial_id: str) -> trial_pb2.Trial:
        """Return one trial of an experiment; NotFoundError if there is none."""
        request = trial_service_pb2.GetTrialRequest(experiment_id=experiment_id, trial_id=trial_id)
        answer = self._call(lambda: self._trials.GetTrial, request)
        trial: trial_pb2.Trial = answer.trial
        return trial

    def kill_trial(self, experiment_id: str, trial_id: str) -> trial_pb2.Trial:
        """Stop a live trial, which ends as USER_CANCELED, and return it."""
        request = trial_service_pb2.KillTrialRequest(
            request_id=new_request_id(), experiment_id=experiment_id, trial_id=trial_id
        )
        answer = self._call(lambda: self._trials.KillTrial, request)
        trial: trial_pb2.Trial = answer.trial
        return trial

    def add_trial(
        self, experiment_id: str, parameters: value_pb2.Value, request_id: str = ""
    ) -> int:
        """Add a trial with the given parameters, once per request id; return its parameter id."""
        request = trial_service_pb2.AddTrialRequest(
            request_id=request_id or new_request_id(),
            experiment_id=experiment_id,
            parameters=parameters,
        )
        answer = self._call(lambda: self._trials.AddTrial, request)
        return int(answer.parameter_id)

    def explain(
        self, experiment_id: str, trial_id: str = ""
    ) -> trial_service_pb2.ExplainTrialResponse:
        """Return the explanation of a trial's state; empty id: why the next one does not start."""
        request = trial_service_pb2.ExplainTrialRequest(
            experiment_id=experiment_id, trial_id=trial_id
        )
        answer: trial_service_pb2.ExplainTrialResponse = self._call(
            lambda: self._trials.ExplainTrial, request
        )
        return answer

    def metrics(
        self,
        experiment_id: str,
        trial_id: str = "",
        type_: metric_pb2.MetricType.ValueType = metric_pb2.METRIC_TYPE_UNSPECIFIED,
    ) -> Iterator[trial_service_pb2.TrialMetric]:
        """Yield metrics of one trial, or of all, of every type or of one."""
        request = trial_service_pb2.ListMetricsRequest(
            experiment_id=experiment_id, trial_id=trial_id, type=type_
        )
        for page in self._pages(lambda: self._trials.ListMetrics, request):
            yield from page.metrics

    # Bytes

    def store(self) -> byte_service_pb2.DescribeStoreResponse:
        """Return whether code must be uploaded before an experiment is created, and where."""
        request = byte_service_pb2.DescribeStoreRequest()
        answer: byte_service_pb2.DescribeStoreResponse = self._call(
            lambda: self._bytes.DescribeStore, request
        )
        return answer

    def prepare_upload(
        self, request: byte_service_pb2.PrepareUploadRequest
    ) -> byte_service_pb2.PrepareUploadResponse:
        """Return how to send a blob of a size and hash: by PUT, by stream, or not at all."""
        answer: byte_service_pb2.PrepareUploadResponse = self._call(
            lambda: self._bytes.PrepareUpload, request
        )
        return answer

    def complete_upload(self, header: byte_service_pb2.PrepareUploadRequest) -> None:
        """Complete an upload after its bytes were sent."""
        request = byte_service_pb2.CompleteUploadRequest(header=header)
        self._call(lambda: self._bytes.CompleteUpload, request)

    def upload(self, messages: Callable[[], Iterator[byte_service_pb2.UploadRequest]]) -> None:
        """Upload bytes through the manager; begin again if it is restarted.

        Args:
            messages: gives them from the beginning, each time it is called.
        """
        self.patiently(
            lambda: self._bytes.Upload(messages(), timeout=_WAIT_ROUND_S, metadata=self._metadata)
        )

    def download(self, sha256: str) -> Iterator[bytes]:
        """Yield a blob by its SHA-256, piece by piece; NotFoundError if there is none.

        Raises:
            NotFoundError: no blob has this hash.
        """
        return self.download_key(f"sha256/{sha256}")

    def download_key(self, key: str) -> Iterator[bytes]:
        """Yield a blob by its key, piece by piece; NotFoundError if there is none.

        Raises:
            NotFoundError: no blob has this key.
        """
        from nni.experiment.byte_client import get

        way: byte_service_pb2.PrepareDownloadResponse = self._call(
            lambda: self._bytes.PrepareDownload, byte_service_pb2.PrepareDownloadRequest(key=key)
        )
        if way.url and (pieces := get(way.url)) is not None:
            yield from pieces
            return
        request = byte_service_pb2.DownloadRequest(key=key)
        stream = self._started(lambda: self._bytes.Download(request, metadata=self._metadata))
        try:
            for piece in stream:
                yield piece.data
        except grpc.RpcError as error:
            raise translated(error) from error
        finally:
            stream.cancel()

    def usage(self, experiment_id: str = "") -> byte_service_pb2.GetUsageResponse:
        """Return the stored bytes in all and by experiment, and their limits."""
        request = byte_service_pb2.GetUsageRequest(experiment_id=experiment_id)
        answer: byte_service_pb2.GetUsageResponse = self._call(
            lambda: self._bytes.GetUsage, request, SLOW_CALL_TIMEOUT_S
        )
        return answer

    def collect_garbage(
        self, *, dry_run: bool, grace: duration_pb2.Duration | None = None
    ) -> byte_service_pb2.CollectGarbageResponse:
        """Delete blobs that nothing refers to; with ``dry_run`` only report them."""
        request = byte_service_pb2.CollectGarbageRequest(dry_run=dry_run, grace=grace)
        answer: byte_service_pb2.CollectGarbageResponse = self._call(
            lambda: self._bytes.CollectGarbage, request, SLOW_CALL_TIMEOUT_S
        )
        return answer

    # Runners

    def runners(self) -> list[pb.RunnerSummary]:
        """Return the agents that the manager knows, with their trials."""
        pages = self._pages(
            lambda: self._experiments.ListRunners, pb.ListRunnersRequest(page_size=100)
        )
        return [runner for page in pages for runner in page.runners]

    def diagnose(self) -> list[pb.Finding]:
        """Return the findings, good and bad, of the manager's checks of the installation."""
        answer = self._call(
            lambda: self._experiments.DiagnoseServices, pb.DiagnoseServicesRequest()
        )
        return list(answer.findings)

    def drain_runner(self, runner_id: str) -> None:
        """Drain an agent: it takes no new trial and ends after its last one."""
        request = pb.DrainRunnerRequest(request_id=new_request_id(), runner_id=runner_id)
        self._call(lambda: self._experiments.DrainRunner, request)
