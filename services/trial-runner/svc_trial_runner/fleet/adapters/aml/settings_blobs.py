"""Blobs with the settings of agents, in the container behind a workspace's default datastore."""

import re
from collections.abc import Callable
from email.utils import formatdate
from html import unescape
from typing import Final
from urllib.parse import quote, urlencode

from svc_trial_runner.fleet.adapters.aml.azure_requests import (
    AmlRefusalError,
    AzureRequests,
    TokenSource,
)
from svc_trial_runner.fleet.adapters.aml.workspace_api import BlobStoreLocation
from svc_trial_runner.fleet.adapters.http_requests import NOT_FOUND

SCOPE: Final = "https://storage.azure.com/.default"
_VERSION: Final = "2021-08-06"
_NAME: Final = re.compile(r"<Name>([^<]*)</Name>")
_MARKER: Final = re.compile(r"<NextMarker>([^<]+)</NextMarker>")


def blob_address(location: BlobStoreLocation) -> str:
    """Return the address of the storage account; always with TLS."""
    return f"https://{location.account}.blob.{location.endpoint}"


class SettingsBlobs:
    """Store of agents' settings, one blob each. All methods block.

    Args:
        location: of the datastore.
        installation: whose folder it is.
        tokens: login.
        address_of: returns the address of the storage account.
    """

    def __init__(
        self,
        location: BlobStoreLocation,
        installation: str,
        tokens: TokenSource,
        address_of: Callable[[BlobStoreLocation], str] = blob_address,
    ) -> None:
        self._container = f"/{quote(location.container, safe='')}"
        self._folder = f"nni-agents-{installation}"
        remedy = (
            "the user needs the role Storage Blob Data Contributor of the storage account "
            f"{location.account}"
        )
        self._requests = AzureRequests(address_of(location), SCOPE, tokens, remedy)

    def path(self, name: str) -> str:
        """Return the path of an agent's settings in the datastore."""
        return f"{self._folder}/{name}.json"

    def check(self) -> None:
        """Raise PlatformError unless blobs of the folder can be listed."""
        self._page("", "1")

    def names(self, prefix: str) -> list[str]:
        """Return the names, with a prefix, of the agents that have settings.

        Raises:
            PlatformError: the storage cannot be reached, or refuses.
        """
        found: list[str] = []
        marker = ""
        while True:
            page = self._page(prefix, "", marker)
            names = (path.rpartition("/")[2] for path in _NAME.findall(page))
            found += [name.removesuffix(".json") for name in names]
            match = _MARKER.search(page)
            following = "" if match is None else unescape(match[1])
            if following in {"", marker}:
                return found
            marker = following

    def write(self, name: str, content: bytes) -> None:
        """Write an agent's settings, replacing earlier ones.

        Raises:
            PlatformError: the storage cannot be reached, or refuses.
        """
        kind = {"x-ms-blob-type": "BlockBlob", "Content-Type": "application/json"}
        self._requests.send("PUT", self._target(name), content, {**_headers(), **kind})

    def remove(self, name: str) -> None:
        """Remove an agent's settings; do nothing if there are none.

        Raises:
            PlatformError: the storage cannot be reached, or refuses.
        """
        try:
            self._requests.send("DELETE", self._target(name), None, _headers())
        except AmlRefusalError as error:
            if error.status != NOT_FOUND:
                raise

    def _target(self, name: str) -> str:
        return f"{self._container}/{quote(self.path(name))}"

    def _page(self, prefix: str, most: str, marker: str = "") -> str:
        query = {"restype": "container", "comp": "list", "prefix": f"{self._folder}/{prefix}"}
        optional = {"maxresults": most, "marker": marker}
        given = urlencode(query | {name: text for name, text in optional.items() if text})
        return self._requests.send("GET", f"{self._container}?{given}", None, _headers())


def _headers() -> dict[str, str]:
    return {"x-ms-version": _VERSION, "x-ms-date": formatdate(usegmt=True)}
