from svc_trial_runner.fleet.adapters.isolated.restarts import RestartBackoff


def test_first_end_delays_no_start() -> None:
    backoff = RestartBackoff().after_end(started_s=0.0, ended_s=1.0)

    assert backoff.delay_s(1.0) == 0


def test_delays_double_up_to_the_longest() -> None:
    backoff = RestartBackoff()
    delays = []
    for _ in range(10):
        backoff = backoff.after_end(started_s=5.0, ended_s=5.0)
        delays.append(backoff.delay_s(5.0))

    assert delays[:5] == [0, 1, 2, 4, 8]
    assert delays[5:8] == [16, 32, 60]
    assert delays[-1] == 60


def test_delay_is_over_after_its_time() -> None:
    backoff = RestartBackoff().after_end(0.0, 0.0).after_end(0.0, 0.0)

    assert backoff.delay_s(0.25) == 0.75
    assert backoff.delay_s(2.0) == 0


def test_process_that_has_run_for_long_begins_the_count_anew() -> None:
    backoff = RestartBackoff().after_end(0.0, 0.0).after_end(0.0, 0.0)

    assert backoff.after_end(90.0, 150.0).ends == 1
    assert backoff.after_end(90.0, 149.75).ends == 3


def test_process_that_has_not_ended_may_start_now() -> None:
    assert RestartBackoff().delay_s(0.0) == 0
