"""Base class of advisors: dispatch of commands, threads, and errors."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from nni.hpo import commands
from nni.hpo.commands import CommandType, MetricType
from nni.runtime.msg_dispatcher_base import MsgDispatcherBase
from nni.runtime.protocol import send


class Port:
    def __init__(self) -> None:
        self.said: list[tuple[CommandType, Any]] = []

    def deliver(self, command: CommandType, data: Any) -> None:
        self.said.append((command, data))


@pytest.fixture
def port() -> Iterator[Port]:
    port = Port()
    commands.connect(port)
    yield port
    commands.connect(None)


class Counting(MsgDispatcherBase):
    """Hands out numbers; without a constructor, as the documentation shows."""

    handled: list[tuple[str, Any, str]]
    next_id = 0

    def note(self, name: str, data: Any) -> None:
        self.__dict__.setdefault("handled", []).append(
            (name, data, threading.current_thread().name)
        )

    def handle_update_search_space(self, data: Any) -> None:
        self.note("space", data)

    def handle_request_trial_jobs(self, data: int) -> None:
        for _ in range(data):
            send(CommandType.NewTrialJob, {"parameter_id": self.next_id, "parameters": {"x": data}})
            self.next_id += 1

    def handle_report_metric_data(self, data: dict[str, Any]) -> None:
        if data["type"] not in {MetricType.PERIODICAL, MetricType.FINAL}:
            raise ValueError(f"Data type not supported: {data['type']}")
        self.note("metric", data["value"])

    def handle_trial_end(self, data: dict[str, Any]) -> None:
        self.note("end", data)


def test_initialize_takes_the_space_and_says_so(port: Port) -> None:
    advisor = Counting()

    advisor.process_command(CommandType.Initialize, {"x": 1})

    assert advisor.handled[0][:2] == ("space", {"x": 1})
    assert port.said == [(CommandType.Initialized, "")]


@pytest.mark.claim("hpo", 44)
def test_request_for_three_trials_sends_three(port: Port) -> None:
    Counting().process_command(CommandType.RequestTrialJobs, 3)

    ids = [data["parameter_id"] for command, data in port.said]
    assert ids == [0, 1, 2]


def test_handler_errors_pass_through_to_the_host() -> None:
    with pytest.raises(ValueError, match="not supported: ODD"):
        Counting().process_command(CommandType.ReportMetricData, {"type": "ODD", "value": 1})


def test_handler_that_is_missing_is_named() -> None:
    with pytest.raises(TypeError, match="must override handle_trial_end"):
        MsgDispatcherBase().process_command(CommandType.TrialEnd, {})


def test_outgoing_command_is_none_to_receive() -> None:
    with pytest.raises(ValueError, match="receives no command NewTrialJob"):
        Counting().process_command(CommandType.NewTrialJob, {})


def test_optional_handlers_do_nothing(caplog: pytest.LogCaptureFixture) -> None:
    advisor = Counting()

    advisor.process_command(CommandType.Ping, None)
    advisor.process_command(CommandType.AddCustomizedTrialJob, {"x": 1})
    advisor.process_command(CommandType.ImportData, [{"parameter": {}, "value": 1}])

    assert "ignores 1 imported samples" in caplog.text


def test_run_handles_what_is_enqueued_in_two_threads_until_terminate(port: Port) -> None:
    advisor = Counting()
    advisor.enqueue_command(CommandType.Initialize, {})
    advisor.enqueue_command(CommandType.ReportMetricData, {"type": "FINAL", "value": 1})
    advisor.enqueue_command(CommandType.TrialEnd, {})
    advisor.enqueue_command(CommandType.Terminate, None)

    advisor.run()

    assert [name for name, _, _ in advisor.handled] == ["space", "metric", "end"]
    assert {thread for _, _, thread in advisor.handled} == {"advisor-commands"}
    assert not [t for t in threading.enumerate() if t.name.startswith("advisor-")]


@pytest.mark.usefixtures("port")
def test_run_goes_on_where_its_queues_are_empty_and_outlives_no_process() -> None:
    begun = threading.Event()
    daemons: list[bool] = []

    class Slow(Counting):
        def handle_update_search_space(self, data: Any) -> None:
            daemons.append(threading.current_thread().daemon)
            begun.set()

    advisor = Slow()
    running = threading.Thread(target=advisor.run)
    running.start()
    advisor.enqueue_command(CommandType.UpdateSearchSpace, {})
    assert begun.wait(timeout=10)
    advisor.enqueue_command(CommandType.TrialEnd, {"later": True})
    advisor.enqueue_command(CommandType.Terminate, None)
    running.join(timeout=10)

    assert [data for _, data, _ in advisor.handled] == [{"later": True}]
    assert daemons == [True]


def test_intermediate_metrics_have_a_thread_of_their_own(port: Port) -> None:
    judged = threading.Event()

    class Judging(Counting):
        def handle_report_metric_data(self, data: dict[str, Any]) -> None:
            super().handle_report_metric_data(data)
            judged.set()

        def handle_trial_end(self, data: dict[str, Any]) -> None:
            assert judged.wait(timeout=10)  # would wait for ever in the same thread

    advisor = Judging()
    advisor.enqueue_command(CommandType.TrialEnd, {})
    advisor.enqueue_command(CommandType.ReportMetricData, {"type": "PERIODICAL", "value": 1})
    advisor.enqueue_command(CommandType.Terminate, None)

    advisor.run()

    assert [thread for _, _, thread in advisor.handled] == ["advisor-assessments"]


def test_run_raises_what_a_handler_raised(port: Port) -> None:
    advisor = Counting()
    advisor.enqueue_command(CommandType.ReportMetricData, {"type": "ODD", "value": 1})

    with pytest.raises(ValueError, match="not supported: ODD"):
        advisor.run()


@pytest.mark.usefixtures("port")
def test_with_many_threads_commands_overlap_and_do_not_outlive_the_process() -> None:
    together = threading.Barrier(3)
    daemons: list[bool] = []

    class Concurrent(Counting):
        multi_thread = True

        def handle_update_search_space(self, data: Any) -> None:
            daemons.append(threading.current_thread().daemon)
            together.wait(timeout=10)

    advisor = Concurrent()
    for _ in range(2):
        advisor.enqueue_command(CommandType.UpdateSearchSpace, {})
    advisor.enqueue_command(CommandType.Terminate, None)

    advisor.run()
    together.wait(timeout=10)

    assert daemons == [True, True]


class Bare(Counting):
    """Advisor whose constructor does not call that of the base class."""

    def __init__(self) -> None:
        self.own = 1


def test_constructor_of_the_base_class_need_not_be_called(port: Port) -> None:
    advisor = Bare()
    advisor.enqueue_command(CommandType.Initialize, {"x": 1})
    advisor.enqueue_command(CommandType.Terminate, None)

    advisor.run()

    assert advisor.handled[0][:2] == ("space", {"x": 1})
    assert port.said == [(CommandType.Initialized, "")]


def test_terminate_ends_a_run_that_begins_later() -> None:
    advisor = Bare()

    advisor.process_command(CommandType.Terminate, None)
    advisor.run()

    assert advisor.own == 1
    assert not [t for t in threading.enumerate() if t.name.startswith("advisor-")]
