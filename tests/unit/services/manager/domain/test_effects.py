from svc_common.experiment_events.causes import StopCause, StopReason
from svc_manager.domain import inputs
from svc_manager.domain.effects import (
    OpenListener,
    PublishTask,
    SendStop,
    WriteSummary,
    outstanding_effects,
)
from svc_manager.domain.experiment import Budget
from svc_manager.domain.state import Experiment
from tests.unit.services.manager.building import Lab, created, waits_for_gpus


def test_unclaimed_tasks_are_published_again() -> None:
    lab = Lab(Budget(trial_concurrency=3))
    lab.answer()
    lab.running()
    lab.report(lab.waiting(), 0, waits_for_gpus(), claim="c2")
    unclaimed = [trial for trial in lab.experiment.live.values() if not trial.claim_id]

    again = list(outstanding_effects(lab.experiment))

    assert again == [PublishTask(unclaimed[0].id, 1)]


def test_stops_that_were_asked_for_are_sent_again() -> None:
    lab = Lab()
    trial = lab.running()
    lab.command(inputs.KillTrial(trial.id))

    assert SendStop("r1", trial.id, 1, StopReason(StopCause.USER)) in list(
        outstanding_effects(lab.experiment)
    )


def test_an_open_port_is_opened_again() -> None:
    lab = Lab(started=False)
    lab.experiment = Experiment()
    lab.command(inputs.Create(created(), 8080, "p"))

    assert list(outstanding_effects(lab.experiment)) == [OpenListener(8080, "p")]


def test_of_a_stopped_experiment_only_the_summary_is_left_to_do() -> None:
    lab = Lab(started=False)
    lab.command(inputs.Stop())

    assert list(outstanding_effects(lab.experiment)) == [WriteSummary()]


def test_new_trial_is_published_as_its_first_attempt() -> None:
    lab = Lab(Budget(trial_concurrency=1))

    lab.answer()

    (trial,) = lab.experiment.live.values()
    assert PublishTask(trial.id, 1) in lab.effects
