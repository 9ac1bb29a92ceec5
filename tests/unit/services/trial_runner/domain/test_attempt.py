from svc_trial_runner.domain.attempt import AttemptStateMachine, Order, Phase, StopTrigger


def running() -> AttemptStateMachine:
    machine = AttemptStateMachine()
    machine.launching()
    machine.launched()
    return machine


def test_undisturbed_attempt_passes_all_phases() -> None:
    machine = AttemptStateMachine()
    phases = [machine.phase]
    machine.launching()
    phases.append(machine.phase)
    assert machine.launched() is Order.NOTHING
    phases.append(machine.phase)
    machine.process_ended()
    phases.append(machine.phase)
    machine.read()
    phases.append(machine.phase)

    assert phases == [Phase.HELD, Phase.LAUNCHING, Phase.RUNNING, Phase.READING, Phase.OVER]
    assert machine.stop_trigger is None


def test_stop_while_held_ends_at_once() -> None:
    machine = AttemptStateMachine()

    assert machine.stop(StopTrigger.STOPPED) is Order.END
    assert machine.phase is Phase.OVER


def test_stop_while_launching_takes_effect_when_the_process_exists() -> None:
    machine = AttemptStateMachine()
    machine.launching()

    assert machine.stop(StopTrigger.STOPPED) is Order.NOTHING
    assert machine.launched() is Order.TERMINATE
    assert machine.phase is Phase.STOPPING


def test_stop_while_running_terminates_once() -> None:
    machine = running()

    assert machine.stop(StopTrigger.TIME_LIMIT) is Order.TERMINATE
    assert machine.stop(StopTrigger.STOPPED) is Order.NOTHING
    assert machine.stop_trigger is StopTrigger.TIME_LIMIT


def test_stop_after_the_natural_end_changes_nothing() -> None:
    machine = running()
    machine.process_ended()

    assert machine.stop(StopTrigger.STOPPED) is Order.NOTHING
    assert machine.stop_trigger is None


def test_drop_suppresses_the_report_of_an_ended_or_stopped_attempt() -> None:
    ended = running()
    ended.process_ended()
    stopped = running()
    stopped.stop(StopTrigger.STOPPED)

    ended.stop(StopTrigger.DROPPED)
    stopped.stop(StopTrigger.DROPPED)

    assert ended.stop_trigger is stopped.stop_trigger is StopTrigger.DROPPED


def test_grace_kills_unless_all_is_over() -> None:
    machine = running()
    machine.stop(StopTrigger.STOPPED)

    assert machine.grace_over() is Order.KILL
    machine.process_ended()
    assert machine.grace_over() is Order.KILL
    machine.read()
    assert machine.grace_over() is Order.NOTHING


def test_nothing_can_be_stopped_when_it_is_over() -> None:
    machine = AttemptStateMachine()
    machine.launching()
    machine.not_launched()

    assert machine.phase is Phase.OVER
    assert machine.stop(StopTrigger.STOPPED) is Order.NOTHING
    assert machine.stop_trigger is None


def saving() -> AttemptStateMachine:
    machine = AttemptStateMachine()
    machine.launching()
    machine.launched()
    machine.process_ended()
    machine.saving()
    return machine


def test_stop_while_it_saves_gives_up_saving() -> None:
    machine = saving()

    assert machine.stop(StopTrigger.STOPPED) is Order.GIVE_UP
    assert machine.stop(StopTrigger.LOST) is Order.NOTHING
    assert machine.stop_trigger is StopTrigger.STOPPED


def test_time_limit_means_nothing_once_the_command_has_ended() -> None:
    machine = saving()

    assert machine.stop(StopTrigger.TIME_LIMIT) is Order.NOTHING
    assert machine.stop_trigger is None


def test_drop_while_saving_suppresses_the_report() -> None:
    machine = saving()
    machine.stop(StopTrigger.STOPPED)

    machine.stop(StopTrigger.DROPPED)
    machine.read()

    assert machine.stop_trigger is StopTrigger.DROPPED
    assert machine.phase is Phase.OVER
