"""Delegation: calls that one service makes on behalf of its own caller.

The token of a caller is simply forwarded. A client certificate cannot be: the connection to the
next service has a certificate of its own. Therefore the service sends the token of the installation
and names its caller; the next service checks and audits that caller as if it had called directly.
Only the holder of the installation's token may delegate, and no caller gains a right by it.
"""

from typing import Final

from nni_wire.metadata import bearer
from svc_common.access.authentication import Authenticator
from svc_common.access.roles import SERVICES_NAME, Caller, Role
from svc_common.errors import PermissionDeniedError

ON_BEHALF_KEY: Final = "nni-on-behalf-of"
"""Metadata key of a call and header of a request: `<role> <kind of credentials> <name>`."""


class Delegation:
    """Factory of call metadata by which a service calls another one on behalf of a caller.

    Args:
        authenticator: finds callers by their certificates.
        token: of the installation.
    """

    def __init__(self, authenticator: Authenticator, token: str) -> None:
        self._authenticator = authenticator
        self._token = token

    def metadata_of_certificate(self, common_name: str) -> tuple[tuple[str, str], ...]:
        """Return the metadata that names the caller with this certificate; empty: unknown."""
        caller = self._authenticator.find_caller("", common_name)
        return () if caller is None else self.metadata_of(caller)

    def metadata_of(self, caller: Caller) -> tuple[tuple[str, str], ...]:
        """Return call metadata with the installation's token and the role and name of a caller."""
        return (
            *bearer(self._token),
            (ON_BEHALF_KEY, f"{caller.role.word} {caller.by} {caller.name}"),
        )


def effective_caller(caller: Caller, on_behalf_of: str) -> Caller:
    """Return the caller that the delegation value names if the installation calls, else `caller`.

    Args:
        caller: owner of the credentials of the call.
        on_behalf_of: value of `ON_BEHALF_KEY`; empty: the call is not delegated.

    Raises:
        PermissionDeniedError: the value is malformed.
    """
    if not on_behalf_of or (caller.name, caller.role) != (SERVICES_NAME, Role.ADMIN):
        return caller
    parts = on_behalf_of.split(" ")
    try:
        role, by, name = parts
        return Caller(name, Role.of_word(role), by)
    except ValueError as error:  # wrong number of parts, or unknown role
        raise PermissionDeniedError(
            f"{ON_BEHALF_KEY} must be a role, how the caller was known, and a name"
        ) from error
