from svc_standalone.silence import Silence


def test_silence_grows_from_look_to_look_until_the_next_sign() -> None:
    silence = Silence(step_limit_s=15.0)

    assert [silence.at(now_s, sign_s=100.0) for now_s in (100.0, 102.0, 110.0)] == [0.0, 2.0, 10.0]
    assert silence.at(112.0, sign_s=111.0) == 0.0
    assert silence.at(114.0, sign_s=111.0) == 2.0


def test_child_without_a_first_sign_is_not_silent() -> None:
    silence = Silence(step_limit_s=15.0)

    assert [silence.at(now_s, sign_s=None) for now_s in (0.0, 10.0, 1000.0)] == [0.0, 0.0, 0.0]


def test_long_time_between_two_looks_counts_little() -> None:
    silence = Silence(step_limit_s=15.0)
    silence.at(100.0, sign_s=99.0)

    assert silence.at(3700.0, sign_s=99.0) == 15.0  # the machine was stopped for an hour
    assert silence.at(3702.0, sign_s=3701.0) == 0.0
