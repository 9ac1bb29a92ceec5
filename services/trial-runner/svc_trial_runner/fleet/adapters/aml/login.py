"""Login to Azure by the package `azure-identity`, which is imported in a child process only."""

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from azure.core.exceptions import AzureError
from azure.identity import DefaultAzureCredential

from svc_trial_runner.fleet.adapters.aml.adapter import AmlAdapter
from svc_trial_runner.fleet.adapters.aml.azure_requests import LoginError
from svc_trial_runner.fleet.ports import AdapterContext

RENEWAL_S: Final = 300.0
"""A token that is valid for a shorter time is replaced."""
_SHOWN_CHARACTERS: Final = 300
_CLI: Final = "AzureCliCredential:"


class AzureToken(Protocol):
    """Interface of a token of `azure.identity`."""

    @property
    def token(self) -> str:
        """The token itself."""
        ...

    @property
    def expires_on(self) -> int:
        """Seconds since 1970."""
        ...


class AzureCredential(Protocol):
    """Interface of a credential of `azure.identity`, which is not always installed."""

    def get_token(self, scope: str) -> AzureToken:
        """Return a new token for a resource."""
        ...


class AzureLogin:
    """`TokenSource` of the credentials that Azure's own tools use.

    These are, in this order: variables such as `AZURE_CLIENT_ID`, a managed identity, and the
    login of `az login`.

    Args:
        credential: of `azure.identity`; None: the default one.
        now: returns the seconds since 1970.
    """

    def __init__(
        self,
        credential: AzureCredential | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._credential: AzureCredential = credential or DefaultAzureCredential()
        self._now = now
        self._tokens: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def token(self, scope: str) -> str:
        """Return a token, requested again 5 minutes before its end; see `TokenSource`.

        The credential of `az login` has no cache, and starts a process for each token.
        """
        with self._lock:
            token, expires_s = self._tokens.get(scope, ("", 0.0))
            if expires_s - self._now() > RENEWAL_S:
                return token
            try:
                new = self._credential.get_token(scope)
            except AzureError as error:
                remedy = "run az login as the user of NNI's services, and try again"
                raise LoginError(_words_of(error), remedy) from error
            self._tokens[scope] = new.token, float(new.expires_on)
            return self._tokens[scope][0]


def _words_of(error: Exception) -> str:
    """Return the line of the error about `az login`, else the beginning of the error.

    The error of the default credential has a line for each way to log in.
    """
    lines = [" ".join(line.split()) for line in str(error).splitlines()]
    of_cli = [line for line in lines if line.startswith(_CLI)]
    return " ".join(of_cli or lines)[:_SHOWN_CHARACTERS] or type(error).__name__


def aml_adapter(context: AdapterContext) -> AmlAdapter:
    """Return the adapter of a pool with the login of the user of NNI's services."""
    return AmlAdapter(context, AzureLogin())
