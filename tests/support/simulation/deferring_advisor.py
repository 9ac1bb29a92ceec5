"""Advisor that defers some of the requested jobs until results arrive."""

from __future__ import annotations

from typing import Any

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.commands import CommandType, send


class DeferringAdvisor(MsgDispatcherBase):
    """Advisor that sends one job per request at once and the others one by one, as trials end.

    Its parameters depend on the number of results so far, so a replay that reads the log in
    another order draws different ones.

    Args:
        limit: jobs after which it sends `NoMoreTrialJobs`; None: no limit.
    """

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        self._limit = limit
        self._outstanding = 0
        self._sent = 0
        self._live = 0
        self._results = 0

    def handle_initialize(self, data: Any) -> None:
        send(CommandType.Initialized, "")

    def handle_request_trial_jobs(self, data: Any) -> None:
        self._outstanding += int(data)
        if self._live == 0 or self._sent % 3 == 0:
            self._send_job()

    def _send_job(self) -> None:
        if self._outstanding == 0:
            return
        if self._sent == self._limit:
            self._outstanding = 0
            send(CommandType.NoMoreTrialJobs, "")
            return
        self._outstanding -= 1
        self._live += 1
        job = {"parameter_id": self._sent, "parameters": {"x": self._sent * 0.37 % 1.0}}
        job["parameters"]["seen"] = self._results  # type: ignore[index] # a dict of two kinds
        self._sent += 1
        send(CommandType.NewTrialJob, job)

    def handle_update_search_space(self, data: Any) -> None:
        pass

    def handle_import_data(self, data: Any) -> None:
        pass

    def handle_add_customized_trial(self, data: Any) -> None:
        pass

    def handle_report_metric_data(self, data: Any) -> None:
        if data["type"] == "FINAL":
            self._results += 1

    def handle_trial_end(self, data: Any) -> None:
        self._live -= 1
        self._send_job()
        if self._live == 0:
            self._send_job()
