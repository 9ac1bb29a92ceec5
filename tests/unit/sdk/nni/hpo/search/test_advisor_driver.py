"""Driver of advisors: handlers, and jobs matched with requested ids."""

import json
from typing import Any

import pytest

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.commands import CommandType
from nni.hpo.search.advisor_driver import AdvisorAlgorithmDriver
from nni.hpo.search.driver import MetricCommand, TrialEndCommand


class Manual(MsgDispatcherBase):
    """Advisor that records its commands; `serve` is the number of jobs per request."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, Any]] = []
        self.sent = 0
        self.port: Any = None
        self.serve: Any = lambda wanted: wanted

    def job(self) -> None:
        self.sent += 1
        self.port(
            CommandType.NewTrialJob, {"parameter_id": f"j{self.sent}", "parameters": self.sent}
        )

    def handle_update_search_space(self, data: Any) -> None:
        self.heard.append(("space", data))

    def handle_initialize(self, data: Any) -> None:
        self.handle_update_search_space(data)

    def handle_request_trial_jobs(self, data: int) -> None:
        self.heard.append(("request", data))
        for _ in range(self.serve(data)):
            self.job()

    def handle_report_metric_data(self, data: dict[str, Any]) -> None:
        self.heard.append(("metric", data))

    def handle_trial_end(self, data: dict[str, Any]) -> None:
        self.heard.append(("end", data))

    def handle_import_data(self, data: Any) -> None:
        raise RuntimeError("no imports")

    def handle_add_customized_trial(self, data: Any) -> None:
        self.heard.append(("added", data))


class Bench:
    def __init__(self) -> None:
        self.advisor = Manual()
        self.said: list[dict[str, Any]] = []
        self.hosting = AdvisorAlgorithmDriver(self.advisor, {}, self.said.append)
        self.advisor.port = self.hosting.deliver


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_jobs_get_the_ids_that_were_asked_for_in_order(bench: Bench) -> None:
    answer = bench.hosting.generate([7, 8, 9])

    assert [item[:2] for item in answer.parameters] == [(7, 1), (8, 2), (9, 3)]
    assert (answer.deferred, answer.exhausted) == (0, False)


def test_jobs_that_come_later_are_said_then(bench: Bench) -> None:
    bench.advisor.serve = lambda wanted: wanted - 1

    answer = bench.hosting.generate([1, 2])
    bench.advisor.job()

    assert (len(answer.parameters), answer.deferred) == (1, 1)
    assert bench.said == [{"late": [(2, 2, {"results": 0})]}]


def test_jobs_beyond_what_was_asked_serve_the_next_request(bench: Bench) -> None:
    bench.advisor.serve = lambda wanted: wanted + 2

    bench.hosting.generate([1])
    answer = bench.hosting.generate([2, 3])

    assert [item[:2] for item in answer.parameters] == [(2, 2), (3, 3)]
    assert bench.advisor.heard == [("request", 1)]


def test_no_more_jobs_is_an_exhausted_answer(bench: Bench) -> None:
    def serve(wanted: int) -> int:
        bench.hosting.deliver(CommandType.NoMoreTrialJobs, "")
        return 0

    bench.advisor.serve = serve

    answer = bench.hosting.generate([1, 2])

    assert (answer.parameters, answer.deferred, answer.exhausted) == ((), 0, True)
    assert bench.said == []


def test_no_more_jobs_after_a_deferral_is_said_at_once(bench: Bench) -> None:
    bench.advisor.serve = lambda _: 0
    bench.hosting.generate([1])

    bench.hosting.deliver(CommandType.NoMoreTrialJobs, "")

    assert bench.said == [{"late": [], "exhausted": True}]


def test_no_more_jobs_takes_back_what_earlier_answers_have_promised(bench: Bench) -> None:
    bench.advisor.serve = lambda _: 0
    bench.hosting.generate([1])

    def end(_: int) -> int:
        bench.hosting.deliver(CommandType.NoMoreTrialJobs, "")
        return 0

    bench.advisor.serve = end
    answer = bench.hosting.generate([2])

    assert (answer.deferred, answer.exhausted) == (0, True)
    assert bench.said == [{"late": [], "exhausted": True}]


def test_metrics_and_ends_bear_the_advisors_own_id(bench: Bench) -> None:
    bench.hosting.generate([4])

    bench.hosting.metric(MetricCommand("t", 1, 4, False, 3, 0.5, False))
    bench.hosting.trial_end(TrialEndCommand("t", 4, "FAILED", customized=False))

    (_, metric), (_, end) = bench.advisor.heard[1:]
    assert metric == {
        "parameter_id": "j1",
        "value": 0.5,
        "trial_job_id": "t",
        "type": "PERIODICAL",
        "sequence": 3,
    }
    assert (end["trial_job_id"], end["event"]) == ("t", "FAILED")
    assert json.loads(end["hyper_params"]) == {
        "parameter_source": "algorithm",
        "parameter_id": "j1",
        "parameters": 1,
    }


def test_an_advisor_of_one_metric_gets_its_value_only(bench: Bench) -> None:
    driver = AdvisorAlgorithmDriver(bench.advisor, {}, bench.said.append, metric="loss")
    bench.advisor.port = driver.deliver
    driver.generate([4])

    driver.metric(MetricCommand("t", 1, 4, True, 0, {"default": 0.9, "loss": 0.25}, False))

    _, (_, metric) = bench.advisor.heard
    assert metric["value"] == 0.25


def test_trials_that_the_user_added_are_announced_and_no_more(bench: Bench) -> None:
    bench.hosting.add_customized(5, {"x": 1})
    bench.hosting.metric(MetricCommand("t", 1, 5, True, 0, 0.5, True))
    bench.hosting.trial_end(TrialEndCommand("t", 5, "SUCCEEDED", customized=True))

    ((kind, data),) = bench.advisor.heard
    assert (kind, data["parameters"], data["parameter_source"]) == ("added", {"x": 1}, "customized")


def test_kill_is_advice_to_stop(bench: Bench) -> None:
    bench.hosting.deliver(CommandType.KillTrialJob, "t")

    assert bench.said == [{"stop": "t"}]


def test_exception_of_a_handler_is_reported_and_skipped(bench: Bench) -> None:
    bench.hosting.import_data([])

    assert bench.said[0]["failed"]["call"] == "handle_import_data"
    assert bench.said[0]["failed"]["skipped"]


def test_recorded_parameters_replace_those_of_the_job(bench: Bench) -> None:
    bench.hosting.generate([1])

    bench.hosting.record(1, "log")
    bench.hosting.trial_end(TrialEndCommand("t", 1, "SUCCEEDED", customized=False))

    assert bench.said == [{"diverged": [1, "log", 1]}]
    assert json.loads(bench.advisor.heard[-1][1]["hyper_params"])["parameters"] == "log"


def test_recorded_parameters_of_a_promised_job_keep_its_promise(bench: Bench) -> None:
    bench.advisor.serve = lambda _: 0
    bench.hosting.generate([1, 2])

    bench.hosting.record(1, "log")
    bench.advisor.job()

    assert [item[0] for message in bench.said for item in message.get("late", [])] == [2]
    assert bench.hosting.knows(1)


def test_advisors_have_no_state(bench: Bench) -> None:
    assert bench.hosting.snapshot() is None
    with pytest.raises(TypeError, match="no snapshots"):
        bench.hosting.restore({})
    with pytest.raises(TypeError, match="no snapshots"):
        bench.hosting.repeat([1])


def test_new_space_may_have_more_jobs(bench: Bench) -> None:
    bench.advisor.serve = lambda _: 0
    bench.hosting.generate([1])
    bench.hosting.deliver(CommandType.NoMoreTrialJobs, "")
    bench.advisor.serve = lambda wanted: wanted

    bench.hosting.update_search_space({"x": 1})
    answer = bench.hosting.generate([2])

    assert [item[:2] for item in answer.parameters] == [(2, 1)]
    assert not answer.exhausted
    assert ("space", {"x": 1}) in bench.advisor.heard


def test_metrics_and_ends_of_other_trials_are_not_forwarded(bench: Bench) -> None:
    bench.hosting.generate([1])

    bench.hosting.metric(MetricCommand("t", 1, 1, True, 0, 0.5, True))
    bench.hosting.metric(MetricCommand("u", 1, 9, True, 0, 0.5, False))
    bench.hosting.trial_end(TrialEndCommand("t", 1, "SUCCEEDED", customized=True))
    bench.hosting.trial_end(TrialEndCommand("u", 9, "SUCCEEDED", customized=False))

    assert bench.advisor.heard == [("request", 1)]
    assert bench.said == []
