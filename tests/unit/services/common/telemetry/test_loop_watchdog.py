"""The watchdog of event loops."""

import asyncio
import subprocess
import sys
import threading

from svc_common.telemetry.loop_watchdog import LoopWatchdog
from svc_common.telemetry.metrics import Registry


class ManualTimes:
    """Times that a test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.cpu_s = 0.0

    def watchdog(self) -> LoopWatchdog:
        return LoopWatchdog(0.05, lambda: self.now_s, lambda: self.cpu_s)


def test_turn_within_the_limit_is_no_hold() -> None:
    times = ManualTimes()
    watchdog = times.watchdog()

    watchdog.turn_began()
    times.now_s += 0.05
    watchdog.turn_ended()

    assert watchdog.holds == 0


def test_turn_beyond_the_limit_is_a_hold_with_its_cpu_time() -> None:
    times = ManualTimes()
    watchdog = times.watchdog()

    watchdog.turn_began()
    times.now_s, times.cpu_s = 0.2, 0.125
    watchdog.turn_ended()

    assert watchdog.holds == 1
    assert watchdog.last is not None
    assert (watchdog.last.held_s, watchdog.last.cpu_s) == (0.2, 0.125)


def test_cpu_time_is_read_every_few_milliseconds_and_not_at_each_turn() -> None:
    times, readings = ManualTimes(), 0

    def cpu_s() -> float:
        nonlocal readings
        readings += 1
        return times.now_s

    watchdog = LoopWatchdog(0.05, lambda: times.now_s, cpu_s)
    for _ in range(1000):
        watchdog.turn_began()
        times.now_s += 0.0001
        watchdog.turn_ended()
    times.now_s += 0.001
    watchdog.turn_began()
    times.now_s += 0.2
    watchdog.turn_ended()

    assert readings <= 0.1 / 0.02 + 2
    assert watchdog.last is not None
    assert watchdog.last.cpu_s <= watchdog.last.held_s


def test_time_in_which_the_loop_waits_is_no_hold() -> None:
    times = ManualTimes()
    watchdog = times.watchdog()
    watchdog.turn_began()
    watchdog.turn_ended()

    times.now_s += 10.0
    watchdog.turn_ended()

    assert watchdog.holds == 0


def test_hold_names_the_line_that_held_the_loop() -> None:
    times = ManualTimes()
    watchdog = times.watchdog()
    watchdog.start()
    try:
        watchdog.turn_began()
        times.now_s = 1.0
        hold_until_looked_at(watchdog)
        watchdog.turn_ended()
    finally:
        watchdog.stop()

    assert watchdog.last is not None
    assert "hold_until_looked_at" in watchdog.last.at


def hold_until_looked_at(watchdog: LoopWatchdog) -> None:
    looking = threading.Thread(target=watchdog.look)
    looking.start()
    looking.join()


def test_metrics_count_holds_and_observe_their_time() -> None:
    times, registry = ManualTimes(), Registry()
    watchdog = times.watchdog()
    watchdog.register(registry)

    watchdog.turn_began()
    times.now_s = 0.3
    watchdog.turn_ended()
    text = registry.render()

    assert "nni_loop_holds_total 1.0" in text
    assert 'nni_loop_held_seconds_bucket{le="0.5"} 1.0' in text


def test_loop_with_the_selector_counts_callbacks_that_compute() -> None:
    clock = ManualTimes()
    watchdog = clock.watchdog()

    async def compute() -> None:
        await asyncio.sleep(0)
        clock.now_s += 0.4
        await asyncio.sleep(0)
        clock.now_s += 0.01

    with asyncio.Runner(
        loop_factory=lambda: asyncio.SelectorEventLoop(watchdog.selector())
    ) as runner:
        runner.run(compute())

    assert watchdog.holds == 1


LOOKS_OBSERVED = """
import sys, threading
from svc_common.telemetry.loop_watchdog import LoopWatchdog

events = []
sys.addaudithook(lambda name, _: events.append(name))
now_s = 0.0
watchdog = LoopWatchdog(0.05, lambda: now_s)
watchdog.start()
watchdog.turn_began()
now_s = 1.0
looking = threading.Thread(target=watchdog.look)
looking.start()
looking.join()
watchdog.turn_ended()
watchdog.stop()
print(bool(watchdog.last.at), "sys._current_frames" in events)
"""


def test_look_makes_no_frame_objects_of_a_thread_that_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOKS_OBSERVED], stdout=subprocess.PIPE, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "True False"
