"""Calls of the client about shared studies: ask for a trial, tell its result, renew leases."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any, Final

from nni.experiment.connection import Connection
from nni.experiment.errors import LeaseLapsedError, WrongStateError
from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import study_service_pb2 as pb

_ASK_ROUND_S: Final = 30.0
"""Deadline of one call that waits for a trial; it is asked again with the same request id."""


class StudyCalls(Connection):
    """Connection with one typed, blocking method per call about shared studies."""

    def ask_trial(
        self,
        experiment_id: str,
        caller_id: str,
        *,
        parameters: value_pb2.Value | None = None,
        timeout_s: float | None = None,
    ) -> pb.AskTrialResponse:
        """Wait for the next trial's parameters and return it; TimeoutError at the limit.

        Args:
            experiment_id: the study.
            caller_id: of this process.
            parameters: of the trial; `None`: the next ones of the tuner.
            timeout_s: longest wait; `None`: for ever.

        Raises:
            TimeoutError: there were no parameters in that time.
            WrongStateError: no trial comes in the present state.
        """
        request = pb.AskTrialRequest(
            request_id=uuid.uuid4().hex,
            experiment_id=experiment_id,
            caller_id=caller_id,
            parameters=parameters,
        )
        give_up_at = None if timeout_s is None else time.monotonic() + timeout_s

        def once() -> Any:  # noqa: ANN401 - the stub is untyped
            left_s = _ASK_ROUND_S
            if give_up_at is not None:
                left_s = min(left_s, give_up_at - time.monotonic())
                if left_s <= 0:
                    raise TimeoutError(f"the study had no trial within {timeout_s:g} s")
            return self._studies.AskTrial(request, timeout=left_s, metadata=self._metadata)

        answer: pb.AskTrialResponse = self.patiently(once)
        return answer

    def tell_trial(self, request: pb.TellTrialRequest) -> None:
        """End a trial with its result, or as failed; a repetition changes nothing, a change raises.

        Raises:
            ConfigError: another result was told before.
            LeaseLapsedError: the lease has lapsed before.
            WrongStateError: the trial is over for another reason.
        """
        # Derived, so that a repetition after a restart of this process is one, too.
        request.request_id = f"tell-{request.trial_id}-{request.attempt}"
        try:
            self._call(lambda: self._studies.TellTrial, request)
        except WrongStateError as error:
            if error.facts.get("reason") == "LEASE_LAPSED":
                raise LeaseLapsedError(str(error), error.facts) from error
            raise

    def renew_leases(
        self, experiment_id: str, caller_id: str, held: Sequence[tuple[str, int]]
    ) -> list[str]:
        """Renew the leases of trials; return the ids of those that this process has lost.

        Args:
            experiment_id: the study.
            caller_id: of this process.
            held: id and attempt of each trial; at most 1,000.
        """
        request = pb.RenewLeasesRequest(
            request_id=uuid.uuid4().hex,
            experiment_id=experiment_id,
            caller_id=caller_id,
            trials=[pb.HeldTrial(trial_id=trial_id, attempt=attempt) for trial_id, attempt in held],
        )
        answer = self._call(lambda: self._studies.RenewLeases, request)
        return [str(trial_id) for trial_id in answer.lost_trial_ids]
