import asyncio

import pytest

from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_trial_runner.agent.log_files import LogFile, TrialLogReader
from svc_trial_runner.domain.claims import AttemptKey
from tests.unit.services.trial_runner.conftest import EXPERIMENT, WAIT_S, Bench


async def collected(
    logs: TrialLogReader, file: LogFile = LogFile.TRIAL_LOG, offset: int = 0
) -> bytes:
    pieces = logs.read(EXPERIMENT, "one", file, offset=offset, follow=False)
    return b"".join([data async for _, data in pieces])


async def test_ended_trial_can_be_read(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "echo out; echo err >&2"))
    await bench.until_kind("one", "exited")
    logs = TrialLogReader(agent, bench.folder)

    assert await collected(logs) == b"out\n"
    assert await collected(logs, LogFile.STDOUT, offset=1) == b"ut\n"
    assert await collected(logs, LogFile.STDERR) == b"err\n"


async def test_running_trial_is_followed_to_its_end(bench: Bench) -> None:
    agent = bench.agent()
    go = bench.folder / "go"
    command = f"echo one; until [ -e {go} ]; do sleep 0.01; done; echo two"
    await bench.deliver(agent, bench.task("one", command))
    await bench.until_kind("one", "started")
    logs = TrialLogReader(agent, bench.folder)
    pieces = logs.read(EXPERIMENT, "one", LogFile.STDOUT, offset=0, follow=True)

    first = await asyncio.wait_for(anext(pieces), WAIT_S)
    go.touch()
    rest = [piece async for piece in pieces]

    assert first == (0, b"one\n")
    assert rest == [(4, b"two\n")]


async def test_long_output_comes_in_pieces_of_256_kib(bench: Bench) -> None:
    file = bench.folder / EXPERIMENT / "trials/one/stdout"
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes(256 * 1024 + 1))
    logs = TrialLogReader(bench.agent(), bench.folder)

    pieces = logs.read(EXPERIMENT, "one", LogFile.STDOUT, offset=0, follow=False)

    assert [(offset, len(data)) async for offset, data in pieces] == [(0, 262144), (262144, 1)]


async def test_running_trial_is_not_followed_unless_asked(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "echo out; sleep 30"))
    await bench.until_kind("one", "started")
    logs = TrialLogReader(agent, bench.folder)

    async with asyncio.timeout(WAIT_S):
        await collected(logs)

    agent.stop_trial(AttemptKey(EXPERIMENT, "one", 1))
    assert (await bench.until_kind("one", "exited")).attempt == 1


async def test_trial_that_never_ran_here_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFoundError, match="one"):
        await collected(TrialLogReader(bench.agent(), bench.folder))


@pytest.mark.parametrize("trial_id", ["../one", "", "a/b"])
async def test_only_ids_are_taken(bench: Bench, trial_id: str) -> None:
    logs = TrialLogReader(bench.agent(), bench.folder)

    with pytest.raises(InvalidArgumentError, match="trial_id"):
        await anext(logs.read(EXPERIMENT, trial_id, LogFile.STDOUT, offset=0, follow=False))


async def test_offset_must_not_be_negative(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentError, match="offset"):
        await collected(TrialLogReader(bench.agent(), bench.folder), offset=-1)


async def test_ended_trial_is_followed_to_the_end_of_its_file(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "echo out"))
    await bench.until_kind("one", "exited")
    logs = TrialLogReader(agent, bench.folder)

    async with asyncio.timeout(WAIT_S):
        pieces = logs.read(EXPERIMENT, "one", LogFile.STDOUT, offset=0, follow=True)
        found = [piece async for piece in pieces]

    assert found == [(0, b"out\n")]


async def test_link_in_place_of_an_output_discloses_nothing(bench: Bench) -> None:
    folder = bench.folder / EXPERIMENT / "trials/one"
    folder.mkdir(parents=True)
    (bench.folder / "secret").write_text("of the agent")
    (folder / "stdout").symlink_to(bench.folder / "secret")

    with pytest.raises(NotFoundError, match="one"):
        await collected(TrialLogReader(bench.agent(), bench.folder), LogFile.STDOUT)


async def test_nothing_follows_the_end_of_a_file(bench: Bench) -> None:
    folder = bench.folder / EXPERIMENT / "trials/one"
    folder.mkdir(parents=True)
    (folder / "stdout").write_text("out")
    logs = TrialLogReader(bench.agent(), bench.folder)

    assert await collected(logs, LogFile.STDOUT, offset=2) == b"t"
    assert await collected(logs, LogFile.STDOUT, offset=3) == b""
