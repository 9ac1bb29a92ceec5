"""File of the machines on which the agents of a pool were started."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from svc_trial_runner.fleet.adapters.remote.machines import Machine
from svc_trial_runner.fleet.domain.agents import AgentName, parse_agent_name

FILE: Final = "machines.json"


class MachineRecord:
    """File of the machine of each agent of a pool, written before an agent is started.

    What runs is known by the machines themselves; the record is for the time in which one of them
    cannot be reached.

    Args:
        folder: of the pool on this machine; created by the first write.
        machines: of the section; agents of others are left out.
    """

    def __init__(self, folder: Path, machines: Sequence[Machine]) -> None:
        self._folder = folder
        self._machines = machines

    def places(self) -> dict[AgentName, int]:
        """Return {agent: index of its machine} from the file; empty if it cannot be read."""
        indices = {machine.address: index for index, machine in enumerate(self._machines)}
        try:
            fields = json.loads((self._folder / FILE).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return {
            name: indices[address]
            for text, address in (fields.items() if isinstance(fields, dict) else ())
            if (name := parse_agent_name(text)) is not None
            and isinstance(address, str)
            and address in indices
        }

    async def add(self, places: Mapping[AgentName, int]) -> None:
        """Store the machines of agents.

        Raises:
            OSError: the file cannot be written.
        """
        if places:
            await asyncio.to_thread(self._write, {**self.places(), **places})

    async def forget(self, names: Collection[AgentName]) -> None:
        """Remove agents from the file; unknown ones are ignored.

        Raises:
            OSError: the file cannot be written.
        """
        places = self.places()
        left = {name: index for name, index in places.items() if name not in names}
        if left != places:
            await asyncio.to_thread(self._write, left)

    def _write(self, places: Mapping[AgentName, int]) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fields = {str(name): self._machines[index].address for name, index in places.items()}
        draft = self._folder / f".{FILE}"
        draft.write_text(json.dumps(fields), "utf-8")
        draft.replace(self._folder / FILE)
