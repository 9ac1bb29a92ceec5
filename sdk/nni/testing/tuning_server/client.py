"""A client of a tuning server that speaks as the dispatcher does: one call at a time, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self

import grpc

from nni.hpo.json_value import JsonValue
from nni_proto.common.v1 import metric_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_proto.tuning.v1 import tuning_service_pb2 as pb
from nni_proto.tuning.v1 import tuning_service_pb2_grpc as pb_grpc
from nni_wire.limits import grpc_channel_options
from nni_wire.values import from_value, to_value

CALL_TIMEOUT_S: Final = 30.0
"""Deadline of each call of the suite; the dispatcher itself is more patient."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Response to a request: parameters by id, whether no more follow, number of deferred ones."""

    parameters: dict[int, JsonValue]
    """By parameter id, in the order of the answer."""
    exhausted: bool
    deferred: int


@dataclass(slots=True)
class TuningSession:
    """Session on a tuning server: requests and reports; trials are named after their ids."""

    stub: Any
    id: str
    assesses: bool
    _calls: int = field(default=0)

    def generate(self, parameter_ids: Sequence[int]) -> Answer:
        """Request parameters for ids; return them, and check that no id is answered twice."""
        answer = self.stub.GenerateParameters(
            pb.GenerateParametersRequest(
                session_id=self.id, parameter_ids=parameter_ids, request_id=self._request_id()
            ),
            timeout=CALL_TIMEOUT_S,
        )
        ids = [one.parameter_id for one in answer.suggestions]
        assert len(ids) == len(set(ids)), f"an id is answered twice: {ids}"
        return Answer(_by_id(answer.suggestions), answer.exhausted, answer.deferred)

    def report(
        self,
        parameter_id: int,
        value: JsonValue,
        parameters: JsonValue,
        *,
        final: bool = True,
        sequence: int = 0,
    ) -> dict[int, JsonValue]:
        """Send a report; return parameters that had been deferred."""
        kind = metric_pb2.METRIC_TYPE_FINAL if final else metric_pb2.METRIC_TYPE_PERIODICAL
        answer = self.stub.ReportMetric(
            pb.ReportMetricRequest(
                session_id=self.id,
                trial_id=f"trial{parameter_id}",
                parameter_id=parameter_id,
                metric=metric_pb2.Metric(type=kind, sequence=sequence, value=to_value(value)),
                parameters=to_value(parameters),
                request_id=self._request_id(),
            ),
            timeout=CALL_TIMEOUT_S,
        )
        return _by_id(answer.suggestions)

    def end(self, parameter_id: int, state: str = "SUCCEEDED") -> dict[int, JsonValue]:
        """Send the end of a trial; return parameters that had been deferred."""
        answer = self.stub.EndTrial(
            pb.EndTrialRequest(
                session_id=self.id,
                trial_id=f"trial{parameter_id}",
                parameter_id=parameter_id,
                state=state,
                end_state=trial_pb2.TrialState.Value(f"TRIAL_STATE_{state}"),
                request_id=self._request_id(),
            ),
            timeout=CALL_TIMEOUT_S,
        )
        return _by_id(answer.suggestions)

    def update_search_space(self, search_space: JsonValue) -> None:
        """Send another search space."""
        self.stub.UpdateSearchSpace(
            pb.UpdateSearchSpaceRequest(
                session_id=self.id,
                search_space=to_value(search_space),
                request_id=self._request_id(),
            ),
            timeout=CALL_TIMEOUT_S,
        )

    def import_data(self, samples: JsonValue) -> None:
        """Send results that were measured elsewhere: `[{"parameter": …, "value": …}, …]`."""
        self.stub.ImportData(
            pb.ImportDataRequest(
                session_id=self.id, data=to_value(samples), request_id=self._request_id()
            ),
            timeout=CALL_TIMEOUT_S,
        )

    def close(self) -> None:
        """Close the session on the server."""
        self.stub.CloseSession(
            pb.CloseSessionRequest(session_id=self.id, request_id=self._request_id()),
            timeout=CALL_TIMEOUT_S,
        )

    def _request_id(self) -> str:
        self._calls += 1
        return f"{self._calls}.0"


class TuningClient:
    """A connection to a tuning server; use it as a context manager.

    Args:
        address: `host:port`.
    """

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(
            address, options=[*grpc_channel_options(), ("grpc.enable_http_proxy", 0)]
        )
        self.stub: Any = pb_grpc.TuningServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def wait_ready(self, timeout_s: float) -> None:
        """Wait until the server accepts connections; raise FutureTimeoutError after `timeout_s`.

        Raises:
            grpc.FutureTimeoutError: it does not in time.
        """
        check: Any = self._channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            check(b"", timeout=timeout_s, wait_for_ready=True)
        except grpc.RpcError as error:  # a server need not offer this service
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise grpc.FutureTimeoutError from error

    def open(
        self, search_space: JsonValue, class_args: JsonValue = None, seed: int = 0
    ) -> TuningSession:
        """Open and return a session that minimises the metric `default`."""
        answer = self.stub.OpenSession(
            pb.OpenSessionRequest(
                request_id="0.0",
                experiment_id="conformance",
                search_space=to_value(search_space),
                class_args=to_value({} if class_args is None else class_args),
                objectives=[
                    metric_pb2.Objective(metric="default", mode=metric_pb2.OPTIMIZE_MODE_MINIMIZE)
                ],
                seed=seed,
            ),
            timeout=CALL_TIMEOUT_S,
        )
        return TuningSession(self.stub, answer.session_id, answer.assesses)

    @contextmanager
    def session(
        self, search_space: JsonValue, class_args: JsonValue = None, seed: int = 0
    ) -> Iterator[TuningSession]:
        """Open a session, yield it, and close it at the end of the block."""
        session = self.open(search_space, class_args, seed)
        try:
            yield session
        finally:
            session.close()


def _by_id(suggestions: Sequence[pb.Suggestion]) -> dict[int, JsonValue]:
    return {one.parameter_id: from_value(one.parameters) for one in suggestions}
