import pytest

from svc_common import subjects
from svc_common.errors import InvalidArgumentError


def test_subjects_are_parsed_back() -> None:
    assert subjects.experiment_of_event(subjects.event_subject("e1")) == "e1"
    assert subjects.parse_inbox(subjects.inbox_subject("e1", "runner-1")) == ("e1", "runner-1")
    assert subjects.pool_of_task(subjects.task_subject("local")) == "local"
    assert subjects.parse_log(subjects.log_subject("e1", "t1")) == ("e1", "t1")
    assert subjects.runner_of_presence(subjects.presence_subject("r1")) == "r1"
    assert subjects.pool_of_subject(subjects.pool_need_subject("p1")) == "p1"
    assert subjects.pool_of_subject(subjects.pool_state_subject("p1")) == "p1"


def test_names_are_those_of_the_architecture() -> None:
    assert subjects.event_subject("e") == "nni.experiment.e.event"
    assert subjects.inbox_filter("e") == "nni.inbox.e.*"
    assert subjects.task_subject("p") == "nni.task.p"
    assert subjects.log_filter("e") == "nni.log.e.*"
    assert subjects.control_subject("r") == "nni.control.r"
    assert subjects.live_subject("e") == "nni.live.e"
    assert subjects.pool_consumer("p") == "pool-p"
    assert subjects.retry_subject("p") == "nni.retry.p"
    assert subjects.retry_consumer("p") == "retry-p"
    assert subjects.pool_need_subject("p") == "nni.pool.p.need"
    assert subjects.pool_state_subject("p") == "nni.pool.p.state"
    assert subjects.pool_definition_subject("p") == "nni.pool.p.definition"
    assert subjects.pool_check_subject("p") == "nni.pool.p.check"
    assert subjects.pool_problems_subject("p") == "nni.pool.p.problems"


def test_copies_of_pools_have_the_pattern_of_their_messages() -> None:
    assert subjects.pool_copies(subjects.ALL_POOL_NEEDS) == "nni.copy.pool.*.need"
    assert subjects.pool_copies(subjects.ALL_POOLS) == "nni.copy.pool.*.*"
    assert subjects.pool_copies(subjects.pool_state_subject("p")) == "nni.copy.pool.p.state"


@pytest.mark.parametrize("bad", ["nni.pool.p", "nni.pool.>", "nni.pool.a>.need", ">", "nni.pool.*"])
def test_pattern_of_no_pool_has_no_copies(bad: str) -> None:
    with pytest.raises(InvalidArgumentError):
        subjects.pool_copies(bad)


@pytest.mark.parametrize("bad", ["", "a.b", "a b", "*", ">", "-a", "a\n", "ä", "a" * 129])
def test_id_that_is_no_token_is_refused(bad: str) -> None:
    with pytest.raises(InvalidArgumentError, match="experiment_id must be 1 to 128"):
        subjects.event_subject(bad)


@pytest.mark.parametrize("foreign", ["nni.experiment.e", "nni.experiment.a.b.event", "x"])
def test_foreign_subject_is_refused(foreign: str) -> None:
    with pytest.raises(InvalidArgumentError):
        subjects.experiment_of_event(foreign)
