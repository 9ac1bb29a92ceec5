"""Registry of experiment sessions."""

from svc_common.errors import UnavailableError
from tests.support.scripted_manager import ScriptedManager, experiment_ended, named
from tests.unit.services.dispatcher.sessions.conftest import SPACE, Bench, turns


async def test_session_that_fails_unexpectedly_is_started_again_after_a_pause(
    bench: Bench,
) -> None:
    bench.launcher.failure = RuntimeError("a defect")
    await bench.manager.create(SPACE, tuner=named("Random"))
    await turns(lambda: bench.clock.sleepers)

    launched = bench.launcher.launched
    bench.clock.advance(2.0)
    started = await bench.manager.received("algorithm_started")

    assert launched == 1
    assert started.generation == 1


async def test_failure_of_one_session_does_not_delay_another(bench: Bench) -> None:
    bench.launcher.failure = RuntimeError("a defect")
    await bench.manager.create(SPACE, tuner=named("Random"))
    await turns(lambda: bench.clock.sleepers)
    other = ScriptedManager(bench.bus, "other", bench.manager.log_directory.parents[1])

    await other.create(SPACE, tuner=named("Random"))
    await turns(lambda: bench.launcher.launched == 2)

    assert bench.clock.sleepers  # the failed session is still in its pause


async def test_experiment_that_ends_closes_its_host_and_may_be_resumed(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("Random"))
    await bench.manager.received("algorithm_started")

    await bench.manager.append(experiment_ended())
    await turns(lambda: bench.launcher.closed == 1)
    await bench.manager.create(SPACE, generation=2, tuner=named("Random"))

    resumed = await bench.manager.received("algorithm_started", lambda m: m.generation == 2)
    assert resumed.generation == 2
    assert bench.launcher.launched == 2


async def test_unavailable_server_is_no_failure_of_a_session(bench: Bench) -> None:
    bench.launcher.failure = UnavailableError("the server is away")
    await bench.manager.create(SPACE, tuner=named("Random"))

    await turns(lambda: bench.launcher.launched == 2)

    assert (await bench.manager.received("algorithm_started")).generation == 1
