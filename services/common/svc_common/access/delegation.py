"""Calls that one service makes for somebody else.

A caller with a token is passed on by that token. One with a client certificate cannot be: the
connection to the next service has a certificate of its own. So the service shows the secret of the
installation and says for whom it asks; who asks is checked and written down as if they had come
themselves. Only the holder of that secret is believed, and nobody gains a right by it.
"""

from typing import Final

from nni_wire.metadata import bearer
from svc_common.access.authentication import Authenticator
from svc_common.access.roles import SERVICES_NAME, Caller, Role
from svc_common.errors import PermissionDeniedError

ON_BEHALF_KEY: Final = "nni-on-behalf-of"
"""Metadata of a call, and header of a request: `<role> <how the caller was known> <name>`."""


class Delegation:
    """Says for whom this service calls another one.

    Args:
        authenticator: knows callers by their certificates.
        token: of the installation.
    """

    def __init__(self, authenticator: Authenticator, token: str) -> None:
        self._authenticator = authenticator
        self._token = token

    def of_certificate(self, common_name: str) -> tuple[tuple[str, str], ...]:
        """Return the metadata that stands for a client certificate; none if nobody has it."""
        caller = self._authenticator.recognise("", common_name)
        if caller is None:
            return ()
        return (
            *bearer(self._token),
            (ON_BEHALF_KEY, f"{caller.role.word} {caller.by} {caller.name}"),
        )


def effective_caller(caller: Caller, on_behalf_of: str) -> Caller:
    """Return whose rights a call has.

    Args:
        caller: whose credentials it shows.
        on_behalf_of: value of `ON_BEHALF_KEY`; empty: the caller's own.

    Raises:
        PermissionDeniedError: it is no value that a service sends.
    """
    if not on_behalf_of or (caller.name, caller.role) != (SERVICES_NAME, Role.ADMIN):
        return caller
    parts = on_behalf_of.split(" ")
    try:
        role, by, name = parts
        return Caller(name, Role.of_word(role), by)
    except ValueError as error:  # other parts, or no such role
        raise PermissionDeniedError(
            f"{ON_BEHALF_KEY} must be a role, how the caller was known, and a name"
        ) from error
