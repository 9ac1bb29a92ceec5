"""The whole domain under random work: the folded log equals the decided state."""

import random

import pytest

from svc_common.errors import ServiceError
from svc_common.experiment_events.causes import (
    EndCause,
    EndReason,
    ExperimentCause,
    ExperimentReason,
    StopCause,
    StopReason,
)
from svc_manager.domain import events, inputs
from svc_manager.domain.decision_round import Round
from svc_manager.domain.experiment import Budget, ExperimentSettings, ExperimentState
from svc_manager.domain.reports import ExitCause, Report, ReportBody, Started
from svc_manager.domain.trial import TrialState
from svc_manager.domain.values import ParameterSource
from tests.unit.services.manager.building import CountingIds, Lab, exited, final, intermediate, lost


class Agent:
    """Makes up what an agent says about a trial, in order, and hands it over out of order."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.outbox: list[Report] = []
        self.begun: set[tuple[str, int]] = set()

    def work(self, lab: Lab) -> None:
        for trial in lab.experiment.live.values():
            key = (trial.id, trial.attempt)
            if key not in self.begun:
                self.begun.add(key)
                self.outbox.extend(self._reports_of(trial.id, trial.attempt))

    def _reports_of(self, trial_id: str, attempt: int) -> list[Report]:
        claim = f"{trial_id}-{attempt}"
        ends: list[ReportBody] = [
            exited(),
            exited(1),
            exited(None, ExitCause.STOPPED),
            lost("killed"),
        ]
        end = self.rng.choice(ends)
        bodies: list[ReportBody] = [Started(1), intermediate(0.5), final(self.rng.random()), end]
        return [Report("r1", trial_id, attempt, n, claim, x) for n, x in enumerate(bodies)]

    def deliver(self, lab: Lab) -> None:
        self.rng.shuffle(self.outbox)
        count = self.rng.randint(0, len(self.outbox))
        now, self.outbox = self.outbox[:count], self.outbox[count:]
        twice = [report for report in now if self.rng.random() < 0.2]
        lab.notification(*now, *twice)


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_words_gives_a_finished_experiment_that_its_log_repeats(seed: int) -> None:
    rng = random.Random(seed)
    lab = Lab(
        Budget(trial_concurrency=3, max_trial_number=15), ExperimentSettings(max_trial_retries=1)
    )
    agent = Agent(rng)

    for _ in range(500):
        if lab.experiment.state is ExperimentState.DONE:
            break
        lab.now_ms += rng.randint(0, 50)
        lab.answer()
        agent.work(lab)
        agent.deliver(lab)
        if rng.random() < 0.1 and lab.experiment.live:
            try:
                lab.command(inputs.KillTrial(rng.choice(list(lab.experiment.live))))
            except ServiceError:
                pytest.fail("a live trial can be killed")

    assert lab.experiment.state.name == "DONE"
    assert len(lab.experiment.trials) == 15
    assert all(not trial.live for trial in lab.experiment.trials.values())
    assert sum(lab.experiment.counts.values()) == 15
    assert lab.refolded() == lab.experiment


def test_the_counts_are_those_of_the_trials() -> None:
    lab = Lab(Budget(trial_concurrency=2))
    lab.answer()
    lab.running()

    assert lab.experiment.counts[TrialState.RUNNING] == 1
    assert lab.experiment.counts[TrialState.WAITING] == 1


def test_a_trial_that_ends_at_once_by_a_stop_keeps_the_cause_of_the_stop() -> None:
    lab = Lab()
    trial = lab.waiting()

    emitted = lab.command(inputs.KillTrial(trial.id))

    ends = [event.end for event in emitted if isinstance(event, events.TrialEnded)]
    assert ends == [EndReason(EndCause.STOPPED, stop=StopReason(StopCause.USER))]


def test_new_trial_has_a_free_id_the_next_number_and_the_pool_of_its_experiment() -> None:
    lab = Lab(settings=ExperimentSettings(pool="gpus"))
    lab.waiting()
    lab.ids = CountingIds()  # the first id is in use
    round_ = Round(lab.experiment, lab.now_ms, lab.ids, lab.callers)
    count = len(lab.experiment.trials)

    trial = round_.create_trial(7, b"p", ParameterSource.CUSTOMIZED)

    assert lab.experiment.trials[trial.id] is trial
    assert round_.events == [
        events.TrialScheduled(trial.id, count, 7, b"p", ParameterSource.CUSTOMIZED, "gpus")
    ]


def test_end_of_an_experiment_has_its_cause_in_full() -> None:
    lab = Lab()
    round_ = Round(lab.experiment, lab.now_ms, lab.ids, lab.callers)

    round_.end_experiment(ExperimentState.ERROR, ExperimentCause.ALGORITHM_GAVE_UP, "no such tuner")

    reason = ExperimentReason(ExperimentCause.ALGORITHM_GAVE_UP, "no such tuner")
    assert round_.events == [events.ExperimentEnded(ExperimentState.ERROR, reason)]
