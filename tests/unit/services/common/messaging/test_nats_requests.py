"""Pending requests: answered, refused, overdue, lost."""

import pytest

from svc_common.errors import PermissionDeniedError
from svc_common.messaging.nats_requests import (
    DisconnectedError,
    NoRespondersError,
    RequestTable,
    RequestTimeoutError,
)


async def test_answer_goes_to_the_request_of_its_token() -> None:
    table = RequestTable()
    token, first = table.add(60.0, "a")
    _, second = table.add(60.0, "a")

    table.complete(token, {"Name": "value"}, b"payload")

    assert await first == ({"Name": "value"}, b"payload")
    assert not second.done()
    table.fail_all()


async def test_second_answer_and_unknown_token_are_dropped() -> None:
    table = RequestTable()
    token, answer = table.add(60.0, "a")

    table.complete(token, {}, b"first")
    table.complete(token, {}, b"second")
    table.complete("unknown", {}, b"third")

    assert (await answer)[1] == b"first"


async def test_answer_to_a_cancelled_request_is_dropped() -> None:
    table = RequestTable()
    token, answer = table.add(60.0, "a")
    answer.cancel()

    table.complete(token, {}, b"late")

    assert answer.cancelled()


async def test_status_503_means_that_the_subject_has_no_subscriber() -> None:
    table = RequestTable()
    token, answer = table.add(60.0, "a")

    table.complete(token, {"Status": "503"}, b"")

    with pytest.raises(NoRespondersError):
        await answer


async def test_forbidden_subject_fails_its_requests_in_any_case_of_letters() -> None:
    table = RequestTable()
    _, forbidden = table.add(60.0, "nni.Task.A")
    _, allowed = table.add(60.0, "nni.Task.AB")

    table.forbid("nni.task.a")

    with pytest.raises(PermissionDeniedError, match=r"to publish to nni\.Task\.A"):
        await forbidden
    assert not allowed.done()
    table.fail_all()


async def test_lost_connection_fails_every_request() -> None:
    table = RequestTable()
    answers = [table.add(60.0, "a")[1] for _ in range(3)]

    table.fail_all()

    for answer in answers:
        with pytest.raises(DisconnectedError):
            await answer


async def test_overdue_requests_fail_and_others_go_on() -> None:
    table = RequestTable(sweep_interval_s=0.001)
    _, patient = table.add(60.0, "a")
    _, overdue = table.add(0.0, "a")

    with pytest.raises(RequestTimeoutError):
        await overdue

    assert not patient.done()
    _, later = table.add(0.0, "a")
    with pytest.raises(RequestTimeoutError):
        await later
    table.fail_all()
