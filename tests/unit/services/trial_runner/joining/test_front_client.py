"""Tests of the client of the TLS front, against a real one."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from svc_trial_runner.joining.front_client import enrol, parse_front_address, read_authority
from tests.support.enrolment_stage import enrolment_request, enrolment_stage, host_and_port
from tests.support.ports import free_port
from tests.support.tls_fronts import tls_front

pytest.importorskip("cryptography")


async def test_machine_enrols_with_the_authority_that_its_word_names(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        host, port = host_and_port(stage.endpoint)

        authority = await asyncio.to_thread(read_authority, host, port, word.authority_sha256)
        answer = await asyncio.to_thread(enrol, host, port, authority, enrolment_request(word))

        assert authority == stage.endpoint.authority
        assert answer.name.endswith("-desks-1")


async def test_front_with_another_authority_gets_no_word(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = replace(await stage.invite(), authority_sha256="0" * 64)
        host, port = host_and_port(stage.endpoint)

        with pytest.raises(FailedPreconditionError, match="nothing secret was sent"):
            await asyncio.to_thread(read_authority, host, port, word.authority_sha256)


async def test_certificate_of_another_authority_gets_no_word(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage, tls_front(tmp_path / "other", {}) as other:
        word = await stage.invite()
        foreign = (await other.open_for("desks/joined")).authority
        host, port = host_and_port(stage.endpoint)

        with pytest.raises(FailedPreconditionError, match="is not of the authority"):
            await asyncio.to_thread(enrol, host, port, foreign, enrolment_request(word))

        assert stage.pool.enrolled == []


async def test_refusal_is_raised_with_its_remedy(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        wrong = replace(enrolment_request(word), secret="guess")
        host, port = host_and_port(stage.endpoint)

        with pytest.raises(FailedPreconditionError, match="nnictl runner invite"):
            await asyncio.to_thread(enrol, host, port, stage.endpoint.authority, wrong)


def test_front_that_is_away_is_named() -> None:
    with pytest.raises(UnavailableError, match="cannot reach the front"):
        read_authority("127.0.0.1", free_port(), "0" * 64)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://gate.example.org:8081", ("gate.example.org", 8081)),
        ("https://[2001:db8::7]:9/", ("2001:db8::7", 9)),
    ],
)
def test_address_has_host_and_port(text: str, expected: tuple[str, int]) -> None:
    assert parse_front_address(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "gate:8081", "http://gate:8081", "https://:8081"),
        *("https://gate", "https://gate:x", "https://g:1/a"),
    ],
)
def test_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="https://HOST:PORT"):
        parse_front_address(text)
