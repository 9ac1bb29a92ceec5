"""Hosts that are sessions of an external `nni_proto.tuning.v1.TuningService`."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import grpc.aio

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_proto.tuning.v1 import tuning_service_pb2 as pb
from nni_proto.tuning.v1 import tuning_service_pb2_grpc as pb_grpc
from nni_wire.values import check_value
from svc_common.access.transport import PLAIN, Transport
from svc_common.errors import UnavailableError
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.rpc.client import open_channel, service_error
from svc_dispatcher.converters.log_messages import as_value
from svc_dispatcher.domain import answers, commands
from svc_dispatcher.domain.values import ExperimentSetup, Position, Suggestion
from svc_dispatcher.ports import HostSink

CONNECT_TIMEOUT_S: Final = 10.0
_CLOSE_TIMEOUT_S: Final = 2.0


class UnreadableAnswerError(ValueError):
    """Error: a value in an algorithm server's answer is malformed, e.g. nested too deeply."""


class ServerHost:
    """Algorithm host that forwards commands to an external algorithm's server by a gRPC session.

    An external algorithm does not receive recorded parameters: where a replay differs, the reports
    of the trials carry their parameters.

    Args:
        channel: to the server, owned from now on.
        sink: receives the outputs.
    """

    def __init__(self, channel: grpc.aio.Channel, sink: HostSink) -> None:
        self._channel = channel
        self._stub: Any = pb_grpc.TuningServiceStub(channel)
        self._sink: HostSink | None = sink
        self._box: CallbackQueue[commands.Command] = CallbackQueue()
        self._session_id = ""
        self._parameters: dict[int, value_pb2.Value] = {}
        self._assesses = False
        self._worker = asyncio.get_running_loop().create_task(self._work(), name="tuning session")

    def send(self, commands: Sequence[commands.Command]) -> None:
        """Queue more commands; the first of all is `Initialize`. Never waits."""
        for command in commands:
            self._box.put(command)

    async def aclose(self) -> None:
        """Cancel the worker, close the session at the server (errors ignored) and the channel."""
        self._sink = None
        self._worker.cancel()
        await asyncio.gather(self._worker, return_exceptions=True)
        if self._session_id:
            request = pb.CloseSessionRequest(session_id=self._session_id, request_id="close")
            self._session_id = ""
            with suppress(grpc.aio.AioRpcError):  # the server has ended, and its sessions with it
                await self._stub.CloseSession(request, timeout=_CLOSE_TIMEOUT_S)
        await self._channel.close()

    async def _work(self) -> None:
        try:
            while True:
                command = await self._box.get()
                for output in await self._handle(command):
                    self._output([output])
                self._output([answers.Done(command.position)])
        except grpc.aio.AioRpcError as error:
            sink, self._sink = self._sink, None
            if sink is not None:
                sink.on_end(f"the algorithm's server failed: {service_error(error).message}")
        except UnreadableAnswerError as error:
            sink, self._sink = self._sink, None
            if sink is not None:
                sink.on_end(str(error))

    def _output(self, outputs: list[answers.Output]) -> None:
        if self._sink is not None:
            self._sink.on_outputs(outputs)

    async def _handle(self, command: commands.Command) -> Iterable[answers.Output]:
        match command:
            case commands.Initialize():
                return await self.open(command)
            case commands.Generate():
                return await self.generate(command)
            case commands.Recorded():
                return self.record(command)
            case commands.TellMetric():
                return await self.metric(command)
            case commands.TellEnd():
                return await self.trial_end(command)
            case commands.ImportData():
                return await self.import_data(command)
            case commands.ImportTrials():
                return await self.import_trials(command)
            case commands.UpdateSearchSpace():
                return await self.update_search_space(command)
            case commands.ImportCurves() | commands.ImportReports() | commands.AddCustomized():
                return []  # the protocol has no message for it

    async def open(self, command: commands.Initialize) -> list[answers.Output]:
        """Open a session at the external server; return `Ready`, or `Unbuildable` if refused."""
        setup = command.setup
        assert setup.tuner is not None, "checked by the launcher"
        config = setup.config
        assert isinstance(config, config_pb2.ExperimentConfig), "set by the converter"
        request = pb.OpenSessionRequest(
            request_id=_request_id(command.position),
            experiment_id=setup.experiment_id,
            search_space=as_value(command.search_space),
            class_args=as_value(setup.tuner.class_args),
            objectives=config.objectives,
            constraints=config.constraints,
            seed=command.seed,
        )
        try:
            answer = await self._stub.OpenSession(request)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
                reason = error.details() or "the algorithm's server refused the session"
                return [answers.Unbuildable(command.position, reason, reason)]
            raise
        self._session_id = answer.session_id
        self._assesses = answer.assesses
        return [answers.Ready(answer.lookahead, answer.assesses, ())]

    async def generate(self, command: commands.Generate) -> list[answers.Output]:
        """Request parameters for these ids from the server, in a replay too, but then return []."""
        answer = await self._stub.GenerateParameters(
            pb.GenerateParametersRequest(
                session_id=self._session_id,
                parameter_ids=command.parameter_ids,
                request_id=command.request_id,
            )
        )
        suggestions = self._suggestions(answer.suggestions)
        if command.replayed:
            return []
        return [
            answers.Generated(
                command.position,
                command.request_id,
                suggestions,
                answer.exhausted,
                answer.deferred,
            )
        ]

    def record(self, command: commands.Recorded) -> list[answers.Output]:
        """Replace drawn parameters by those in the log; return `Diverged` for each that differs."""
        outputs: list[answers.Output] = []
        for parameter_id, parameters in command.parameters:
            ours = self._parameters.get(parameter_id)
            self._parameters[parameter_id] = as_value(parameters)
            if ours != parameters:
                outputs.append(answers.Diverged(command.position, parameter_id, parameters, ours))
        return outputs

    async def metric(self, command: commands.TellMetric) -> list[answers.Output]:
        """Send a metric that the algorithm uses to its server; return advice, late parameters."""
        if command.customized or not (command.final or self._assesses):
            return []
        kind = metric_pb2.METRIC_TYPE_FINAL if command.final else metric_pb2.METRIC_TYPE_PERIODICAL
        answer = await self._stub.ReportMetric(
            pb.ReportMetricRequest(
                session_id=self._session_id,
                trial_id=command.trial_id,
                parameter_id=command.parameter_id,
                metric=metric_pb2.Metric(
                    type=kind, sequence=command.sequence, value=as_value(command.value)
                ),
                parameters=self._parameters.get(command.parameter_id),
                request_id=_request_id(command.position),
            )
        )
        outputs = self._late(command.position, answer.suggestions)
        if answer.stop:
            outputs.append(answers.StopAdvised(command.position, command.trial_id))
        return outputs

    async def trial_end(self, command: commands.TellEnd) -> list[answers.Output]:
        """Send a trial's end to the server, unless customized; return deferred parameters."""
        self._parameters.pop(command.parameter_id, None)
        if command.customized:
            return []
        answer = await self._stub.EndTrial(
            pb.EndTrialRequest(
                session_id=self._session_id,
                trial_id=command.trial_id,
                parameter_id=command.parameter_id,
                state=command.state,
                end_state=trial_pb2.TrialState.Value(f"TRIAL_STATE_{command.state}"),
                request_id=_request_id(command.position),
            )
        )
        return self._late(command.position, answer.suggestions)

    async def import_data(self, command: commands.ImportData) -> list[answers.Output]:
        """Send results that the user measured elsewhere to the server; return no outputs."""
        return await self._import(command.position, as_value(command.data))

    async def import_trials(self, command: commands.ImportTrials) -> list[answers.Output]:
        """Send results of earlier generations to the server as samples; return no outputs."""
        data = value_pb2.Value()
        data.list_value.SetInParent()
        for parameters, value in command.samples:
            sample = data.list_value.items.add().map_value.entries
            sample.add(key="parameter", value=as_value(parameters))
            sample.add(key="value", value=as_value(value))
        return await self._import(command.position, data)

    async def _import(self, position: Position, data: value_pb2.Value) -> list[answers.Output]:
        await self._stub.ImportData(
            pb.ImportDataRequest(
                session_id=self._session_id, data=data, request_id=_request_id(position)
            )
        )
        return []

    async def update_search_space(
        self, command: commands.UpdateSearchSpace
    ) -> list[answers.Output]:
        """Send a new search space to the external algorithm's server; return no outputs."""
        await self._stub.UpdateSearchSpace(
            pb.UpdateSearchSpaceRequest(
                session_id=self._session_id,
                search_space=as_value(command.search_space),
                request_id=_request_id(command.position),
            )
        )
        return []

    def _late(self, position: Position, items: Sequence[pb.Suggestion]) -> list[answers.Output]:
        suggestions = self._suggestions(items)
        return [answers.Generated(position, "", suggestions)] if suggestions else []

    def _suggestions(self, items: Sequence[pb.Suggestion]) -> tuple[Suggestion, ...]:
        for item in items:
            _check(item)
            self._parameters[item.parameter_id] = item.parameters
        return tuple(
            Suggestion(item.parameter_id, item.parameters, item.provenance) for item in items
        )


def _check(item: pb.Suggestion) -> None:
    """Raise UnreadableAnswerError if a server's suggested parameters cannot be decoded."""
    try:
        check_value(item.parameters)
        check_value(item.provenance)
    except ValueError as error:
        raise UnreadableAnswerError(
            f"the algorithm's server made an unreadable suggestion, number {item.parameter_id}: "
            f"{error}"
        ) from error


class ServerHostLauncher:
    """`HostLauncher` that connects to external algorithm servers over gRPC.

    Args:
        transport: security of connections to other machines.
        connect_timeout_s: time limit for the connection, in seconds.
    """

    def __init__(
        self, transport: Transport = PLAIN, *, connect_timeout_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        self._transport = transport
        self._connect_timeout_s = connect_timeout_s

    async def launch(self, setup: ExperimentSetup, sink: HostSink, *, eager: bool) -> ServerHost:
        """Connect to the algorithm's server and return a host; UnavailableError at a time limit."""
        del eager
        assert setup.tuner is not None, "checked by the caller"
        address = setup.tuner.server_address
        channel = open_channel(address, self._transport)
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await channel.channel_ready()
        except TimeoutError as error:
            await channel.close()
            raise UnavailableError(
                f"the algorithm's server at {address} cannot be reached"
            ) from error
        return ServerHost(channel, sink)


def _request_id(position: Position) -> str:
    return f"{position.sequence}.{position.place}"
