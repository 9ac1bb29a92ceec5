"""The one module of the client side that reads the process environment."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_HOME_VARIABLE: Final = "NNI_HOME"
_DEFAULT_HOME: Final = "~/.local/state/nni"
_OF_ONE_TRIAL: Final = frozenset(
    {
        "NNI_PLATFORM",
        "NNI_EXP_ID",
        "NNI_SYS_DIR",
        "NNI_TRIAL_JOB_ID",
        "NNI_OUTPUT_DIR",
        "NNI_TRIAL_SEQ_ID",
        "NNI_CODE_DIR",
        "NNI_TRIAL_SOCKET",
        "NNI_TRIAL_TOKEN",
        "MULTI_PHASE",
    }
)
"""Variables of one trial; an experiment started inside a trial must not inherit them."""


ANSWER_S: Final = 10.0
"""Time in which services must answer an HTTP request."""
_ENDPOINT: Final = "NNI_ENDPOINT"
_ELSEWHERE: Final = (
    _ENDPOINT,
    "NNI_GRPC_ENDPOINT",
    "NNI_TOKEN",
    "NNI_TOKEN_FILE",
    "NNI_CA_FILE",
    "NNI_CLIENT_CERT_FILE",
    "NNI_CLIENT_KEY_FILE",
    "NNI_INSECURE",
)
"""Variables with the address and credentials of services on another machine; kept from trials."""
_GRPC_VERBOSITY: Final = "GRPC_VERBOSITY"


def quiet_grpc() -> None:
    """Silence gRPC's own log, such as that on a lost server, on the user's terminal.

    Works only before gRPC is imported; what the user has set stays.
    """
    os.environ.setdefault(_GRPC_VERBOSITY, "ERROR")


def services_are_elsewhere() -> bool:
    """Return whether NNI_ENDPOINT names services other than those of this installation."""
    return bool(os.environ.get(_ENDPOINT))


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """Addresses, token and certificates to reach services of another machine."""

    url: str
    """Base address of page and REST, `https://host:port`."""
    grpc: str = ""
    """`host:port` of gRPC; empty: the services tell it."""
    token: str = field(default="", repr=False)
    ca_file: str = ""
    """PEM authority that has signed the services; empty: those of the system."""
    certificate: str = ""
    """PEM certificate of this client; empty: it has none."""
    key: str = ""
    """PEM key of that certificate."""
    insecure: bool = False
    """True if the token may travel in plain text."""


def remote_settings(address: str = "") -> RemoteSettings | None:
    """Return the settings of services at an address, or in the environment; None if none is named.

    Args:
        address: base address of the services; empty: that of the environment.

    Raises:
        OSError: the file of the token cannot be read.
    """
    url = address or os.environ.get(_ENDPOINT)
    if not url:
        return None
    token_file = os.environ.get("NNI_TOKEN_FILE")
    token = os.environ.get("NNI_TOKEN", "")
    if token_file and not token:
        token = Path(token_file).expanduser().read_text("utf-8").strip()
    return RemoteSettings(
        url=url,
        grpc=os.environ.get("NNI_GRPC_ENDPOINT", ""),
        token=token,
        ca_file=os.environ.get("NNI_CA_FILE", ""),
        certificate=os.environ.get("NNI_CLIENT_CERT_FILE", ""),
        key=os.environ.get("NNI_CLIENT_KEY_FILE", ""),
        insecure=os.environ.get("NNI_INSECURE", "").lower() in {"1", "true", "yes"},
    )


def name_services(endpoint: str | None, token_file: str | None, ca_file: str | None) -> None:
    """Set variables of remote services from given options; a token file unsets NNI_TOKEN."""
    chosen = {_ENDPOINT: endpoint, "NNI_TOKEN_FILE": token_file, "NNI_CA_FILE": ca_file}
    for name, value in chosen.items():
        if value:
            os.environ[name] = value
    if token_file:
        os.environ.pop("NNI_TOKEN", None)


def nni_home() -> Path:
    """Return the folder of this installation's state; it need not exist."""
    return Path(os.environ.get(_HOME_VARIABLE) or _DEFAULT_HOME).expanduser()


def access_file() -> Path:
    """Return the path of the access file: NNI_ACCESS_FILE, else `access.json` of NNI_HOME."""
    named = os.environ.get("NNI_ACCESS_FILE")
    return Path(named).expanduser() if named else nni_home() / "access.json"


def experiment_environment() -> dict[str, str]:
    """Return this environment for trials: UTF-8, no settings of NNI, interpreter first on PATH.

    It is that of this process, except that the folder of this interpreter comes first on the
    PATH unless a virtual environment is active: `python3` in a trial command then finds the
    packages that were installed beside NNI. Variables that are no UTF-8 are left out.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in _OF_ONE_TRIAL
        and name not in _ELSEWHERE
        and _is_utf8(name)
        and _is_utf8(value)
    }
    if "VIRTUAL_ENV" not in environment and "CONDA_PREFIX" not in environment:
        folder = str(Path(sys.executable).parent)
        rest = environment.get("PATH", os.defpath)
        if rest.split(os.pathsep)[0] != folder:
            environment["PATH"] = folder + os.pathsep + rest
    return environment


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def supervisor_environment(
    ready_fd: int, *, private: bool | None = None, durability: str = ""
) -> dict[str, str]:
    """Return the environment of the local supervisor; it signals readiness on ``ready_fd``.

    Args:
        ready_fd: descriptor for the signal.
        private: whether reading over REST needs the token; `None`: as the environment says.
        durability: `process` or `power`; empty: as the environment says.
    """
    made = {**os.environ, _HOME_VARIABLE: str(nni_home()), "NNI_READY_FD": str(ready_fd)}
    if private is not None:
        made["NNI_PRIVATE"] = "yes" if private else "no"
    if durability:
        made["NNI_DURABILITY"] = durability
    return made
