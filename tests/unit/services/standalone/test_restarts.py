import pytest

from svc_standalone.restarts import HEALTHY_S, RestartState


def test_first_end_has_no_delay() -> None:
    assert RestartState().ended(ran_s=100.0).delay_s == 0.0


def test_delay_grows_with_each_end_up_to_a_limit() -> None:
    state = RestartState()
    delays = []
    for _ in range(8):
        state = state.ended(ran_s=0.1)
        delays.append(state.delay_s)

    assert delays == [0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0]


def test_delay_begins_anew_after_a_healthy_run() -> None:
    state = RestartState(ends=5).ended(ran_s=HEALTHY_S)

    assert state.delay_s == 0.0


@pytest.mark.parametrize(("ran_s", "delay_s"), [(29.9, 5.0), (30.0, 0.0)])
def test_run_of_thirty_seconds_is_healthy(ran_s: float, delay_s: float) -> None:
    assert RestartState(ends=9).ended(ran_s).delay_s == delay_s


def test_child_that_has_not_ended_starts_without_delay() -> None:
    assert RestartState().delay_s == 0.0


def test_end_of_a_healthy_run_is_the_first_of_the_new_row() -> None:
    assert RestartState(ends=5).ended(ran_s=HEALTHY_S).ended(ran_s=0.1).delay_s == 0.1
