import asyncio
import gc
import os
import warnings
from dataclasses import replace
from datetime import timedelta

from nni_proto.trial.v1 import cause_pb2
from svc_common.clock import ManualClock
from svc_common.messaging.ports import Task
from svc_trial_runner.attempts.process_reuse import ReusedProcesses
from svc_trial_runner.domain.attempt import Phase
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.ports import LaunchRequest, TrialProcess
from svc_trial_runner.telemetry import Telemetry
from tests.unit.services.trial_runner.conftest import EXPERIMENT, POOL, WAIT_S, Bench

KEY = AttemptKey(EXPERIMENT, "one", 1)


async def test_task_is_acknowledged_when_its_end_has_arrived(bench: Bench) -> None:
    agent = bench.agent()

    await bench.deliver(agent, bench.task("one"))
    await bench.until_kind("one", "exited")
    await bench.tasks.drain()
    bench.broker.redeliver()

    feed = await bench.bus.tasks.pull("pool")
    assert agent.attempts == []
    assert bench.dependencies.journal.state.claims == {}
    assert feed.granted == 0


async def test_task_delivered_again_while_it_runs_only_changes_its_address(bench: Bench) -> None:
    agent = bench.agent()
    message = bench.task("one", "sleep 30")
    await bench.deliver(agent, message)
    await bench.until_kind("one", "started")

    again = await bench.deliver(agent, message)

    (claim,) = bench.dependencies.journal.state.claims.values()
    assert claim.ack_subject == again.ack_subject
    assert len(agent.attempts) == 1
    agent.stop_trial(KEY)
    await bench.until_kind("one", "exited")
    assert bench.kinds("one") == ["started", "exited"]


async def test_task_of_an_ended_attempt_does_not_run_again(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one"))
    await bench.until_kind("one", "exited")

    await bench.deliver(agent, bench.task("one"))
    await bench.tasks.drain()
    bench.broker.redeliver()

    assert agent.attempts == []
    assert bench.kinds("one") == ["started", "exited"]
    assert (await bench.bus.tasks.pull("pool")).granted == 0


async def test_next_attempt_of_an_ended_one_runs(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one"))
    await bench.until_kind("one", "exited")

    await bench.deliver(agent, bench.task("one", attempt=2))

    await bench.until(lambda: len(bench.kinds("one")) == 4)
    assert bench.kinds("one") == ["started", "exited"] * 2
    assert [report.attempt for report in bench.heard] == [1, 1, 2, 2]


async def test_close_before_a_task_was_acknowledged_leaves_nothing_behind(bench: Bench) -> None:
    agent = bench.agent()
    task = Task("pool", 1, b"nonsense", "ack", 1)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        agent.take(task)
        await bench.tasks.aclose()
        gc.collect()

    assert [str(one.message) for one in found] == []


async def test_nonsense_in_the_queue_is_dropped(bench: Bench) -> None:
    agent = bench.agent()
    message = bench.task("one")
    message.attempt = 0

    await bench.deliver(agent, message)
    await bench.tasks.drain()
    bench.broker.redeliver()

    assert agent.attempts == []
    assert (await bench.bus.tasks.pull("pool")).granted == 0


async def test_last_hundred_thousand_ended_attempts_do_not_run_again(bench: Bench) -> None:
    agent = bench.agent()
    agent.remember_ended(KEY)
    for number in range(99_999):
        agent.remember_ended(AttemptKey(EXPERIMENT, "other", number))

    await bench.deliver(agent, bench.task("one"))
    remembered = len(agent.attempts)
    agent.remember_ended(AttemptKey(EXPERIMENT, "other", 99_999))
    await bench.deliver(agent, bench.task("one"))

    assert (remembered, len(agent.attempts)) == (0, 1)
    await bench.until_kind("one", "exited")


async def test_begin_and_end_of_an_attempt_are_changes(bench: Bench) -> None:
    agent = bench.agent()
    held: list[int] = []
    agent.on_change(lambda: held.append(len(agent.attempts)))

    await bench.deliver(agent, bench.task("one"))
    await bench.until_kind("one", "exited")
    await bench.tasks.drain()

    assert held == [1, 0]


async def test_task_without_a_folder_leaves_that_of_the_experiment(bench: Bench) -> None:
    agent = bench.agent()
    folder = str(bench.folder / "experiment")
    for trial_id, directory in (("one", folder), ("two", "")):
        await bench.deliver(agent, bench.task(trial_id, experiment_directory=directory))
        await bench.until_kind(trial_id, "exited")

    assert agent.directory_of(EXPERIMENT) == folder


async def test_room_is_unlimited_without_slots(bench: Bench) -> None:
    assert bench.agent().room is None


async def test_room_is_what_slots_leave(bench: Bench) -> None:
    agent = bench.agent(slots=2)
    await bench.deliver(agent, bench.task("one", "sleep 30"))

    assert agent.room == 1
    agent.stop_trial(KEY)
    await bench.until_kind("one", "exited")
    assert agent.room == 2


async def test_task_without_room_is_given_back_at_once(bench: Bench) -> None:
    agent = bench.agent(slots=1)
    await bench.deliver(agent, bench.task("one", "sleep 30"))

    task = await bench.deliver(agent, bench.task("two"))

    feed = await bench.bus.tasks.pull(POOL)
    feed.grant(1)
    again = await asyncio.wait_for(anext(aiter(feed)), WAIT_S)
    assert (again.sequence, again.deliveries) == (task.sequence, 2)
    await feed.aclose()
    agent.stop_trial(KEY)
    await bench.until_kind("one", "exited")


async def test_more_slots_make_room_for_more_tasks(bench: Bench) -> None:
    agent = bench.agent(slots=1)
    rooms: list[int | None] = []
    agent.on_change(lambda: rooms.append(agent.room))

    agent.set_slots(3)
    agent.set_slots(3)
    agent.set_slots(0)

    assert rooms == [3]
    assert agent.slots == 3


async def test_task_beyond_the_room_is_given_back(bench: Bench) -> None:
    agent = bench.agent(slots=1)
    await bench.deliver(agent, bench.task("one", "sleep 30"))

    await bench.deliver(agent, bench.task("two"))

    assert [run.key.trial_id for run in agent.attempts] == ["one"]
    feed = await bench.bus.tasks.pull("pool")
    feed.grant(1)
    assert (await asyncio.wait_for(anext(aiter(feed)), WAIT_S)).deliveries == 2
    agent.stop_trial(KEY)
    await bench.until_kind("one", "exited")


async def test_limit_of_tasks_drains_the_agent(bench: Bench) -> None:
    agent = bench.agent(task_limit=1)

    await bench.deliver(agent, bench.task("one"))
    await asyncio.wait_for(agent.wait_drained(), WAIT_S)

    assert agent.draining
    assert agent.room == 0


async def test_drop_of_another_claim_changes_nothing(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    await bench.until_kind("one", "started")

    agent.drop_trial(KEY, "another claim")

    assert len(agent.attempts) == 1
    agent.drop_trial(KEY, next(iter(agent.attempts)).claim_id)
    await asyncio.wait_for(bench.tasks.drain(), WAIT_S)
    assert agent.attempts == []
    assert bench.kinds("one") == ["started"]


async def test_times_of_tasks_dropped_or_given_back_are_forgotten(bench: Bench) -> None:
    telemetry = Telemetry(ManualClock())
    bench.dependencies = replace(bench.dependencies, telemetry=telemetry)
    agent = bench.agent(slots=1)
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    await bench.until_kind("one", "started")
    await bench.deliver(agent, bench.task("two"))

    assert [*telemetry._taken_at] == [*telemetry._started_at] == [KEY]
    agent.drop_trial(KEY, "")
    await asyncio.wait_for(bench.tasks.drain(), WAIT_S)
    assert [*telemetry._taken_at, *telemetry._started_at] == []


async def test_order_about_an_unknown_trial_is_ignored(bench: Bench) -> None:
    agent = bench.agent()

    agent.stop_trial(KEY)
    agent.drop_trial(KEY, "")
    agent.forget_experiment("unknown")

    assert agent.attempts == []


async def test_forgotten_experiment_has_no_attempts_and_its_tasks_may_come_anew(
    bench: Bench,
) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    await bench.until_kind("one", "started")

    agent.forget_experiment("another")
    assert len(agent.attempts) == 1
    agent.forget_experiment(EXPERIMENT)
    await asyncio.wait_for(bench.tasks.drain(), WAIT_S)

    assert agent.attempts == []
    assert bench.kinds("one") == ["started"]


async def test_orders_that_are_older_than_the_task_change_nothing(bench: Bench) -> None:
    agent = bench.agent()
    task = bench.task("one", "sleep 30")
    task.log_sequence = 7
    await bench.deliver(agent, task)
    await bench.until_kind("one", "started")
    (run,) = agent.attempts

    agent.stop_trial(KEY, 6)
    agent.drop_trial(KEY, run.claim_id, 6)
    agent.forget_experiment(EXPERIMENT, 6)

    assert run.phase is Phase.RUNNING
    agent.stop_trial(KEY, 7)
    await bench.until_kind("one", "exited")


async def test_outdated_end_of_the_experiment_forgets_no_ended_attempt(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one"))
    await bench.until_kind("one", "exited")
    task = bench.task("two", "sleep 30")
    task.log_sequence = 7
    await bench.deliver(agent, task)
    await bench.until_kind("two", "started")

    agent.forget_experiment(EXPERIMENT, 6)
    await bench.deliver(agent, bench.task("one"))

    assert [run.key.trial_id for run in agent.attempts] == ["two"]
    agent.lose_all()
    await asyncio.wait_for(agent.wait_drained(), WAIT_S)


async def test_delivery_of_a_running_task_renews_it(bench: Bench) -> None:
    clock = ManualClock()
    bench.dependencies = replace(bench.dependencies, clock=clock)
    agent = bench.agent(loses_unrenewed=True, ack_wait=timedelta(seconds=60))
    task = bench.task("one", "sleep 30")
    await bench.deliver(agent, task)
    await bench.until_kind("one", "started")
    (run,) = agent.attempts

    clock.advance(40)
    await bench.deliver(agent, task)
    clock.advance(40)
    bench.broker.stop()
    await agent.renew(within_s=0.01)
    bench.broker.start()

    assert run.phase is Phase.RUNNING
    agent.stop_trial(KEY)
    await bench.until_kind("one", "exited")


async def test_stopping_agent_reports_its_attempts_lost(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    await bench.until_kind("one", "started")

    await agent.abandon_all(5)

    lost = await bench.until_kind("one", "lost")
    assert lost.lost.reason == "its agent was stopped"
    assert agent.attempts == []


async def test_attempt_that_ignores_term_is_reported_lost(bench: Bench) -> None:
    agent = bench.agent()
    os.mkfifo(bench.folder / "ready")
    command = "trap '' TERM; echo > ready; while true; do sleep 1; done"
    await bench.deliver(agent, bench.task("one", command))
    await asyncio.to_thread((bench.folder / "ready").read_bytes)

    await agent.abandon_all(0.05)

    lost = await bench.until_kind("one", "lost")
    assert lost.lost.reason == "its agent was stopped"


async def test_attempt_whose_task_cannot_be_renewed_is_lost(bench: Bench) -> None:
    agent = bench.agent(loses_unrenewed=True, ack_wait=timedelta(0))
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    await bench.until_kind("one", "started")
    bench.broker.stop()

    await agent.renew(within_s=0.01)
    bench.broker.start()

    lost = await bench.until_kind("one", "lost")
    assert lost.lost.reason == "its task could not be renewed for 0 s"


async def test_attempt_is_lost_when_its_task_was_not_renewed_for_the_whole_time(
    bench: Bench,
) -> None:
    clock = ManualClock()
    bench.dependencies = replace(bench.dependencies, clock=clock)
    agent = bench.agent(loses_unrenewed=True, ack_wait=timedelta(seconds=60))
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    await bench.until_kind("one", "started")
    (run,) = agent.attempts

    clock.advance(40)
    await agent.renew()
    bench.broker.stop()
    clock.advance(60)
    await agent.renew(within_s=0.01)
    assert run.phase is Phase.RUNNING
    clock.advance(1)
    await agent.renew(within_s=0.01)
    bench.broker.start()

    lost = await bench.until_kind("one", "lost")
    assert lost.lost.reason == "its task could not be renewed for 60 s"


async def test_attempt_survives_where_the_bus_is_on_this_machine(bench: Bench) -> None:
    agent = bench.agent(loses_unrenewed=False, ack_wait=timedelta(0))
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    await bench.until_kind("one", "started")
    bench.broker.stop()

    await agent.renew(within_s=0.01)
    bench.broker.start()

    assert bench.kinds("one") == ["started"]
    agent.stop_trial(KEY)
    await bench.until_kind("one", "exited")


async def test_failure_of_the_agent_itself_loses_only_the_attempt(bench: Bench) -> None:
    agent = bench.agent()
    message = bench.task("one")
    message.spec.experiment_directory = "/proc/nowhere\0"

    await bench.deliver(agent, message)

    lost = await bench.until_kind("one", "lost")
    assert "the agent failed" in lost.lost.reason
    assert bench.failures == []


async def test_folder_that_cannot_be_written_loses_the_attempt_with_a_reason(bench: Bench) -> None:
    agent = bench.agent()

    await bench.deliver(agent, bench.task("one", experiment_directory="/proc/nowhere"))

    loss = (await bench.until_kind("one", "lost")).lost.loss
    assert loss.cause == cause_pb2.LOSS_CAUSE_NOT_STARTED
    assert "/proc/nowhere" in loss.detail


async def test_folder_of_an_experiment_is_that_of_its_latest_task(bench: Bench) -> None:
    agent = bench.agent()
    folders = [str(bench.folder / name) for name in ("first", "second", "second")]
    known = [agent.directory_of(EXPERIMENT)]

    for number, folder in enumerate(folders):
        await bench.deliver(agent, bench.task(f"t{number}", experiment_directory=folder))
        known.append(agent.directory_of(EXPERIMENT))
        await bench.until_kind(f"t{number}", "exited")

    assert known == [None, *folders]


async def test_fewer_slots_than_attempts_leave_no_room(bench: Bench) -> None:
    agent = bench.agent(slots=2, task_limit=5)
    for name in ("one", "two"):
        await bench.deliver(agent, bench.task(name, "sleep 30"))

    agent.set_slots(1)

    assert agent.room == 0
    agent.set_slots(9)
    assert agent.room == 3
    agent.lose_all()
    await asyncio.wait_for(agent.wait_drained(), WAIT_S)


async def test_attempt_of_a_forgotten_experiment_may_run_again(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one"))
    await bench.until_kind("one", "exited")
    await bench.tasks.drain()

    agent.forget_experiment(EXPERIMENT)
    await bench.deliver(agent, bench.task("one"))

    await bench.until(lambda: len(bench.kinds("one")) == 4)
    assert bench.kinds("one") == ["started", "exited"] * 2


async def test_attempt_is_found_until_it_is_over(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    await bench.until_kind("one", "started")
    (run,) = agent.attempts

    assert agent.find(EXPERIMENT, "one") is run
    assert agent.find(EXPERIMENT, "two") is None
    assert agent.find("another", "one") is None
    agent.stop_trial(KEY)
    await bench.until_kind("one", "exited")
    assert agent.find(EXPERIMENT, "one") is None


async def test_drain_is_noticed_and_ends_at_once_without_attempts(bench: Bench) -> None:
    agent = bench.agent()
    begun = asyncio.create_task(agent.wait_draining())
    await asyncio.sleep(0)
    assert not begun.done()

    agent.drain()

    await asyncio.wait_for(begun, WAIT_S)
    await asyncio.wait_for(agent.wait_drained(), WAIT_S)


async def test_drain_is_a_change(bench: Bench) -> None:
    agent = bench.agent()
    rooms: list[int | None] = []
    agent.on_change(lambda: rooms.append(agent.room))

    agent.drain()

    assert rooms == [0]


async def test_next_report_of_each_attempt_is_noted_in_the_journal(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    await bench.until_kind("one", "started")

    agent.note_progress()

    (claim,) = bench.dependencies.journal.state.claims.values()
    assert claim.next_sequence == 1
    agent.stop_trial(KEY)
    await bench.until_kind("one", "exited")


class NotedProcesses(ReusedProcesses):
    """Processes that note the clean-ups, and hold back the report of each start."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.dependencies.processes._processes, idle_s=1)
        self.launched, self.may_start = asyncio.Event(), asyncio.Event()
        self.may_start.set()
        self.older_than: list[int | None] = []
        self.released: list[str] = []

    async def launch(self, request: LaunchRequest) -> TrialProcess:
        process = await super().launch(request)
        self.launched.set()
        await self.may_start.wait()
        return process

    def kill_orphans(self, older_than: int | None) -> int:
        self.older_than.append(older_than)
        return 0

    def release(self, code: str) -> None:
        self.released.append(code)


def noted(bench: Bench) -> NotedProcesses:
    """Put noted processes in the place of those of the bench; return them."""
    processes = NotedProcesses(bench)
    bench.dependencies = replace(bench.dependencies, processes=processes)
    return processes


async def test_daemons_older_than_the_oldest_running_trial_are_killed(bench: Bench) -> None:
    processes = noted(bench)
    agent = bench.agent()
    for name in ("one", "two"):
        await bench.deliver(agent, bench.task(name, "sleep 30"))
        await bench.until_kind(name, "started")
    starts = [run.process.identity.start_time for run in agent.attempts if run.process is not None]

    agent.kill_orphans()
    agent.lose_all()
    await asyncio.wait_for(agent.wait_drained(), WAIT_S)

    assert len(starts) == 2
    assert processes.older_than[0] == min(starts)
    assert processes.older_than[-1] is None  # after the end of the last trial


async def test_no_daemon_is_killed_while_a_process_starts(bench: Bench) -> None:
    processes = noted(bench)
    agent = bench.agent()
    processes.may_start.clear()
    await bench.deliver(agent, bench.task("one"))
    await asyncio.wait_for(processes.launched.wait(), WAIT_S)

    agent.kill_orphans()
    during = list(processes.older_than)
    processes.may_start.set()
    await bench.until_kind("one", "exited")

    assert during == []


async def test_code_of_a_forgotten_experiment_has_no_more_interpreters(bench: Bench) -> None:
    processes = noted(bench)
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one"))
    await bench.until_kind("one", "exited")

    agent.forget_experiment("another")
    others = list(processes.released)
    agent.forget_experiment(EXPERIMENT)

    assert (others, processes.released) == ([], [str(bench.folder)])


async def test_task_that_a_closed_bus_does_not_acknowledge_is_no_failure(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    await bench.until_kind("one", "started")
    await bench.bus.aclose()

    agent.drop_trial(KEY, "")
    await asyncio.wait_for(bench.tasks.drain(), WAIT_S)

    assert agent.attempts == []
    assert [claim.key for claim in bench.dependencies.journal.state.claims.values()] == [KEY]
