"""Workers over OpenSSH's `sshd` as this user: a home and a Python of their own, nothing else."""

from __future__ import annotations

import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from nni.experiment import RemoteConfig, RemoteMachineConfig
from tests.support.openssh_server import OpenSshServer
from tests.support.ssh_server import make_key


class SshWorker:
    """Machine of an experiment, on this one.

    Args:
        folder: empty; of its keys, home and Python.
    """

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.python = folder / "python"
        venv.create(self.python, with_pip=False, symlinks=True)
        self.key_file = make_key(folder / "key")
        self.server = OpenSshServer(folder, self.home, self.key_file)
        self._socket_folders: set[Path] = set()

    def config(self, slots: int | None = None) -> RemoteMachineConfig:
        """Return the entry of this machine in `machine_list`."""
        return RemoteMachineConfig(
            host="127.0.0.1",
            port=self.server.port,
            user=self.server.user,
            ssh_key_file=Path(self.key_file),
            host_key_policy="accept-new",
            python_path=str(self.python / "bin"),
            slots=slots,
        )

    def processes(self) -> list[psutil.Process]:
        """Return the processes of NNI on this machine: agents, those above them, and trials."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                words = process.cmdline()
                here = process.environ().get("HOME") == str(self.home)
                if words and (here or any(str(self.home) in word for word in words)):
                    found.append(process)
        return found

    def agents(self) -> list[psutil.Process]:
        """Return the agents that run on this machine."""
        found = []
        for process in self.processes():
            with suppress(psutil.Error):
                if process.cmdline()[-2:] == ["agent", "-"]:
                    found.append(process)
        return found

    def sessions(self) -> list[psutil.Process]:
        """Return the processes of its SSH connections."""
        return self.server.sessions()

    def note_socket_folders(self) -> None:
        """Remember the folders of the sockets that are forwarded now, for `remains`."""
        for session in self.sessions():
            with suppress(psutil.Error):
                for process in [session, *session.children()]:
                    names = [str(one.laddr) for one in process.net_connections("unix")]
                    self._socket_folders |= {
                        Path(n).parents[1] for n in names if n.endswith("bus.sock")
                    }

    def remains(self) -> list[str]:
        """Return what an experiment has left: processes, and folders of agents and of sockets.

        Folders of sockets are those of which `note_socket_folders` knows.
        """
        found = []
        for process in self.processes():
            with suppress(psutil.Error):  # it has ended since
                found.append(f"process {' '.join(process.cmdline())[:200]}")
        agents = self.home / ".nni" / "agents"
        found += [str(one) for one in agents.iterdir()] if agents.exists() else []
        found += [str(one) for one in self._socket_folders if one.exists()]
        return found

    def close(self) -> None:
        """Kill the server and whatever runs."""
        self.server.kill()
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()


def remote_config(workers: Sequence[SshWorker], slots: int | None = None) -> RemoteConfig:
    """Return the platform `remote` with some workers."""
    return RemoteConfig(machine_list=[worker.config(slots) for worker in workers])


@contextmanager
def ssh_workers(folder: Path, count: int) -> Iterator[list[SshWorker]]:
    """Start workers in a folder; end them, and whatever runs there, at the end."""
    with ExitStack() as stack:
        workers = [SshWorker(folder / f"worker-{number}") for number in range(count)]
        for worker in workers:
            stack.callback(worker.close)
            worker.server.start()
        yield workers
