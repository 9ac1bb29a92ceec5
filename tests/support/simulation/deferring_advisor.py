"""An advisor that answers part of what it is asked for only once results have come."""

from __future__ import annotations

from typing import Any

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.commands import CommandType, send


class DeferringAdvisor(MsgDispatcherBase):
    """Sends one job at once for each request and the others one by one, as trials end.

    What it proposes depends on how many results it has seen, so a replay that is fed the log in
    another order proposes something else.

    Args:
        limit: jobs after which it says that there are no more; None: never.
    """

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        self._limit = limit
        self._owed = 0
        self._sent = 0
        self._live = 0
        self._results = 0

    def handle_initialize(self, data: Any) -> None:
        send(CommandType.Initialized, "")

    def handle_request_trial_jobs(self, data: Any) -> None:
        self._owed += int(data)
        if self._live == 0 or self._sent % 3 == 0:
            self._pay()

    def _pay(self) -> None:
        if self._owed == 0:
            return
        if self._sent == self._limit:
            self._owed = 0
            send(CommandType.NoMoreTrialJobs, "")
            return
        self._owed -= 1
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
        self._pay()
        if self._live == 0:
            self._pay()
