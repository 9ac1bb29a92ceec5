"""Defaults of what attempts share."""

from tests.unit.services.trial_runner.conftest import Bench


async def test_end_by_a_handled_signal_waits_less_than_one_by_term(bench: Bench) -> None:
    times = bench.dependencies

    # Failures are frequent, and a person waits for them; a notice comes when both are long over.
    assert 0 < times.handled_signal_notice_s < times.shutdown_notice_s
    assert times.shutdown_notice_s < times.waiting_notice_after_s
    assert (times.waiting_notice_after_s, times.shutdown_notice_s) == (3.0, 0.5)


async def test_what_only_some_agents_have_is_missing(bench: Bench) -> None:
    made = bench.dependencies

    assert (made.telemetry, made.live, made.resources, made.platform) == (None, None, None, "")
