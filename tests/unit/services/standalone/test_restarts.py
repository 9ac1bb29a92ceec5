from svc_standalone.restarts import DELAYS_S, HEALTHY_S, RestartState


def test_first_end_is_repaired_at_once() -> None:
    assert RestartState().ended(ran_s=100.0).delay_s == 0.0


def test_child_that_ends_again_and_again_waits_longer_up_to_a_limit() -> None:
    state = RestartState()
    delays = []
    for _ in range(len(DELAYS_S) + 2):
        state = state.ended(ran_s=0.1)
        delays.append(state.delay_s)

    assert delays == [*DELAYS_S, DELAYS_S[-1], DELAYS_S[-1]]


def test_child_that_was_healthy_begins_anew() -> None:
    state = RestartState(ends=5).ended(ran_s=HEALTHY_S)

    assert state.delay_s == 0.0
