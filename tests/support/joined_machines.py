"""Machines that join a pool by hand: a home and an environment of their own on this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl
from tests.support.ports import free_port
from tests.support.servers import require_binary

POOL: Final = "desks"


@dataclass
class Desk:
    """Machine beside the installation: a home and an environment of its own."""

    home: Path
    invitation: dict[str, Any]

    def join(self, slots: int = 2) -> subprocess.Popen[bytes]:
        """Start an agent as a person does; the word is on its standard input."""
        own = {name: text for name, text in os.environ.items() if not name.startswith("NNI_")}
        command = [sys.executable, "-P", "-m", "nni.cli.main", "runner", "join"]
        address = f"https://{self.invitation['address']}"
        process = subprocess.Popen(
            [*command, address, "--pool", POOL, "--slots", str(slots)],
            env={**own, "HOME": str(self.home)},
            cwd=self.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        process.stdin.write(f"{self.invitation['word']}\n".encode())
        process.stdin.close()
        return process


def invited(nnictl: Nnictl, *homes: Path) -> list[Desk]:
    """Invite machines with these homes to the pool by one word."""
    made = nnictl("runner", "invite", "--pool", POOL, "--uses", len(homes), "--json")
    for home in homes:
        home.mkdir()
    return [Desk(home, json.loads(made.stdout)) for home in homes]


def joined_agents(nnictl: Nnictl) -> dict[str, str]:
    """Return the states of the agents that have joined, by id."""
    listed = json.loads(nnictl("runner", "list", "--json").stdout)
    return {one["id"]: one["state"] for one in listed if one["platform"] == "joined"}


@pytest.fixture
def front_shape(private_home: Path) -> Iterator[LocalShape]:
    """Installation whose front listens on a loopback address, not started yet."""
    require_binary("nats-server")
    opened = LocalShape(
        private_home, {"NNI_FRONT_HOST": "127.0.0.1", "NNI_FRONT_PORT": str(free_port())}
    )
    try:
        yield opened
    finally:
        opened.stop()
