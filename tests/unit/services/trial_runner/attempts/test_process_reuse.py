import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from svc_trial_runner.attempts.process_reuse import ReusedProcesses
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.ports import LaunchRequest, NextTrial, TrialProcess

BASE: Mapping[str, str] = {"PATH": "/bin"}
FIRST = LaunchRequest(
    label="one",
    command="python3 -m a",
    python=None,
    code="/code",
    directory="/code",
    base=BASE,
    variables={"NNI_TRIAL_TOKEN": "first", "TRACEPARENT": "00"},
    stdout=3,
    stderr=4,
    reuse_group="exp/spec",
)
SECOND = replace(FIRST, label="two", variables={"NNI_TRIAL_TOKEN": "second"}, stdout=5, stderr=6)


class ManualProcess:
    """Trial process whose end the test decides."""

    warm = True

    def __init__(self, pid: int) -> None:
        self.identity = ProcessIdentity(pid, 1)
        self.ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()


class ManualProcesses:
    """`Processes` that starts nothing, and records what it is asked for."""

    warm_count = 1

    def __init__(self) -> None:
        self.started: list[ManualProcess] = []
        self.signals: list[tuple[str, int, str]] = []
        self.signalled = asyncio.Event()
        self.released: list[tuple[str, set[int]]] = []

    async def launch(self, request: LaunchRequest) -> TrialProcess:
        self.started.append(ManualProcess(100 + len(self.started)))
        return self.started[-1]

    def terminate(self, process: TrialProcess, token: str) -> None:
        self.signals.append(("TERM", process.identity.pid, token))

    def kill(self, process: TrialProcess, token: str) -> None:
        self.signals.append(("KILL", process.identity.pid, token))
        self.signalled.set()

    def has_leftovers(self, process: TrialProcess) -> bool:
        return True

    def kill_orphans(self, older_than: int | None) -> int:
        return 2 if older_than is None else older_than

    def release(self, code: str, ending: Collection[int] = ()) -> None:
        self.released.append((code, set(ending)))

    def release_idle(self, idle_s: float) -> None:
        self.released.append((str(idle_s), set()))

    def continue_stopped(self) -> None:
        self.released.append(("stopped", set()))

    async def aclose(self) -> None:
        return None


class ManualWaiting:
    """Process that waits for a trial, and takes it or not, as the test says."""

    def __init__(self, pid: int = 100, *, takes: bool | None = True) -> None:
        self.pid = pid
        self.takes = takes
        self.trials: list[NextTrial] = []
        self.released = asyncio.Event()

    def hand_over(self, trial: NextTrial) -> asyncio.Future[bool]:
        self.trials.append(trial)
        accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self.takes is not None:
            accepted.set_result(self.takes)
        return accepted

    def release(self) -> None:
        self.released.set()


class Stage:
    """Launcher under test, on processes that the test controls."""

    def __init__(self, idle_s: float = 3600.0, handover_timeout_s: float = 3600.0) -> None:
        self.processes = ManualProcesses()
        self.reused = ReusedProcesses(self.processes, idle_s, handover_timeout_s)

    async def wait(self, waiting: ManualWaiting) -> TrialProcess:
        """Run a first trial to the request for the next one; return its process."""
        process = await self.reused.launch(FIRST)
        assert self.reused.wait_for_next(process, waiting)
        return process


@pytest.fixture
async def stage() -> Stage:
    return Stage()


async def test_trial_whose_process_waits_has_succeeded(stage: Stage) -> None:
    process = await stage.wait(ManualWaiting())

    assert process.ended.result() == 0
    assert not stage.processes.started[0].ended.done()
    assert stage.reused.waiting_count == 1


async def test_next_trial_of_the_kind_gets_the_process_that_waits(stage: Stage) -> None:
    waiting = ManualWaiting()
    await stage.wait(waiting)

    second = await stage.reused.launch(SECOND)

    assert len(stage.processes.started) == 1
    assert (second.identity.pid, second.warm) == (100, True)
    assert not second.ended.done()
    assert waiting.trials == [
        NextTrial("second", "/code", SECOND.variables, frozenset({"TRACEPARENT"}), 5, 6)
    ]
    assert stage.reused.waiting_count == 0


async def test_process_that_ends_while_it_waits_is_forgotten(stage: Stage) -> None:
    await stage.wait(ManualWaiting())

    stage.processes.started[0].ended.set_result(9)
    await asyncio.sleep(0)

    assert stage.reused.waiting_count == 0


async def test_variables_of_any_earlier_trial_are_unset(stage: Stage) -> None:
    await stage.wait(ManualWaiting())
    second = await stage.reused.launch(SECOND)
    waiting = ManualWaiting()
    assert stage.reused.wait_for_next(second, waiting)

    await stage.reused.launch(SECOND)

    assert waiting.trials[0].unset == {"TRACEPARENT"}


@pytest.mark.parametrize(
    "request_",
    [
        replace(SECOND, reuse_group="exp/other"),
        replace(SECOND, reuse_group=""),
        replace(SECOND, command="python3 -m b"),
        replace(SECOND, code="/other"),
        replace(SECOND, base=dict(BASE)),
        replace(SECOND, variables={**SECOND.variables, "CUDA_VISIBLE_DEVICES": "1"}),
        replace(SECOND, isolated=True),
    ],
    ids=["specification", "no group", "command", "code", "variables", "GPUs", "isolated"],
)
async def test_trial_of_another_kind_gets_a_process_of_its_own(
    stage: Stage, request_: LaunchRequest
) -> None:
    waiting = ManualWaiting()
    await stage.wait(waiting)

    second = await stage.reused.launch(request_)

    assert second.identity.pid == 101
    assert waiting.trials == []


async def test_process_that_has_waited_least_is_taken_first(stage: Stage) -> None:
    first, second = await stage.reused.launch(FIRST), await stage.reused.launch(FIRST)
    assert stage.reused.wait_for_next(first, ManualWaiting(100))
    assert stage.reused.wait_for_next(second, ManualWaiting(101))

    assert (await stage.reused.launch(SECOND)).identity.pid == 101
    assert (await stage.reused.launch(SECOND)).identity.pid == 100


async def test_end_of_the_process_is_the_end_of_its_present_trial(stage: Stage) -> None:
    first = await stage.wait(ManualWaiting())
    second = await stage.reused.launch(SECOND)

    stage.processes.started[0].ended.set_result(9)

    assert await second.ended == 9
    assert first.ended.result() == 0


async def test_process_that_has_ended_is_not_taken(stage: Stage) -> None:
    waiting = ManualWaiting()
    await stage.wait(waiting)
    stage.processes.started[0].ended.set_result(0)

    second = await stage.reused.launch(SECOND)

    assert second.identity.pid == 101
    assert waiting.trials == []


async def test_process_that_is_lost_before_its_first_request_loses_no_trial(stage: Stage) -> None:
    await stage.wait(ManualWaiting(takes=False))

    second = await stage.reused.launch(SECOND)

    assert second.identity.pid == 101
    assert not second.ended.done()
    assert stage.processes.signals == [("KILL", 100, "second")]


async def test_process_that_makes_no_request_in_time_is_killed() -> None:
    stage = Stage(handover_timeout_s=0.0)
    await stage.wait(ManualWaiting(takes=None))

    second = await stage.reused.launch(SECOND)

    assert second.identity.pid == 101
    assert stage.processes.signals == [("KILL", 100, "second")]


async def test_process_without_a_trial_ends_after_a_while() -> None:
    stage = Stage(idle_s=0.0)
    waiting = ManualWaiting()
    await stage.wait(waiting)

    await asyncio.wait_for(waiting.released.wait(), 30)

    assert stage.reused.waiting_count == 0


async def test_process_that_does_not_end_is_killed() -> None:
    stage = Stage(handover_timeout_s=0.0)
    waiting = ManualWaiting()
    await stage.wait(waiting)

    stage.reused.release("/code")
    await asyncio.wait_for(stage.processes.signalled.wait(), 30)

    assert stage.processes.signals == [("KILL", 100, "first")]


async def test_process_that_got_a_trial_is_no_longer_idle() -> None:
    stage = Stage(idle_s=0.0, handover_timeout_s=0.0)
    waiting = ManualWaiting()
    await stage.wait(waiting)

    await stage.reused.launch(SECOND)
    for _ in range(20):
        await asyncio.sleep(0)

    assert stage.processes.signals == []
    assert not waiting.released.is_set()


async def test_process_that_is_released_early_is_killed_once() -> None:
    stage = Stage(idle_s=0.0, handover_timeout_s=0.0)
    await stage.wait(ManualWaiting())

    stage.reused.release("/code")
    for _ in range(20):
        await asyncio.sleep(0)

    assert stage.processes.signals == [("KILL", 100, "first")]


async def test_process_is_killed_with_the_secret_of_its_last_trial() -> None:
    stage = Stage(handover_timeout_s=0.0)
    await stage.wait(ManualWaiting())
    second = await stage.reused.launch(SECOND)
    assert stage.reused.wait_for_next(second, ManualWaiting())

    stage.reused.release("/code")
    await asyncio.wait_for(stage.processes.signalled.wait(), 30)

    assert stage.processes.signals == [("KILL", 100, "second")]


async def test_processes_of_a_code_folder_end_with_its_interpreters(stage: Stage) -> None:
    waiting = ManualWaiting()
    await stage.wait(waiting)

    stage.reused.release("/other")
    assert not waiting.released.is_set()
    stage.reused.release("/code")

    assert waiting.released.is_set()
    assert stage.processes.released == [("/other", set()), ("/code", {100})]


async def test_caller_that_is_not_the_leader_is_not_kept(stage: Stage) -> None:
    process = await stage.reused.launch(FIRST)

    assert not stage.reused.wait_for_next(process, ManualWaiting(pid=7))
    assert not process.ended.done()


async def test_process_of_one_trial_alone_is_not_kept(stage: Stage) -> None:
    process = await stage.reused.launch(replace(FIRST, isolated=True))

    assert not stage.reused.wait_for_next(process, ManualWaiting())


async def test_process_waits_once(stage: Stage) -> None:
    process = await stage.wait(ManualWaiting())

    assert not stage.reused.wait_for_next(process, ManualWaiting())


async def test_stop_of_an_ended_trial_does_not_reach_the_next_one(stage: Stage) -> None:
    first = await stage.wait(ManualWaiting())
    second = await stage.reused.launch(SECOND)

    stage.reused.terminate(first, "first")
    stage.reused.kill(first, "first")
    assert stage.processes.signals == []
    stage.reused.terminate(second, "second")
    stage.reused.kill(second, "second")

    assert stage.processes.signals == [("TERM", 100, "second"), ("KILL", 100, "second")]


async def test_trial_whose_process_goes_on_leaves_no_processes(stage: Stage) -> None:
    first = await stage.wait(ManualWaiting())
    second = await stage.reused.launch(SECOND)

    assert not stage.reused.has_leftovers(first)
    assert stage.reused.has_leftovers(second)


async def test_the_rest_is_left_to_the_launcher(stage: Stage) -> None:
    stage.reused.release_idle(5.0)
    stage.reused.continue_stopped()

    assert stage.reused.warm_count == 1
    assert (stage.reused.kill_orphans(None), stage.reused.kill_orphans(7)) == (2, 7)
    assert stage.processes.released == [("5.0", set()), ("stopped", set())]


async def test_process_whose_trial_had_no_secret_is_killed_without_one() -> None:
    stage = Stage(handover_timeout_s=0.0)
    process = await stage.reused.launch(replace(FIRST, variables={}))
    assert stage.reused.wait_for_next(process, ManualWaiting())

    stage.reused.release("/code")
    await asyncio.wait_for(stage.processes.signalled.wait(), 30)

    assert stage.processes.signals == [("KILL", 100, "")]


async def test_process_that_has_just_ended_is_not_kept(stage: Stage) -> None:
    process = await stage.reused.launch(FIRST)
    stage.processes.started[0].ended.set_result(3)  # its trial is notified in the next turn

    kept = stage.reused.wait_for_next(process, ManualWaiting())

    assert not kept
    assert await process.ended == 3
    assert stage.reused.waiting_count == 0


async def test_variables_of_the_trial_before_are_unset(stage: Stage) -> None:
    await stage.wait(ManualWaiting())
    first = {"NNI_TRIAL_TOKEN": "second", "OF_THE_SECOND": "1"}
    second = await stage.reused.launch(replace(SECOND, variables=first))
    waiting = ManualWaiting()
    assert stage.reused.wait_for_next(second, waiting)

    await stage.reused.launch(replace(SECOND, variables={"NNI_TRIAL_TOKEN": "third"}))

    assert waiting.trials[0].unset == {"TRACEPARENT", "OF_THE_SECOND"}


async def test_process_that_ends_while_it_waits_is_not_released() -> None:
    stage, waiting = Stage(idle_s=0.0), ManualWaiting()
    await stage.wait(waiting)

    stage.processes.started[0].ended.set_result(0)
    for _ in range(10):
        await asyncio.sleep(0)

    assert not waiting.released.is_set()
    assert stage.processes.signals == []


async def test_trial_whose_end_was_not_seen_has_an_unknown_one(stage: Stage) -> None:
    process = await stage.reused.launch(FIRST)

    stage.processes.started[0].ended.cancel()

    assert await asyncio.wait_for(process.ended, 30) is None
