import json
import math

import pytest

from svc_trial_runner.domain.channel import (
    LINE_LIMIT_BYTES,
    BrokenChannelError,
    ChannelError,
    CheckpointRequest,
    Hello,
    NextRequest,
    ParametersRequest,
    Report,
    next_trial_reply,
    parse_request,
    refusal,
    reply,
)


def test_hello_is_parsed() -> None:
    assert parse_request(b'{"op":"hello","token":"t","pid":5}') == Hello("t", 5)


def test_pid_may_be_missing() -> None:
    assert parse_request(b'{"op":"hello","token":"t"}') == Hello("t", 0)


def test_request_for_parameters_is_parsed() -> None:
    assert parse_request(b'{"op":"parameters"}') == ParametersRequest(0)
    assert parse_request(b'{"op":"parameters","parameter_index":2}') == ParametersRequest(2)


def test_report_is_parsed() -> None:
    line = b'{"op":"report","type":"FINAL","sequence":2,"value":{"default":1}}'

    assert parse_request(line) == Report(True, 2, {"default": 1}, len(line))


def test_first_report_has_number_zero() -> None:
    request = parse_request(b'{"op":"report","type":"PERIODICAL","sequence":0,"value":1}')

    assert isinstance(request, Report)
    assert request.sequence == 0


def test_report_needs_no_number() -> None:
    request = parse_request(b'{"op":"report","type":"PERIODICAL","value":null}')

    assert isinstance(request, Report)
    assert request.sequence is None
    assert request.value is None


@pytest.mark.claim("platform", 26)
def test_not_a_number_is_a_value() -> None:
    request = parse_request(b'{"op":"report","type":"FINAL","value":[NaN,-Infinity]}')

    assert isinstance(request, Report)
    assert math.isnan(request.value[0])
    assert request.value[1] == -math.inf


@pytest.mark.parametrize("line", [b"hello", b"[1]", b'{"op":', b"\xff\xfe", b"[" * 100_000])
def test_line_that_is_no_json_object_breaks_the_channel(line: bytes) -> None:
    with pytest.raises(BrokenChannelError):
        parse_request(line)


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b'{"op":"dance"}',
        b'{"op":"parameters","parameter_index":-1}',
        b'{"op":"parameters","parameter_index":"first"}',
        b'{"op":"hello"}',
        b'{"op":"hello","token":5}',
        b'{"op":"hello","token":"t","pid":"5"}',
        b'{"op":"report","value":1}',
        b'{"op":"report","type":"LAST","value":1}',
        b'{"op":"report","type":["FINAL"],"value":1}',
        b'{"op":"report","type":"FINAL"}',
        b'{"op":"report","type":"FINAL","value":1,"sequence":-1}',
        b'{"op":"report","type":"FINAL","value":1,"sequence":true}',
    ],
)
def test_wrong_request_is_refused_and_the_channel_stays(line: bytes) -> None:
    with pytest.raises(ChannelError) as caught:
        parse_request(line)

    assert not isinstance(caught.value, BrokenChannelError)


def test_answers_are_lines() -> None:
    assert reply(x=1).endswith(b"\n")
    assert json.loads(reply(x=1)) == {"ok": True, "x": 1}
    assert json.loads(refusal("no")) == {"ok": False, "error": "no"}


def test_request_for_the_next_trial_is_parsed() -> None:
    assert parse_request(b'{"op":"next"}') == NextRequest()


def test_reply_with_the_next_trial_names_folder_and_variables() -> None:
    line = next_trial_reply("/code", {"NNI_TRIAL_JOB_ID": "b"}, {"TRACEPARENT", "A"})

    assert json.loads(line) == {
        "ok": True,
        "next": {
            "cwd": "/code",
            "environment": {"NNI_TRIAL_JOB_ID": "b"},
            "unset": ["A", "TRACEPARENT"],
        },
    }
    assert line.endswith(b"\n")


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (b'{"op":"checkpoint"}', None),
        (b'{"op":"checkpoint","step":-7}', -7),
        (b'{"op":"checkpoint","step":9007199254740992}', 2**53),
        (b'{"op":"checkpoint","step":-9007199254740992}', -(2**53)),
    ],
)
def test_checkpoint_has_the_step_that_the_trial_names(line: bytes, step: int | None) -> None:
    assert parse_request(line) == CheckpointRequest(step)


@pytest.mark.parametrize("step", ["1.5", '"7"', "true", "9007199254740993", "[]"])
def test_step_that_is_no_integer_of_json_is_refused(step: str) -> None:
    with pytest.raises(ChannelError, match="step must be an integer"):
        parse_request(f'{{"op":"checkpoint","step":{step}}}'.encode())


def test_longest_line_is_that_of_the_documented_protocol() -> None:
    assert LINE_LIMIT_BYTES == 1_004_096, "a value of 1,000,000 bytes and 4,096 bytes more"


def test_secret_of_a_trial_is_not_shown() -> None:
    assert "hidden" not in str(Hello("hidden", 5))


def test_trial_has_one_set_of_parameters_unless_it_names_another() -> None:
    assert ParametersRequest().index == 0
