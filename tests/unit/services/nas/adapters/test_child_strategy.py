"""Strategies in child processes; scripted interpreters stand in for `nni.nas.host`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from svc_common.client_environment import ClientSide
from svc_common.clock import SystemClock
from svc_common.errors import FailedPreconditionError
from svc_common.storage.archives import pack
from svc_common.storage.code_archives import CodeArchives
from svc_common.storage.memory import InMemoryBlobStore
from svc_nas.adapters.child_strategy import (
    ChildStrategy,
    ChildStrategyLauncher,
    strategy_command,
    strategy_environment,
)
from svc_nas.domain import events
from svc_nas.domain.strategy_lines import Failed, Lost, Ready, StopWanted, StrategyOutput
from svc_nas.ports import StrategyStart

PRELUDE = """#!{python} -S
import json, os, sys
source = open(int(sys.argv[sys.argv.index("--in-fd") + 1]))
target = int(sys.argv[sys.argv.index("--out-fd") + 1])
def say(**fields): os.write(target, json.dumps(fields).encode() + b"\\n")
first = json.loads(source.readline())
"""


class Sink:
    """`StrategySink` that records its calls."""

    def __init__(self) -> None:
        self.outputs: list[StrategyOutput] = []
        self.end = ("", True)
        self._ended = asyncio.Event()

    def on_outputs(self, outputs: Sequence[StrategyOutput]) -> None:
        self.outputs += outputs

    def on_end(self, reason: str, *, clean: bool) -> None:
        self.end = (reason, clean)
        self._ended.set()

    async def until_end(self) -> tuple[str, bool]:
        async with asyncio.timeout(60):
            await self._ended.wait()
        return self.end


def archives_of(folder: Path, blobs: InMemoryBlobStore | None = None) -> CodeArchives:
    return CodeArchives(blobs or InMemoryBlobStore(), folder / "archives", SystemClock())


def start(folder: Path, interpreter: str, code_archive: str = "") -> StrategyStart:
    setup = events.ExplorationCreated(
        "0" * 64,
        "Random",
        "E",
        "simplified",
        interpreter,
        "/code",
        2,
        seed=3,
        code_archive=code_archive,
    )
    return StrategyStart("exp", str(folder / "exp"), setup, '{"a": "b"}', 2)


async def launched(
    folder: Path,
    script: str,
    sink: Sink,
    archives: CodeArchives | None = None,
    code_archive: str = "",
) -> ChildStrategy:
    path = folder / "interpreter"
    path.write_text(PRELUDE.format(python=sys.executable) + script)
    path.chmod(0o755)
    launcher = ChildStrategyLauncher({"PATH": os.defpath}, archives or archives_of(folder))
    return await launcher.launch(start(folder, str(path), code_archive), sink)


async def test_first_line_has_the_document_and_what_the_strategy_needs(tmp_path: Path) -> None:
    sink = Sink()
    script = "say(failed=json.dumps(first, sort_keys=True))"
    await launched(tmp_path, script, sink)

    await sink.until_end()

    (failed,) = sink.outputs
    for part in ('"document": "{\\"a\\": \\"b\\"}"', '"concurrency": 2', '"seed": 3', "/code"):
        assert part in str(failed.reason)  # type: ignore[union-attr] # the script sends no other


async def test_code_of_another_machine_is_unpacked_for_the_strategy(tmp_path: Path) -> None:
    blobs = InMemoryBlobStore()
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "space.py").write_text("WIDTH = 3")
    pack(tmp_path / "code", tmp_path / "code.tar")
    archive = (await blobs.put((tmp_path / "code.tar").read_bytes())).removeprefix("sha256/")
    sink = Sink()
    script = """
for name in os.listdir(first["code_directory"]):
    say(failed=name + open(os.path.join(first["code_directory"], name)).read())
"""
    await launched(tmp_path, script, sink, archives_of(tmp_path, blobs), archive)

    await sink.until_end()

    assert sink.outputs == [Failed("space.pyWIDTH = 3")]


async def test_code_that_is_not_stored_is_a_failure_with_the_remedy(tmp_path: Path) -> None:
    launcher = ChildStrategyLauncher({}, archives_of(tmp_path))

    with pytest.raises(FailedPreconditionError, match=r"cannot be had.*create the expl"):
        await launcher.launch(start(tmp_path, "", "0" * 64), Sink())


async def test_events_reach_the_strategy_and_the_end_of_the_log_is_marked(tmp_path: Path) -> None:
    sink = Sink()
    script = "say(ready=True)\nfor _ in range(2): say(kill=source.readline().strip())"
    strategy = await launched(tmp_path, script, sink)
    strategy.send([Lost("k")])
    strategy.go_live()

    reason, clean = await sink.until_end()

    assert sink.outputs == [
        Ready(),
        StopWanted('{"op":"lost","key":"k"}'),
        StopWanted('{"op":"live"}'),
    ]
    assert (reason, clean) == ("the strategy's process ended with exit code 0", True)


async def test_error_is_reported_with_the_last_line_of_the_log(tmp_path: Path) -> None:
    sink = Sink()
    await launched(tmp_path, "sys.exit('ImportError: no module m')", sink)

    assert await sink.until_end() == (
        "the strategy's process ended with exit code 1: ImportError: no module m",
        False,
    )
    assert "ImportError" in (tmp_path / "exp/log/strategy.log").read_text()


async def test_closed_strategy_reports_no_end(tmp_path: Path) -> None:
    sink = Sink()
    strategy = await launched(tmp_path, "source.read()", sink)

    await strategy.aclose()

    assert sink.end == ("", True)
    with pytest.raises(ProcessLookupError):
        os.kill(strategy.pid, 0)


async def test_missing_interpreter_is_named(tmp_path: Path) -> None:
    launcher = ChildStrategyLauncher({}, archives_of(tmp_path))

    with pytest.raises(FailedPreconditionError, match="/none/python"):
        await launcher.launch(start(tmp_path, "/none/python"), Sink())


async def test_damaged_environment_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp/environment.json").write_text("[]")

    with pytest.raises(FailedPreconditionError, match="check the folder"):
        await ChildStrategyLauncher({}, archives_of(tmp_path)).launch(start(tmp_path, ""), Sink())


def test_command_runs_under_the_interpreter_of_the_client() -> None:
    assert strategy_command("/python", 5, 6)[:3] == ["/python", "-m", "nni.nas.host"]
    assert strategy_command("", 5, 6)[0] == sys.executable


def test_environment_is_repeatable_and_has_no_secret(tmp_path: Path) -> None:
    client = ClientSide({"PATH": "/bin", "NNI_TOKEN": "secret"}, "")

    made = strategy_environment(client, tmp_path)

    assert made["PYTHONHASHSEED"] == "0"
    assert made["OMP_NUM_THREADS"] == "1"
    assert "secret" not in made.values()
