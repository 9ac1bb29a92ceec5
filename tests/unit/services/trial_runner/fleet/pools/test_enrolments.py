"""Tests of enrolments: who is admitted, and what is written down."""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from nni_proto.runner.v1 import invitation_service_pb2
from svc_common.access.failure_limit import FAILURES_ALLOWED
from svc_common.errors import UnavailableError
from svc_common.messaging.memory import InMemoryBus
from svc_common.subjects import pool_front_subject
from svc_trial_runner.enrolment import (
    Enrolled,
    EnrolmentWord,
    Refused,
    authority_fingerprint,
    secret_hash,
)
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.domain.invitations import REPETITION_WINDOW_S, REPETITIONS_ALLOWED
from svc_trial_runner.fleet.pools.enrolments import EnrolmentDependencies, Enrolments
from tests.support.enrolment_stage import (
    INSTALLATION,
    POOL,
    VERSION,
    CountedPool,
    enrolment_request,
    enrolment_stage,
)

pytest.importorskip("cryptography")

ADDRESS = "203.0.113.7"
LIMIT_S = 30.0


def name(number: int) -> AgentName:
    return AgentName(INSTALLATION, POOL, number)


async def test_invited_machine_gets_a_name_and_credentials(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()

        answer = await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        assert isinstance(answer, Enrolled)
        assert answer.name == str(name(1))
        assert answer.bus_password
        assert stage.pool.enrolled == [(2, "host-one", None)]
        assert [one.number for one in await stage.machines.of_pool(POOL)] == [1]


async def test_second_enrolment_of_a_machine_revokes_the_first(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        second = await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        assert isinstance(second, Enrolled)
        assert second.name == str(name(2))
        assert stage.pool.enrolled[1] == (2, "host-one", 1)
        assert set(stage.credentials.valid) == {name(2)}
        assert [one.number for one in await stage.machines.of_pool(POOL)] == [2]


async def test_wrong_word_is_refused(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        await stage.invite()
        wrong = EnrolmentWord.new(authority_fingerprint(stage.endpoint.authority))

        answer = await stage.enrolments.enrol(enrolment_request(wrong), ADDRESS)

        assert isinstance(answer, Refused)
        assert "no valid invitation" in answer.reason
        assert wrong.secret not in answer.reason
        assert answer.remedy == "ask for another word: nnictl runner invite"
        assert stage.pool.enrolled == []


async def test_word_of_another_pool_is_refused(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(pool="others")

        answer = await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        assert isinstance(answer, Refused)
        assert "no valid invitation to pool desks" in answer.reason


async def test_pool_that_is_not_open_yet_is_said(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(pool="others")

        request = enrolment_request(word, pool="others")
        answer = await stage.enrolments.enrol(request, ADDRESS)

        assert isinstance(answer, Refused)
        assert "try again in a moment" in answer.reason


class HeldPool(CountedPool):
    """Pool whose enrolments wait until they are released."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.released = asyncio.Event(), asyncio.Event()

    async def enrol(self, slots: int, machine: str, replaced: int | None) -> AgentName:
        self.entered.set()
        await self.released.wait()
        return await super().enrol(slots, machine, replaced)


async def test_pools_do_not_wait_for_the_enrolments_of_each_other(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        held = HeldPool()
        stage.enrolments.attach({POOL: stage.pool, "others": held}.get, lambda _: None)
        word, other = await stage.invite(), await stage.invite(pool="others")
        waiting = asyncio.create_task(
            stage.enrolments.enrol(enrolment_request(other, pool="others"), ADDRESS)
        )
        await held.entered.wait()

        async with asyncio.timeout(LIMIT_S):
            answer = await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        assert isinstance(answer, Enrolled)
        assert not waiting.done()
        held.released.set()
        assert isinstance(await waiting, Enrolled)


async def test_expired_word_is_refused(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(valid=timedelta(minutes=5))
        stage.clock.advance(300)

        answer = await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        assert isinstance(answer, Refused)
        assert "was valid until" in answer.reason


async def test_expired_word_stays_so_when_the_clock_is_set_back(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(valid=timedelta(minutes=5))
        stage.clock.advance(300)
        stage.clock.step(-3600)

        answer = await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        assert isinstance(answer, Refused)
        assert "was valid until" in answer.reason


async def test_word_that_has_expired_stays_so_in_a_fleet_that_starts_with_an_earlier_clock(
    tmp_path: Path,
) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(valid=timedelta(minutes=5))
        assert await stage.enrolments.note_expired() == 300
        stage.clock.advance(300)
        assert await stage.enrolments.note_expired() is None

    async with enrolment_stage(tmp_path) as stage:  # 5 min earlier
        await stage.invite_again(word)

        answer = await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        assert isinstance(answer, Refused)
        assert "was valid until" in answer.reason


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a file, and a clock without events
            await asyncio.sleep(0)


async def test_expiry_is_written_down_when_it_comes(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(valid=timedelta(minutes=5))
        running = asyncio.create_task(stage.enrolments.run())
        await until(lambda: stage.clock.sleepers > 0)

        stage.clock.advance(300)

        file = tmp_path / "pools" / POOL / "joined" / "expired-invitations.json"
        await until(file.exists)
        assert await stage.machines.expired(POOL) == {secret_hash(word.secret)[:8]}
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_words_whose_record_of_expiry_is_damaged_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "pools" / POOL / "joined"
    folder.mkdir(parents=True)
    (folder / "expired-invitations.json").write_text("{")
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()

        assert isinstance(await stage.enrolments.enrol(enrolment_request(word), ADDRESS), Refused)


async def test_machine_that_enrols_again_and_again_is_limited(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        request = enrolment_request(word)
        for _ in range(1 + REPETITIONS_ALLOWED):
            assert isinstance(await stage.enrolments.enrol(request, ADDRESS), Enrolled)

        limited = await stage.enrolments.enrol(request, "203.0.113.8")
        stage.clock.advance(REPETITION_WINDOW_S)
        later = await stage.enrolments.enrol(request, ADDRESS)

        assert isinstance(limited, Refused)
        assert "try again in 600 s" in limited.reason
        assert isinstance(later, Enrolled)


async def test_revoked_word_is_refused(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        await stage.publish(invitation_service_pb2.PoolInvitations(pool=POOL))

        assert isinstance(await stage.enrolments.enrol(enrolment_request(word), ADDRESS), Refused)


async def test_guesses_of_one_address_are_limited_and_others_served(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        wrong = replace(enrolment_request(word), secret="guess")
        for _ in range(FAILURES_ALLOWED):
            await stage.enrolments.enrol(wrong, ADDRESS)

        blocked = await stage.enrolments.enrol(enrolment_request(word), ADDRESS)
        other = await stage.enrolments.enrol(enrolment_request(word), "203.0.113.8")

        assert isinstance(blocked, Refused)
        assert "too many wrong credentials" in blocked.reason
        assert isinstance(other, Enrolled)


async def test_machine_of_another_version_is_refused_or_warned(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()

        old = await stage.enrolments.enrol(enrolment_request(word, version="3.0.1"), ADDRESS)
        near = await stage.enrolments.enrol(enrolment_request(word, version="4.2.9"), ADDRESS)

        assert isinstance(old, Refused)
        assert "NNI 3.0.1" in old.reason
        assert isinstance(near, Enrolled)
        assert "NNI 4.2.9" in near.warning


@pytest.mark.parametrize("field", ["closed", "draining"])
async def test_pool_that_ends_takes_no_more_machines(tmp_path: Path, field: str) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        stage.pool.need = replace(stage.pool.need, **{field: True})  # type: ignore[arg-type] # a flag

        answer = await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        assert isinstance(answer, Refused)
        assert "being closed" in answer.reason


class ClosingPool(CountedPool):
    """Pool that is closed while a machine enrols."""

    async def enrol(self, slots: int, machine: str, replaced: int | None) -> AgentName:
        name = await super().enrol(slots, machine, replaced)
        self.need = replace(self.need, closed=True)
        return name


async def test_machine_that_enrols_while_its_pool_closes_keeps_no_credentials(
    tmp_path: Path,
) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        pool = ClosingPool()
        stage.enrolments.attach({POOL: pool}.get, lambda _: None)

        answer = await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        assert isinstance(answer, Refused)
        assert len(pool.enrolled) == 1
        assert stage.credentials.valid == {}


async def test_damaged_invitations_are_logged_and_leave_the_others(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        await stage.bus.last_values.publish("nni.pool.other.invitations", b"\xff")
        await stage.enrolments.restore()

        assert isinstance(await stage.enrolments.enrol(enrolment_request(word), ADDRESS), Enrolled)
        assert not stage.enrolments.is_joinable("other")


async def test_address_of_the_front_is_published_with_what_was_read(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        await stage.invite()
        await stage.enrolments.publish_front(POOL)
        values = await stage.bus.last_values.read(pool_front_subject(POOL))
        front = invitation_service_pb2.PoolFront.FromString(values[-1].payload)

        assert front.address == stage.endpoint.address
        assert front.authority_sha256 == authority_fingerprint(stage.endpoint.authority)
        assert len(front.invitation_ids) == 1


async def test_invitations_that_have_expired_open_no_front(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        await stage.invite(valid=timedelta(minutes=5), pool="ended")
        stage.clock.advance(300)
        await stage.enrolments.publish_front("ended")
        assert "ended" not in stage.front.open_for_pools

        await stage.invite(pool="ended")
        await stage.enrolments.publish_front("ended")

        assert "ended" in stage.front.open_for_pools


async def test_forgotten_pool_is_not_joinable(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        await stage.invite()
        assert stage.enrolments.is_joinable(POOL)

        stage.enrolments.forget(POOL)

        assert not stage.enrolments.is_joinable(POOL)


async def test_expiry_that_the_disk_does_not_take_is_written_five_seconds_later(
    tmp_path: Path,
) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(valid=timedelta(minutes=5))
        (tmp_path / "pools").write_text("in place of the folder")
        stage.clock.advance(300)

        assert await stage.enrolments.note_expired() == 5.0

        (tmp_path / "pools").unlink()
        assert await stage.enrolments.note_expired() is None
        assert await stage.machines.expired(POOL) == {secret_hash(word.secret)[:8]}


async def test_refused_word_has_expired_words_stored_under_a_clock_that_was_set_ahead(
    tmp_path: Path,
) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(valid=timedelta(minutes=5))
        running = asyncio.create_task(stage.enrolments.run())
        await until(lambda: POOL in stage.front.open_for_pools and stage.clock.sleepers > 0)
        stage.clock.step(3600)  # no timer notices that

        await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        file = tmp_path / "pools" / POOL / "joined" / "expired-invitations.json"
        await until(file.exists)
        assert await stage.machines.expired(POOL) == {secret_hash(word.secret)[:8]}
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_pool_of_a_forgotten_name_has_invitations_of_its_own(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(valid=timedelta(minutes=5))
        stage.clock.advance(300)
        await stage.enrolments.note_expired()

        stage.enrolments.forget(POOL)
        shutil.rmtree(tmp_path / "pools")
        await stage.invite_again(word)

        assert isinstance(await stage.enrolments.enrol(enrolment_request(word), ADDRESS), Enrolled)


async def test_answer_has_the_version_of_the_installation(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()

        answer = await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        assert isinstance(answer, Enrolled)
        assert (answer.bus_user, answer.manager_token) == (str(name(1)), "token-1")
        assert answer.warning == ""
        (record,) = await stage.machines.of_pool(POOL)
        assert record.invitation_id == secret_hash(word.secret)[:8]


async def test_new_invitation_opens_the_front_and_is_a_change_of_its_pool(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        changed: list[str] = []
        stage.enrolments.attach({POOL: stage.pool}.get, changed.append)
        running = asyncio.create_task(stage.enrolments.run())

        await stage.invite(pool="others")
        await until(lambda: "others" in stage.front.open_for_pools)

        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert changed == ["others"]


async def test_machine_that_comes_before_its_pool_is_open_may_try_as_often_as_it_likes(
    tmp_path: Path,
) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(pool="others")
        request = enrolment_request(word, pool="others")
        for _ in range(FAILURES_ALLOWED + 1):
            early = await stage.enrolments.enrol(request, ADDRESS)
        stage.enrolments.attach({"others": stage.pool}.get, lambda _: None)

        answer = await stage.enrolments.enrol(request, ADDRESS)

        assert isinstance(early, Refused)
        assert early.remedy == ""
        assert isinstance(answer, Enrolled)


class RefusingBus(InMemoryBus):
    """Bus that refuses the next messages."""

    refusals = 0

    async def ready(self, payload: bytes = b"") -> None:
        if self.refusals:
            self.refusals -= 1
            raise UnavailableError("the bus is away")
        await super().ready(payload)


async def test_front_that_the_bus_did_not_take_is_published_five_seconds_later(
    tmp_path: Path,
) -> None:
    async with enrolment_stage(tmp_path) as stage:
        await stage.invite()
        bus = RefusingBus(stage.bus.broker)
        enrolments = Enrolments(
            EnrolmentDependencies(
                bus, stage.credentials, stage.front, stage.machines, stage.clock, VERSION
            )
        )
        await enrolments.restore()
        bus.refusals = 1
        publishing = asyncio.create_task(enrolments.publish_front(POOL))
        await until(lambda: stage.clock.sleepers > 0)
        early = await stage.bus.last_values.read(pool_front_subject(POOL))

        stage.clock.advance(4.9)
        asleep = stage.clock.sleepers
        stage.clock.advance(0.1)
        await asyncio.wait_for(publishing, LIMIT_S)

        assert (early, asleep) == ([], 1)
        assert len(await stage.bus.last_values.read(pool_front_subject(POOL))) == 1
        await enrolments.aclose()


async def test_expired_invitation_opens_no_front_under_a_clock_that_was_set_back(
    tmp_path: Path,
) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(valid=timedelta(minutes=5), pool="ended")
        stage.clock.advance(300)
        await stage.enrolments.note_expired()
    async with enrolment_stage(tmp_path) as stage:  # 5 min earlier
        await stage.invite_again(word, pool="ended")

        next_s = await stage.enrolments.note_expired()
        await stage.enrolments.publish_front("ended")

        assert next_s is None
        assert await stage.machines.expired("ended") == {secret_hash(word.secret)[:8]}
        assert "ended" not in stage.front.open_for_pools


async def test_next_expiry_is_the_earliest_of_all_pools(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        for pool, minutes in (("first", 10), ("second", 5), ("third", 15)):
            await stage.invite(valid=timedelta(minutes=minutes), pool=pool)

        assert await stage.enrolments.note_expired() == 300


@pytest.mark.parametrize("field", ["closed", "draining"])
async def test_machine_that_a_pool_refuses_at_its_end_is_none_of_its_agents(
    tmp_path: Path, field: str
) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        stage.pool.need = replace(stage.pool.need, **{field: True})  # type: ignore[arg-type] # a flag

        await stage.enrolments.enrol(enrolment_request(word), ADDRESS)

        assert stage.pool.enrolled == []
        assert await stage.machines.of_pool(POOL) == []


async def test_expiry_of_the_first_invitation_is_waited_for(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        running = asyncio.create_task(stage.enrolments.run())
        for _ in range(20):  # turns of the loop
            await asyncio.sleep(0)
        before = stage.clock.sleepers

        word = await stage.invite(valid=timedelta(minutes=5))
        await until(lambda: stage.clock.sleepers > 0)
        stage.clock.advance(300)
        await until((tmp_path / "pools" / POOL / "joined" / "expired-invitations.json").exists)

        assert before == 0
        assert await stage.machines.expired(POOL) == {secret_hash(word.secret)[:8]}
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_closed_enrolments_leave_no_task_behind(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        await stage.invite()
        before = asyncio.all_tasks()
        running = asyncio.create_task(stage.enrolments.run())
        await until(lambda: stage.clock.sleepers > 0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        begun = asyncio.all_tasks() - before

        await stage.enrolments.aclose()

        assert begun
        assert asyncio.all_tasks() == before
