"""Ports of the NAS service: processes of strategies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from svc_nas.domain.events import ExplorationCreated
from svc_nas.domain.strategy_lines import StrategyInput, StrategyOutput


class StrategySink(Protocol):
    """Interface that receives outputs and end of a strategy's process, on the event loop."""

    def on_outputs(self, outputs: Sequence[StrategyOutput]) -> None:
        """Handle outputs, in order."""
        ...

    def on_end(self, reason: str, *, clean: bool) -> None:
        """Handle the end of the process, once, after its last output.

        Args:
            reason: cause of the end in words, with exit code or signal.
            clean: whether it ended by itself without an error.
        """
        ...


@dataclass(frozen=True, slots=True)
class StrategyStart:
    """Arguments of a strategy's process: experiment, folder, setup, document, concurrency."""

    experiment_id: str
    directory: str
    """Folder of the experiment; the process runs in its `log` folder."""
    setup: ExplorationCreated
    document: str = field(repr=False)
    """Document with space, evaluator and strategy."""
    concurrency: int
    """Trials that run at once, >= 1."""


class StrategyProcess(Protocol):
    """Interface of a running strategy: queue events, mark the end of old ones, stop at once."""

    def send(self, lines: Sequence[StrategyInput]) -> None:
        """Queue events for the strategy, without waiting."""
        ...

    def go_live(self) -> None:
        """Mark the end of the events before the start of the process."""
        ...

    async def aclose(self) -> None:
        """Stop the strategy at once, without a report to the sink; wait for its end."""
        ...


class StrategyLauncher(Protocol):
    """Interface that starts strategies in processes, whose outputs go to a `StrategySink`."""

    async def launch(self, start: StrategyStart, sink: StrategySink) -> StrategyProcess:
        """Start a strategy; its outputs are passed to ``sink``.

        Raises:
            FailedPreconditionError: the process cannot be started; the message names the remedy.
        """
        ...
