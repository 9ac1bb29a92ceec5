"""Context of the call that a task serves: its caller, and facts for its audit record."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from svc_common.access.roles import SERVICES_NAME, Caller, Role


@dataclass(slots=True)
class CurrentCall:
    """Current call of a task: its caller, and the folders and blob to name in the audit record."""

    caller: Caller
    folders: list[str] = field(default_factory=list)
    """Folders of this machine that the call has named, or has made the service use."""
    blob: str = ""
    """Key of the blob that the call uploads or downloads."""


_CALL: Final[ContextVar[CurrentCall | None]] = ContextVar("call", default=None)


@contextmanager
def serving(caller: Caller) -> Iterator[CurrentCall]:
    """Make a call by ``caller`` the current one of this task inside the block; yield the call."""
    call = CurrentCall(caller)
    token = _CALL.set(call)
    try:
        yield call
    finally:
        _CALL.reset(token)


def start_serving(caller: Caller) -> CurrentCall:
    """Make a call by ``caller`` the current one of this task, without a reset; return it."""
    call = CurrentCall(caller)
    _CALL.set(call)
    return call


def is_owner() -> bool:
    """Return whether the current call has the installation's own token; False without a call."""
    call = _CALL.get()
    if call is None:
        return False
    caller = call.caller
    return (caller.name, caller.role, caller.by) == (SERVICES_NAME, Role.ADMIN, "token")


def is_administrator() -> bool:
    """Return whether the current caller has the role `admin`; True without a call."""
    call = _CALL.get()
    return call is None or call.caller.role is Role.ADMIN


def may_act_for(name: str) -> bool:
    """Return whether the current caller has this name or is an administrator; True without a call.

    Args:
        name: of a caller; empty: it is not known.
    """
    call = _CALL.get()
    return call is None or call.caller.role is Role.ADMIN or (bool(name) and caller_name() == name)


def caller_name() -> str:
    """Return the name of the caller; empty: there is no call."""
    call = _CALL.get()
    return "" if call is None else call.caller.name


def limited_agent() -> Caller | None:
    """Return the caller if it is an agent that is limited to its own trials; None: it is not."""
    call = _CALL.get()
    return call.caller if call is not None and call.caller.pool else None


def audit_blob(key: str) -> None:
    """Set the blob key in the audit record of the current call; do nothing without a call."""
    call = _CALL.get()
    if call is not None:
        call.blob = key


def audit_folder(folder: str) -> None:
    """Add a folder to the audit record of the current call; do nothing without a call."""
    call = _CALL.get()
    if call is not None and folder not in call.folders:
        call.folders.append(folder)
