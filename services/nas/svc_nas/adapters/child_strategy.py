"""Strategies as child processes: `python -m nni.nas.host` under the client's interpreter."""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from svc_common.client_environment import ClientSide, client_side
from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import FailedPreconditionError
from svc_common.line_process import LineProcess, ProcessPlan, start_process
from svc_common.process_log import ProcessLog
from svc_common.storage.code_archives import CodeArchives, CodeError
from svc_nas.converters.process_lines import first_line, line_of, output_of
from svc_nas.domain.strategy_lines import StrategyInput, StrategyOutput
from svc_nas.ports import StrategySink, StrategyStart

LOG_NAME: Final = "strategy.log"
_LABEL: Final = "the strategy"
_THREAD_LIMITS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class ChildStrategy:
    """Handle of a strategy's child process: sends it events as JSON lines, or kills it.

    Its outputs and its end go to the sink given to `ChildStrategyLauncher.launch`, not here.

    Args:
        process: the child.
    """

    def __init__(self, process: LineProcess[StrategyOutput]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    def send(self, lines: Sequence[StrategyInput]) -> None:
        """Queue events as JSON lines, without waiting."""
        self._process.send("".join(map(line_of, lines)))

    def go_live(self) -> None:
        """Send the mark that ends the events from before the start of the process."""
        self._process.send(first_line({"op": "live"}))

    async def aclose(self) -> None:
        """Kill the process and its children and wait for their end, without a report of it."""
        await self._process.aclose()


class _StrategyOutputs:
    """`LineSink` that decodes a strategy's lines and passes outputs and end to a `StrategySink`."""

    def __init__(self, sink: StrategySink) -> None:
        self._sink = sink

    def decode(self, line: bytes) -> StrategyOutput:
        """Return the output of a line; raise ValueError if it breaks the protocol."""
        return output_of(line)

    def on_values(self, values: Sequence[StrategyOutput]) -> None:
        """Pass outputs on to the sink."""
        self._sink.on_outputs(values)

    def on_end(self, reason: str) -> None:
        """Notify the sink of the end of the process, clean if its exit code was 0."""
        self._sink.on_end(reason, clean=reason.endswith("exit code 0"))


class ChildStrategyLauncher:
    """`StrategyLauncher` that starts each strategy as a child process.

    Args:
        inherited: environment for explorations whose client's is unknown.
        archives: code of clients on other machines.
        code_user: account of the processes.
    """

    def __init__(
        self, inherited: dict[str, str], archives: CodeArchives, code_user: CodeUser = SAME_USER
    ) -> None:
        self._inherited = inherited
        self._archives = archives
        self._code_user = code_user

    async def launch(self, start: StrategyStart, sink: StrategySink) -> ChildStrategy:
        """Start a strategy's child in the experiment's log folder, send its document; return it.

        Raises:
            FailedPreconditionError: it cannot be started; the message names the remedy.
        """
        directory = Path(start.directory) / "log"
        code_directory = await self._code_directory(start)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._code_user.share(directory, sticky=True)
            client = client_side(start.directory, start.setup.interpreter, self._inherited)
            log = ProcessLog(directory, LOG_NAME, "svc_nas")
        except (OSError, ValueError) as error:
            raise FailedPreconditionError(
                f"{_LABEL} cannot be started: {error}; check the folder {start.directory}"
            ) from error
        plan = ProcessPlan(
            label=_LABEL,
            command=partial(strategy_command, client.interpreter),
            environment=strategy_environment(client, directory),
            directory=directory,
            log=log,
            shared=(directory,),
        )
        process = await start_process(plan, _StrategyOutputs(sink), self._code_user)
        process.send(first_line(_first_fields(start, code_directory)))
        return ChildStrategy(process)

    async def _code_directory(self, start: StrategyStart) -> str:
        """Return the client's code folder, or its archive's, which is unpacked at first use."""
        if not start.setup.code_archive:
            return start.setup.code_directory
        try:
            return str(await self._archives.unpacked(start.setup.code_archive))
        except CodeError as error:
            raise FailedPreconditionError(
                f"{_LABEL} cannot be started: {error.message}; create the exploration again"
            ) from error


def _first_fields(start: StrategyStart, code_directory: str) -> dict[str, object]:
    return {
        "op": "initialize",
        "experiment_id": start.experiment_id,
        "document": start.document,
        "code_directory": code_directory,
        "concurrency": start.concurrency,
        "seed": start.setup.seed,
        "log_level": start.setup.log_level,
    }


def strategy_command(interpreter: str, in_fd: int, out_fd: int) -> list[str]:
    """Return a strategy's command line: client's Python, `nni.nas.host`, pipes, parent's pid.

    Args:
        interpreter: of the client; empty for this process's own.
        in_fd: read end of the pipe to it.
        out_fd: write end of the pipe from it.
    """
    python = interpreter or sys.executable
    pipes = ["--in-fd", str(in_fd), "--out-fd", str(out_fd)]
    return [python, "-m", "nni.nas.host", *pipes, "--parent-pid", str(os.getpid())]


def strategy_environment(client: ClientSide, log_directory: Path) -> dict[str, str]:
    """Return the client's variables without secrets; add log folder, hash seed 0, one thread."""
    made = client.without_secrets()
    made["NNI_LOG_DIRECTORY"] = str(log_directory)
    made["PYTHONHASHSEED"] = "0"
    # What a strategy learns must not depend on how a sum is split over threads.
    made |= dict.fromkeys(_THREAD_LIMITS, "1")
    made["PYTHONUNBUFFERED"] = "1"
    return made
