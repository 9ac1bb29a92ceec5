"""Limits of a start."""

from collections.abc import Iterable, Mapping

from svc_standalone.start_progress import StartProgress

Look = tuple[float, int, Mapping[int, float]]


def given_up(looks: Iterable[Look]) -> float | None:
    """Return the time at which a start is given up, of 60 s without progress and 300 s in all."""
    progress = StartProgress(60.0, 300.0, 8.0, 0.0)
    return next((look[0] for look in looks if progress.is_over(*look)), None)


def test_start_without_progress_ends_after_its_limit() -> None:
    assert given_up((now_s, 1, {7: 0.2}) for now_s in range(0, 400, 2)) == 60


def test_child_that_becomes_ready_is_progress() -> None:
    assert given_up((now_s, now_s // 40, {}) for now_s in range(0, 200, 2)) is None


def test_cpu_time_of_starting_children_is_progress_up_to_the_limit_of_all() -> None:
    assert given_up((now_s, 0, {7: now_s / 100}) for now_s in range(0, 400, 2)) == 300


def test_little_cpu_time_of_waiting_children_is_none() -> None:
    assert (
        given_up((now_s, 0, {7: now_s / 1000, 8: now_s / 1000}) for now_s in range(0, 400, 2)) == 60
    )


def test_time_of_a_child_that_was_started_anew_counts_from_zero() -> None:
    looks = [(0.0, 0, {7: 5.0}), (50.0, 0, {8: 0.2}), (58.0, 0, {8: 0.6}), (66.0, 0, {8: 0.7})]
    progress = StartProgress(16.0, 300.0, 100.0, 0.0)

    assert [progress.is_over(*look) for look in looks] == [False, True, False, False]


def test_supervisor_that_was_stopped_itself_gives_its_children_their_time() -> None:
    assert given_up([(2.0, 0, {}), (200.0, 0, {}), (208.0, 0, {})]) is None


def test_first_look_without_a_ready_child_is_no_progress() -> None:
    assert given_up((now_s, 0, {}) for now_s in range(1, 400)) == 60


def test_half_a_second_of_cpu_time_is_progress() -> None:
    no_cpu: dict[int, float] = {}
    still = [(float(now_s), 0, {7: 0.5}) for now_s in range(30, 100)]

    assert given_up([(7.0 * step, 0, no_cpu) for step in range(4)] + still) == 90


def test_process_id_that_is_used_again_takes_no_progress_from_others() -> None:
    progress = StartProgress(16.0, 300.0, 8.0, 0.0)
    looks = [(8.0, 0, {7: 5.0}), (16.0, 0, {7: 0.0, 8: 0.6}), (24.0, 0, {}), (32.0, 0, {})]

    assert [progress.is_over(*look) for look in looks] == [False, False, False, True]
