"""Files of a search by an agent: a log, the results of all episodes, and the networks."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import torch

from nni.compression.pruning.amc.agent import Agent


@dataclass(frozen=True, slots=True)
class Episode:
    """Result of one episode: parts that stay, accuracy, FLOPs ratio and reward."""

    actions: tuple[float, ...]
    """Part of the input channels that stays, of each set of layers."""
    accuracy: float
    """What the evaluator returned, in percent."""
    flops_ratio: float
    """Part of the operations that stays."""
    reward: float
    """Reward of the agent."""

    def text(self, number: int) -> str:
        """Return number, accuracy, FLOPs ratio, reward and kept parts as one line.

        Args:
            number: number of the episode.
        """
        kept = ", ".join(f"{action:.4f}" for action in self.actions)
        return (
            f"episode {number}: accuracy {self.accuracy:.4f}, FLOPs ratio {self.flops_ratio:.4f}, "
            f"reward {self.reward:.6f}, kept {kept}"
        )


class SearchFiles:
    """Writer of a search's log, history and networks to a new folder, or the suffix's.

    Args:
        directory: folder that gets the folder of the search.
        name: first part of its name.
        suffix: last part of its name, whose older log is replaced; None for `runN`, the next
            number that is free.

    Attributes:
        folder: folder of the search.

    Raises:
        OSError: the folder cannot be made.
    """

    def __init__(self, directory: Path, name: str, suffix: str | None) -> None:
        self.folder = next(
            path for path in _folders(directory, name, suffix) if suffix or not path.exists()
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = self.folder / "log.txt"
        self._history = self.folder / "history.jsonl"
        for path in (self._log, self._history):
            path.write_text("", encoding="utf-8")

    def add(self, number: int, result: Episode) -> None:
        """Append the result of an episode to the log and to the history.

        Args:
            number: number of the episode.
            result: its result.
        """
        with self._log.open("a", encoding="utf-8") as file:
            file.write(result.text(number) + "\n")
        with self._history.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"episode": number, **asdict(result)}) + "\n")

    def save_agent(self, agent: Agent) -> None:
        """Write the state dicts of actor and critic by `torch.save`.

        Args:
            agent: the agent.
        """
        torch.save(agent.actor.state_dict(), self.folder / "actor.pkl")
        torch.save(agent.critic.state_dict(), self.folder / "critic.pkl")


def _folders(directory: Path, name: str, suffix: str | None) -> Iterator[Path]:
    """Yield folders that may be taken: the suffix's if given, then `<name>-run1` and so on."""
    if suffix:
        yield directory / f"{name}-{suffix}"
    yield from (directory / f"{name}-run{number}" for number in count(1))
