"""Which blobs an agent of a pool may transfer."""

import pytest

from svc_manager.domain.blob_access import (
    ALLOWED,
    PoolAgent,
    decide_download,
    decide_upload,
    serves_experiment,
    uploaded_key,
)
from svc_manager.domain.experiment import ExperimentSettings
from svc_manager.domain.trial import Trial, TrialState
from tests.unit.services.manager.building import Lab, lost

OWN, SECOND = PoolAgent("r1", "gpus"), PoolAgent("r2", "gpus")
FOREIGN = PoolAgent("r1", "exp-e9")
CODE, OTHER = "c" * 64, "d" * 64


def lab_of_pool() -> Lab:
    return Lab(settings=ExperimentSettings(pool="gpus"))


def download(agent: PoolAgent, trial: Trial | None, sha256: str = CODE) -> bool:
    return decide_download(agent, trial, sha256, {CODE}, uploaded=False) == ALLOWED


@pytest.mark.parametrize(
    ("pool", "experiment_id", "served"),
    [("exp-e1", "e1", True), ("exp-e1", "e2", False), ("gpus", "e2", True)],
)
def test_a_pool_of_one_experiment_serves_no_other(
    pool: str, experiment_id: str, served: bool
) -> None:
    assert serves_experiment(PoolAgent("a", pool), experiment_id) is served


def test_what_the_order_names_is_for_all_agents_of_the_pool_until_one_has_claimed_it() -> None:
    lab = lab_of_pool()
    trial = lab.waiting()
    before = [download(OWN, trial), download(SECOND, trial), download(FOREIGN, trial)]

    trial = lab.running(runner="r1")

    assert before == [True, True, False]
    assert [download(OWN, trial), download(SECOND, trial)] == [True, False]


def test_another_blob_and_another_trial_are_refused_with_the_reason() -> None:
    trial = lab_of_pool().waiting()

    other = decide_download(OWN, trial, OTHER, {CODE}, uploaded=False)
    none = decide_download(OWN, None, CODE, {CODE}, uploaded=False)

    assert other.refusal == f"no order of trial {trial.id} names this blob"
    assert none.refusal == "pool gpus has no such trial"
    assert not other.later
    assert not none.later


def test_a_checkpoint_of_the_experiment_may_be_downloaded() -> None:
    trial = lab_of_pool().waiting()

    assert decide_download(OWN, trial, OTHER, {CODE}, uploaded=True) == ALLOWED
    assert decide_download(FOREIGN, trial, OTHER, {CODE}, uploaded=True) != ALLOWED


def test_nothing_is_downloaded_for_a_trial_that_has_ended() -> None:
    lab = lab_of_pool()
    trial = lab.running(runner="r1")
    lab.finish(trial)

    refused = decide_download(OWN, trial, CODE, {CODE}, uploaded=False)
    assert trial.state is TrialState.SUCCEEDED
    assert refused.refusal == f"trial {trial.id} has ended, or another agent has it"
    assert not refused.later


def test_the_agent_that_has_claimed_an_attempt_stores_what_it_makes() -> None:
    lab = lab_of_pool()
    trial = lab.running(runner="r1")
    live = [decide_upload(agent, trial, 1) == ALLOWED for agent in (OWN, SECOND, FOREIGN)]

    lab.finish(trial)

    ended = [decide_upload(agent, trial, 1) == ALLOWED for agent in (OWN, SECOND, FOREIGN)]
    assert live == ended == [True, False, False]


def test_an_upload_before_the_claim_was_read_may_be_tried_again() -> None:
    trial = lab_of_pool().waiting()

    decision = decide_upload(OWN, trial, 1)

    assert decision.later
    assert "claimed" in decision.refusal
    assert not decide_upload(FOREIGN, trial, 1).later


def test_a_lost_attempt_is_of_the_agent_that_had_it() -> None:
    lab = lab_of_pool()
    trial = lab.running(runner="r1")
    lab.report(trial, 1, lost("gone"))
    lab.running(claim="second", runner="r2")

    assert trial.attempt == 2
    assert decide_upload(OWN, trial, 1) == ALLOWED
    assert decide_upload(SECOND, trial, 1) != ALLOWED
    assert decide_upload(OWN, trial, 2) != ALLOWED
    assert decide_upload(SECOND, trial, 2) == ALLOWED
    refused = decide_upload(OWN, trial, 3)
    assert refused.refusal == f"attempt 3 of trial {trial.id} is not of agent r1"
    assert not refused.later


def test_a_trial_that_ended_before_its_start_was_reported_is_of_its_pool() -> None:
    trial = lab_of_pool().waiting()
    trial.change(TrialState.USER_CANCELED)

    assert decide_upload(SECOND, trial, 1) == ALLOWED
    assert decide_upload(FOREIGN, trial, 1) != ALLOWED


def test_records_of_uploads_have_the_experiment_in_their_key() -> None:
    assert uploaded_key("e1", CODE) == f"uploaded/e1/{CODE}"
