"""Context of the call that a task serves: its caller, and facts for its audit record."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from svc_common.access.roles import SERVICES_NAME, Caller, Role


@dataclass(slots=True)
class CurrentCall:
    """Caller of a call, and what its use case reports for the audit record."""

    caller: Caller
    folders: list[str] = field(default_factory=list)
    """Folders of this machine that the call has named, or has made the service use."""
    blob: str = ""
    """Key of the blob that the call uploads or downloads."""


_CALL: Final[ContextVar[CurrentCall | None]] = ContextVar("call", default=None)


@contextmanager
def serving(caller: Caller) -> Iterator[CurrentCall]:
    """Make a call the current one of this task until the block ends."""
    call = CurrentCall(caller)
    token = _CALL.set(call)
    try:
        yield call
    finally:
        _CALL.reset(token)


def start_serving(caller: Caller) -> CurrentCall:
    """Make a call the current one of this task, for good."""
    call = CurrentCall(caller)
    _CALL.set(call)
    return call


def is_owner() -> bool:
    """Return whether the caller holds the installation's own token, as its owner does.

    False outside of a call.
    """
    call = _CALL.get()
    if call is None:
        return False
    caller = call.caller
    return (caller.name, caller.role, caller.by) == (SERVICES_NAME, Role.ADMIN, "token")


def caller_name() -> str:
    """Return the name of the caller; empty: there is no call."""
    call = _CALL.get()
    return "" if call is None else call.caller.name


def audit_blob(key: str) -> None:
    """Name a blob in the audit record of the current call; without one, nothing happens."""
    call = _CALL.get()
    if call is not None:
        call.blob = key


def audit_folder(folder: str) -> None:
    """Name a folder in the audit record of the current call; without one, nothing happens."""
    call = _CALL.get()
    if call is not None and folder not in call.folders:
        call.folders.append(folder)
