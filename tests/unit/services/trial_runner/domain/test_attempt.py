from svc_trial_runner.domain.attempt import AttemptLife, Order, Phase, StopCause


def running() -> AttemptLife:
    life = AttemptLife()
    life.launching()
    life.launched()
    return life


def test_undisturbed_life() -> None:
    life = AttemptLife()
    phases = [life.phase]
    life.launching()
    phases.append(life.phase)
    assert life.launched() is Order.NOTHING
    phases.append(life.phase)
    life.process_ended()
    phases.append(life.phase)
    life.read()
    phases.append(life.phase)

    assert phases == [Phase.HELD, Phase.LAUNCHING, Phase.RUNNING, Phase.READING, Phase.OVER]
    assert life.stop_cause is None


def test_stop_while_held_ends_at_once() -> None:
    life = AttemptLife()

    assert life.stop(StopCause.STOPPED) is Order.END
    assert life.phase is Phase.OVER


def test_stop_while_launching_takes_effect_when_the_process_exists() -> None:
    life = AttemptLife()
    life.launching()

    assert life.stop(StopCause.STOPPED) is Order.NOTHING
    assert life.launched() is Order.TERMINATE
    assert life.phase is Phase.STOPPING


def test_stop_while_running_terminates_once() -> None:
    life = running()

    assert life.stop(StopCause.TIME_LIMIT) is Order.TERMINATE
    assert life.stop(StopCause.STOPPED) is Order.NOTHING
    assert life.stop_cause is StopCause.TIME_LIMIT


def test_stop_after_the_natural_end_changes_nothing() -> None:
    life = running()
    life.process_ended()

    assert life.stop(StopCause.STOPPED) is Order.NOTHING
    assert life.stop_cause is None


def test_drop_silences_even_what_has_ended_or_was_stopped() -> None:
    ended = running()
    ended.process_ended()
    stopped = running()
    stopped.stop(StopCause.STOPPED)

    ended.stop(StopCause.DROPPED)
    stopped.stop(StopCause.DROPPED)

    assert ended.stop_cause is stopped.stop_cause is StopCause.DROPPED


def test_grace_kills_unless_all_is_over() -> None:
    life = running()
    life.stop(StopCause.STOPPED)

    assert life.grace_over() is Order.KILL
    life.process_ended()
    assert life.grace_over() is Order.KILL
    life.read()
    assert life.grace_over() is Order.NOTHING


def test_nothing_can_be_stopped_when_it_is_over() -> None:
    life = AttemptLife()
    life.launching()
    life.not_launched()

    assert life.stop(StopCause.STOPPED) is Order.NOTHING


def saving() -> AttemptLife:
    life = AttemptLife()
    life.launching()
    life.launched()
    life.process_ended()
    life.saving()
    return life


def test_stop_while_it_saves_gives_up_saving() -> None:
    life = saving()

    assert life.stop(StopCause.STOPPED) is Order.GIVE_UP
    assert life.stop(StopCause.LOST) is Order.NOTHING
    assert life.stop_cause is StopCause.STOPPED


def test_time_limit_means_nothing_once_the_command_has_ended() -> None:
    life = saving()

    assert life.stop(StopCause.TIME_LIMIT) is Order.NOTHING
    assert life.stop_cause is None


def test_drop_while_it_saves_silences_it() -> None:
    life = saving()
    life.stop(StopCause.STOPPED)

    life.stop(StopCause.DROPPED)
    life.read()

    assert life.stop_cause is StopCause.DROPPED
    assert life.phase is Phase.OVER
