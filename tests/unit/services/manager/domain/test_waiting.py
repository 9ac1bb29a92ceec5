from svc_common.experiment_events.causes import LossCause, LossReason, WaitCause, WaitReason
from svc_manager.domain import events, inputs
from svc_manager.domain.experiment import Budget
from svc_manager.domain.failed_starts import HOLD_AFTER, LONGEST_DELAY_MS
from svc_manager.domain.reports import Lost, Waits
from svc_manager.domain.waiting import waiting_for
from tests.unit.services.manager.building import Lab, waits_for_gpus
from tests.unit.services.manager.domain.shared_study import ask, study_lab

AWAY = WaitReason(WaitCause.BLOB, object="room", detail="the store is away")


def test_a_new_experiment_waits_for_its_algorithm() -> None:
    assert "algorithm to start" in waiting_for(Lab(started=False).experiment, 1)


def test_a_running_experiment_without_suggestions_waits_for_the_algorithm() -> None:
    assert waiting_for(Lab().experiment, 1) == "waiting for the algorithm"


def test_delay_of_the_algorithm_is_shown_until_its_next_event() -> None:
    lab, unbuilt = Lab(), Lab(started=False)
    waits = events.AlgorithmWaits(1, "no space to store the blob")
    lab.notification(waits)
    unbuilt.notification(waits)

    starting = "waiting for the algorithm to start: no space to store the blob"
    assert waiting_for(lab.experiment, 1) == "waiting for the algorithm: no space to store the blob"
    assert waiting_for(unbuilt.experiment, 1) == starting

    lab.notification(events.AlgorithmFailed("call", "Traceback", (1, 0), skipped=True))

    assert waiting_for(lab.experiment, 1) == "waiting for the algorithm"


def test_experiment_without_trials_waits_for_the_tuner_that_takes_over() -> None:
    lab = Lab()
    lab.command(inputs.ChangeTuner(b"tuner"))

    assert waiting_for(lab.experiment, 1) == "waiting for the algorithm"


def test_trials_without_an_agent_wait_for_one() -> None:
    lab = Lab(Budget(trial_concurrency=3))
    lab.answer()

    assert waiting_for(lab.experiment, 0) == "3 trials wait for an agent: none is connected"


def test_one_trial_is_written_in_the_singular() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    lab.answer()

    assert waiting_for(lab.experiment, 0) == "1 trial waits for an agent: none is connected"


def test_the_reason_of_an_agent_is_passed_on() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    lab.report(lab.waiting(), 0, waits_for_gpus())

    assert waiting_for(lab.experiment, 1) == "waiting for 1 GPU"


def test_trials_of_a_silent_agent_are_named() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    lab.running()
    lab.notification(inputs.AgentSilent("r1"))

    assert "is silent" in waiting_for(lab.experiment, 1)


def test_an_experiment_that_is_stopping_waits_for_its_trials() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    lab.running()
    lab.command(inputs.Stop())

    assert waiting_for(lab.experiment, 1) == "waiting for 1 trial to end"


def test_what_runs_or_is_done_waits_for_nothing() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_trial_number=1))
    trial = lab.running()
    assert waiting_for(lab.experiment, 1) == ""

    lab.finish(trial)

    assert waiting_for(lab.experiment, 0) == ""


def test_running_trials_that_wait_for_bytes_say_why() -> None:
    lab = Lab()
    first, second = lab.running(claim="a"), lab.running(claim="b")
    lab.report(first, 1, Waits(AWAY), claim="a")
    one_runs = waiting_for(lab.experiment, 1)

    lab.report(second, 1, Waits(AWAY), claim="b")

    assert one_runs == ""
    assert waiting_for(lab.experiment, 1) == "waiting for room: the store is away"


FULL = Lost(LossReason(LossCause.NOT_STARTED, detail="No space left on device"))


def failing(lab: Lab, failures: int) -> Lab:
    """Let starts of the first trial fail."""
    for _ in range(failures):
        lab.now_ms += LONGEST_DELAY_MS
        lab.notification(inputs.Tick())
        lab.report(lab.waiting(), 0, FULL)
    return lab


def test_a_failed_start_is_named() -> None:
    lab = failing(Lab(Budget(trial_concurrency=1)), 2)

    assert waiting_for(lab.experiment, 1) == (
        "waiting for its environment (start failed 2 times): No space left on device"
    )


def test_an_experiment_that_holds_names_the_failure_of_its_environment() -> None:
    lab = failing(Lab(Budget(trial_concurrency=1)), HOLD_AFTER + 1)

    assert waiting_for(lab.experiment, 1) == (
        "waiting for the environment to work again: 6 starts of trials in a row have failed, "
        "last: No space left on device"
    )


def test_reason_of_the_platform_is_named_for_trials_without_an_agent() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    lab.answer()
    refused = WaitReason(WaitCause.PLATFORM, detail="login refused", remedy="give a password")

    text = waiting_for(lab.experiment, 0, refused)

    assert text == "1 trial waits for an agent: login refused; give a password"


def test_last_trials_of_an_experiment_wait_for_an_agent_too() -> None:
    lab = Lab(Budget(trial_concurrency=2, max_trial_number=2))
    lab.answer()

    assert lab.experiment.state.name == "NO_MORE_TRIAL"
    assert waiting_for(lab.experiment, 0) == "2 trials wait for an agent: none is connected"


def test_experiment_with_a_running_trial_does_not_wait_for_the_algorithm() -> None:
    lab = Lab(Budget(trial_concurrency=2))
    lab.answer(deferred=1)

    lab.running()

    assert lab.experiment.algorithm.outstanding == 1
    assert waiting_for(lab.experiment, 1) == ""


def test_shared_study_waits_for_a_caller_and_then_for_the_algorithm() -> None:
    lab = study_lab()
    before = waiting_for(lab.experiment, 0)

    ask(lab, "ask-1")
    asked = waiting_for(lab.experiment, 0)
    lab.answer()

    assert before == "waiting for a caller to ask for a trial"
    assert asked == "waiting for the algorithm"
    assert waiting_for(lab.experiment, 0) == ""


def test_at_most_three_different_delays_are_named() -> None:
    lab = Lab(Budget(trial_concurrency=4))
    lab.answer()
    for count, trial in enumerate(lab.experiment.live.values(), 1):
        lab.report(trial, 0, waits_for_gpus(count))

    assert waiting_for(lab.experiment, 1) == (
        "waiting for 1 GPU; waiting for 2 GPUs; waiting for 3 GPUs"
    )
