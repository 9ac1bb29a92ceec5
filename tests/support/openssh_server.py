"""OpenSSH's `sshd` as this user on a free port."""

import os
import pwd
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil

from tests.support.ports import free_port
from tests.support.processes import tree
from tests.support.required_platforms import SSHD
from tests.support.ssh_server import make_key


class OpenSshServer:
    """OpenSSH's `sshd` as this user on a free port; keys only.

    Args:
        folder: of its files.
        home: of the sessions.
        key_file: private key whose public key is accepted.
        extra: lines of its configuration, which win.
    """

    def __init__(self, folder: Path, home: Path, key_file: str, extra: str = "") -> None:
        self.folder = folder
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.port = free_port()
        self.host_key = make_key(folder / "sshd_host_key")
        authorized = folder / "authorized_keys"
        authorized.write_bytes(Path(f"{key_file}.pub").read_bytes())
        authorized.chmod(0o600)
        (folder / "sshd_config").write_text(
            f"{extra}\nPort {self.port}\nListenAddress 127.0.0.1\nHostKey {self.host_key}\n"
            f"AuthorizedKeysFile {authorized}\nPidFile none\nStrictModes no\nUsePAM no\n"
            f"PasswordAuthentication no\nSetEnv HOME={home}\nLogLevel VERBOSE\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it listens."""
        assert SSHD is not None
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = str(self.folder / "sshd_config")
        self._process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", config],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stderr is not None
        while b"Server listening" not in (line := self._process.stderr.readline()):
            assert line, "sshd ended"

    def sessions(self) -> list[psutil.Process]:
        """Return the processes of the connections."""
        assert self._process is not None
        return psutil.Process(self._process.pid).children()

    def signal_sessions(self, number: signal.Signals) -> None:
        """Send a signal to all processes of connections; commands of theirs get none."""
        for session in self.sessions():
            for process in tree(session.pid):
                with suppress(psutil.NoSuchProcess):
                    if process.name().startswith("sshd"):
                        process.send_signal(number)

    def kill(self) -> None:
        """Kill server and connections."""
        process, self._process = self._process, None
        if process is not None:
            for session in psutil.Process(process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    session.kill()
            process.kill()
            process.communicate()
