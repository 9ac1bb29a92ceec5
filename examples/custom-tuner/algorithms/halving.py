"""An advisor of one's own: tuner and assessor in one object."""

import random
from collections import defaultdict

from nni.runtime.msg_dispatcher_base import MetricType, MsgDispatcherBase
from nni.runtime.protocol import CommandType, send


class EarlyHalving(MsgDispatcherBase):
    """Draws points at random and stops those that are in the worse half at one report.

    Args:
        at_report: number of the report at which a trial must be in the better half.
        seed: makes the search repeatable.
    """

    def __init__(self, at_report=3, seed=None):
        super().__init__()
        self._at_report = at_report
        self._random = random.Random(seed)
        self._space = {}
        self._next_id = 0
        self._rivals = []
        self._history = defaultdict(list)

    def handle_initialize(self, data):
        self.handle_update_search_space(data)
        send(CommandType.Initialized, "")

    def handle_update_search_space(self, data):
        self._space = {name: spec["_value"] for name, spec in data.items()}

    def handle_request_trial_jobs(self, data):
        for _ in range(data):
            parameters = {name: self._random.uniform(*ends) for name, ends in self._space.items()}
            send(
                CommandType.NewTrialJob,
                {"parameter_id": self._next_id, "parameters": parameters},
            )
            self._next_id += 1

    def handle_report_metric_data(self, data):
        if data["type"] != MetricType.PERIODICAL:
            return
        history = self._history[data["trial_job_id"]]
        history.append(data["value"])
        if len(history) != self._at_report:
            return
        better = sum(rival < history[-1] for rival in self._rivals)
        self._rivals.append(history[-1])
        if len(self._rivals) > 2 and better > len(self._rivals) / 2:
            send(CommandType.KillTrialJob, data["trial_job_id"])

    def handle_trial_end(self, data):
        self._history.pop(data["trial_job_id"], None)
