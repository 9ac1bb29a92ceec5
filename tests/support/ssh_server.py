"""SSH server of asyncssh in a child process, whose commands run by a shell in a scratch home.

`python -m tests.support.ssh_server` reads a JSON object of `ServerOptions` from stdin, prints its
port, and runs until stdin ends.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import asyncssh


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What the server allows."""

    home: str
    host_key: str
    passwords: dict[str, str] = field(default_factory=dict, repr=False)
    authorized_keys: str = ""
    """File; empty: no key is accepted."""
    keyboard_interactive: bool = False
    """True: the server asks questions and takes neither passwords nor keys."""
    forwards_sockets: bool = True
    forwards_ports: bool = True
    version: str = "test"
    port: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    """Added to that of commands."""


class _Server(asyncssh.SSHServer):
    """Login by passwords and keys, or by questions only."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options

    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return bool(self._options.passwords) and not self._options.keyboard_interactive

    def validate_password(self, username: str, password: str) -> bool:
        return self._options.passwords.get(username) == password

    def kbdint_auth_supported(self) -> bool:
        return self._options.keyboard_interactive

    def get_kbdint_challenge(
        self, username: str, lang: str, submethods: str
    ) -> tuple[str, str, str, list[tuple[str, bool]]]:
        return "", "", "", [("One-time code: ", False)]

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> bool:
        return self._options.forwards_ports

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        return self._options.forwards_ports

    def unix_server_requested(self, listen_path: str) -> bool:
        return self._options.forwards_sockets


def _shell(options: ServerOptions) -> Callable[[asyncssh.SSHServerProcess[bytes]], object]:
    environment = {**os.environ, "HOME": options.home, **options.environment}
    for name in ("XDG_RUNTIME_DIR", "PYTHONPATH"):
        environment.pop(name, None)

    async def run(process: asyncssh.SSHServerProcess[bytes]) -> None:
        child = await asyncio.create_subprocess_shell(
            process.command or "true",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=options.home,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        feeding = asyncio.create_task(_feed(process.stdin, child.stdin), name="input")
        await asyncio.gather(
            _pass(child.stdout, process.stdout), _pass(child.stderr, process.stderr)
        )
        status = await child.wait()
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        process.exit(status)

    return run


async def _feed(source: asyncssh.SSHReader[bytes], target: asyncio.StreamWriter) -> None:
    """Copy the input of a command; it ends with the channel."""
    with suppress(OSError, asyncssh.Error):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.close()


async def _pass(source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
    """Copy the output of a command to its end, also when the channel is closed."""
    while data := await source.read(65536):
        with suppress(OSError, asyncssh.Error):
            target.write(data)
            await target.drain()


async def _serve(options: ServerOptions) -> None:
    server = await asyncssh.create_server(
        lambda: _Server(options),
        "127.0.0.1",
        options.port,
        server_host_keys=[options.host_key],
        authorized_client_keys=options.authorized_keys or None,
        process_factory=_shell(options),
        encoding=None,
        server_version=options.version,
        reuse_address=True,
    )
    sys.stdout.write(f"{server.get_port()}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    server.close()


class SshServer:
    """Server in a child process.

    Args:
        options: of the server; port 0 becomes a free one that stays the same for restarts.
    """

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.port = options.port
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the server and wait until it listens."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.ssh_server"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**asdict(self.options), "port": self.port}) + "\n")
        self._process.stdin.flush()
        self.port = int(self._process.stdout.readline())

    @property
    def process_id(self) -> int:
        """Id of the server's process, which has all connections."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the server: its connections are cut, and its port is closed."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def make_key(path: Path, passphrase: str | None = None) -> str:
    """Write a private key, and its public key to the same name with `.pub`; return its path."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(str(path), passphrase=passphrase, rounds=2, ignore_few_rounds=True)
    path.chmod(0o600)
    key.write_public_key(f"{path}.pub")
    return str(path)


if __name__ == "__main__":
    asyncio.run(_serve(ServerOptions(**json.loads(sys.stdin.readline()))))
