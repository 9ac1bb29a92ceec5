"""Real Redis and S3 servers on free ports, from their wheels."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from svc_common.storage.s3_settings import S3Settings
from tests.support import wait
from tests.support.ports import free_port
from tests.support.servers import START_TIMEOUT_S, require_binary

_SERVER_ERROR_STATUS = 500
_SOCKETS = Path("/tmp")
"""Folder in which SeaweedFS creates its sockets; no option moves all of them."""
S3_ACCESS_KEY = "nni-test"
S3_SECRET_KEY = "secret-of-tests"


class RedisServer:
    """A redis-server without persistence; can be killed and started again, then empty."""

    def __init__(self, folder: Path, password: str = "") -> None:
        self._binary = require_binary("redis-server")
        self._folder = folder
        self._password = password
        self.port = _free_ports(1)[0]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"redis://{self.address}/0"

    def start(self) -> None:
        """Start it, on the same port as before; return when it answers."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._binary,
                    *("--port", str(self.port), "--bind", "127.0.0.1"),
                    *("--save", "", "--appendonly", "no", "--dir", str(self._folder)),
                    *(["--requirepass", self._password] if self._password else []),
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        wait.until(self._answers, START_TIMEOUT_S, "redis-server answers")

    def kill(self) -> None:
        """SIGKILL: what a crash looks like."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"redis-server ended at its start; see {self._folder}/redis.log")
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
                connection.sendall(b"PING\r\n")
                # An error that asks for the password is an answer, too.
                return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


class S3Server:
    """SeaweedFS with its S3 API; one account, no bucket."""

    def __init__(self, folder: Path) -> None:
        self._binary = require_binary("weed")
        self._folder = folder
        self._ports = _free_ports(8)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports[0]}"

    def settings(self, prefix: str = "", bucket: str = "nni-tests") -> S3Settings:
        return S3Settings(self.endpoint, S3_ACCESS_KEY, S3_SECRET_KEY, bucket, prefix)

    def start(self) -> None:
        """Start the server; return when it answers (3 s: its parts discover each other)."""
        data = self._folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        with (self._folder / "weed.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(data), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        wait.until(self._answers, START_TIMEOUT_S, "weed answers")

    def kill(self) -> None:
        """Kill the server with SIGKILL; a regular stop takes half a minute."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        for port in self._ports:
            for left in _SOCKETS.glob(f"seaweedfs-*-{port}.sock"):
                left.unlink()

    def _command(self, data: Path) -> list[str]:
        accounts = self._folder / "s3.json"
        credentials = {"accessKey": S3_ACCESS_KEY, "secretKey": S3_SECRET_KEY}
        account = {"name": "tests", "credentials": [credentials], "actions": ["Admin"]}
        accounts.write_text(json.dumps({"identities": [account]}))
        s3, master, volume, filer, *grpc = self._ports
        return [
            *(self._binary, "-logtostderr", "server", f"-dir={data}"),
            *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false"),
            # A single master elects itself in one of these.
            *("-master.electionTimeout=1s", "-master.volumeSizeLimitMB=64", "-volume.max=100"),
            *(f"-master.port={master}", f"-master.port.grpc={grpc[0]}"),
            *(f"-volume.port={volume}", f"-volume.port.grpc={grpc[1]}"),
            *("-filer", f"-filer.port={filer}", f"-filer.port.grpc={grpc[2]}"),
            *("-s3", f"-s3.port={s3}", f"-s3.port.grpc={grpc[3]}", f"-s3.config={accounts}"),
            *("-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false"),
            *(f"-filer.localSocket={self._folder}/filer", f"-s3.localSocket={self._folder}/s3"),
        ]

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"weed ended at its start; see {self._folder}/weed.log")
        try:
            with urlopen(f"{self.endpoint}/healthz", timeout=1.0) as answer:
                return bool(answer.status < _SERVER_ERROR_STATUS)
        except OSError:
            return False


@contextmanager
def redis_server(folder: Path, password: str = "") -> Iterator[RedisServer]:
    server = RedisServer(folder, password)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    server = S3Server(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def _free_ports(count: int) -> list[int]:
    """Return different ports that are free now."""
    found: set[int] = set()
    while len(found) < count:
        found.add(free_port())
    return list(found)
