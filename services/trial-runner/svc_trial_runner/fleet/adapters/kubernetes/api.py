"""Requests to the API server of a cluster: the only place where the client's errors are caught."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
import yaml
from kubernetes import config as kube_config
from kubernetes.client import ApiClient, Configuration

from svc_trial_runner.fleet.adapters.kubernetes.causes import (
    GONE,
    KubernetesRefusalError,
    parse_refusal,
    platform_error,
)
from svc_trial_runner.fleet.adapters.kubernetes.options import KubernetesOptions
from svc_trial_runner.fleet.ports import PlatformError

CONNECT_LIMIT_S: Final = 10.0
ANSWER_LIMIT_S: Final = 30.0
PAGE: Final = 500
"""Most objects of one page of a list."""
DEFAULT_NAMESPACE: Final = "default"
IN_CLUSTER_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_LOGIN_ERRORS: Final = (
    kube_config.ConfigException, OSError, ValueError, TypeError, KeyError, yaml.YAMLError,
)  # fmt: skip
"""Errors of the client about a kubeconfig, its files and plug-ins."""
_LINE_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""Longest event of a watch: an object has at most 1.5 MB."""


class KubernetesApi:
    """Blocking connection to one cluster by the official client; each call runs in a thread.

    The client reads kubeconfig or service account, runs exec plug-ins and renews tokens. Objects
    are plain JSON, so that servers of other versions than the client's are no difference.

    Args:
        options: of the section.
    """

    def __init__(self, options: KubernetesOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._client: Any = None
        self._namespace = options.namespace
        self._watched: set[urllib3.BaseHTTPResponse] = set()
        self._closed = False

    def connect(self) -> str:
        """Read the credentials unless they are known; return the namespace of the section.

        Raises:
            PlatformError: there are none, or they cannot be read.
        """
        with self._lock:
            if self._client is None:
                self._client, namespace = _open_client(self._options)
                self._namespace = self._options.namespace or namespace
            return self._namespace

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Send a request to the API server; return its JSON object; raise if it refuses.

        Args:
            method: of HTTP; `PATCH` merges.
            path: from `/api` or `/apis` on; `{namespace}` in it is that of the section.
            body: object to send; it is never logged.
            query: parameters; those that are None are left out.

        Raises:
            KubernetesRefusalError: the server refuses.
            PlatformError: it cannot be reached, or takes no more requests now.
        """
        response = self._send(method, path, body, query or {}, ANSWER_LIMIT_S)
        try:
            text = response.data.decode("utf-8", "replace")
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from error
        finally:
            response.release_conn()
        answer = _parsed(text)
        if response.status >= 400:  # noqa: PLR2004 - errors of HTTP
            raise KubernetesRefusalError(parse_refusal(response.status, answer, text))
        return answer if isinstance(answer, dict) else {}

    def list(
        self, path: str, query: Mapping[str, object] | None = None
    ) -> tuple[list[dict[str, Any]], str]:
        """Return all objects of a list, page by page, and the version of the list.

        A list that changes for minutes between two pages (410 Gone) is asked for as a whole.
        """
        items: list[dict[str, Any]] = []
        asked: dict[str, object] = {**(query or {}), "limit": PAGE}
        while True:
            try:
                page = self.request("GET", path, query=asked)
            except KubernetesRefusalError as error:
                if error.refusal.status != GONE or "limit" not in asked:
                    raise
                items, asked = [], {**(query or {})}
                continue
            items += page.get("items") or []
            metadata = page.get("metadata", {})
            if not metadata.get("continue"):
                return items, str(metadata.get("resourceVersion", ""))
            asked["continue"] = metadata["continue"]

    def watch(
        self,
        path: str,
        version: str,
        limit_s: int,
        is_over: Callable[[], bool],
        query: Mapping[str, object],
    ) -> bool:
        """Wait for a change of a list; return whether one came before the limit or `is_over`.

        A version that the server has forgotten (410 Gone) counts as a change.

        Args:
            path: of the list.
            version: of the list that is known.
            limit_s: after which the server ends the watch.
            is_over: returns whether the watch shall end; called after it has begun.
            query: parameters of the list.

        Raises:
            KubernetesRefusalError: the server refuses.
            PlatformError: it cannot be reached.
        """
        given = {**query, "watch": "true", "resourceVersion": version, "timeoutSeconds": limit_s}
        response = self._send("GET", path, None, given, limit_s + ANSWER_LIMIT_S)
        with self._lock:
            self._watched.add(response)
            closed = self._closed
        try:
            if closed or is_over():
                return False
            if response.status == GONE:
                return True
            if response.status >= 400:  # noqa: PLR2004 - errors of HTTP
                text = response.data.decode("utf-8", "replace")
                raise KubernetesRefusalError(parse_refusal(response.status, _parsed(text), text))
            return any(_is_change(line) for line in _lines(response))
        except (urllib3.exceptions.HTTPError, OSError) as error:
            if is_over() or self._closed:
                return False
            raise self._unreachable(error) from error
        finally:
            with self._lock:
                self._watched.discard(response)
            response.close()

    def stop_watching(self) -> None:
        """Shut down the connections of all watches, so that their threads return soon."""
        with self._lock:
            for response in self._watched:
                try:
                    response.shutdown()
                except (OSError, RuntimeError, ValueError):
                    continue  # it is over

    def close(self) -> None:
        """End watches and connections. May be called twice."""
        self._closed = True
        self.stop_watching()
        with self._lock:
            if self._client is not None:
                self._client.rest_client.pool_manager.clear()

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, object],
        limit_s: float,
    ) -> urllib3.BaseHTTPResponse:
        namespace = self.connect()
        given = {name: str(value) for name, value in query.items() if value is not None}
        url = f"{self._client.configuration.host}{path.replace('{namespace}', namespace)}"
        headers = {"Accept": "application/json", **self._authorization()}
        if body is not None:
            kind = "merge-patch+json" if method == "PATCH" else "json"
            headers["Content-Type"] = f"application/{kind}"
        try:
            response: urllib3.BaseHTTPResponse = self._client.rest_client.pool_manager.request(
                method,
                f"{url}?{urlencode(given)}" if given else url,
                body=None if body is None else json.dumps(body),
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_LIMIT_S, read=limit_s),
                retries=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._unreachable(error) from error
        return response

    def _authorization(self) -> dict[str, str]:
        """Return the authorization header, its token renewed if expired; raise if that fails."""
        with self._lock:
            try:
                settings = self._client.configuration.auth_settings()
            except _LOGIN_ERRORS as error:
                raise _login_error(error) from error
        return {one["key"]: one["value"] for one in settings.values() if one.get("value")}

    def _unreachable(self, error: Exception) -> PlatformError:
        host = self._client.configuration.host
        return PlatformError(
            f"the API server {host} cannot be reached: {str(error)[:300]}",
            "is the cluster up, and context the right one? `kubectl cluster-info` tries the same",
        )


def refused(error: KubernetesRefusalError) -> PlatformError:
    """Convert a refusal of the API server to a PlatformError."""
    return platform_error(error.refusal)


def _open_client(options: KubernetesOptions) -> tuple[Any, str]:
    """Open a client by kubeconfig or the pod's service account; return it and its namespace."""
    configuration = Configuration()
    try:
        if _is_in_cluster(options):
            kube_config.load_incluster_config(configuration)  # type: ignore[no-untyped-call] # no types
            namespace = IN_CLUSTER_NAMESPACE.read_text("utf-8").strip()
        else:
            file = options.kubeconfig or None
            kube_config.load_kube_config(  # type: ignore[no-untyped-call] # no types
                file, options.context or None, client_configuration=configuration
            )
            namespace = _namespace_of_context(file, options.context)
    except _LOGIN_ERRORS as error:
        raise _login_error(error) from error
    return ApiClient(configuration), namespace or DEFAULT_NAMESPACE


def _is_in_cluster(options: KubernetesOptions) -> bool:
    if options.in_cluster is not None:
        return options.in_cluster
    if options.kubeconfig or options.context:
        return False
    # The library reads the variable KUBECONFIG, in which several files are separated by colons.
    places = str(kube_config.KUBE_CONFIG_DEFAULT_LOCATION).split(":")
    return IN_CLUSTER_NAMESPACE.exists() and not any(
        Path(place).expanduser().exists() for place in places
    )


def _namespace_of_context(file: str | None, name: str) -> str:
    contexts, current = kube_config.list_kube_config_contexts(  # type: ignore[no-untyped-call] # no types
        file
    )
    chosen = next((one for one in contexts if one["name"] == name), current)
    return str(chosen.get("context", {}).get("namespace", ""))


def _login_error(error: Exception) -> PlatformError:
    return PlatformError(
        f"the credentials of the cluster cannot be read: {str(error)[:300]}",
        "give kubeconfig and context, as `kubectl config get-contexts` shows them",
        permanent=True,
    )


def _parsed(text: str) -> object:
    try:
        answer: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the complete lines of a watch as they arrive; raise if one is over 4 MiB."""
    rest = b""
    for part in response.stream(None):
        *lines, rest = (rest + part).split(b"\n")
        yield from lines
        if len(rest) > _LINE_LIMIT_BYTES:
            raise urllib3.exceptions.HTTPError("an event of the watch is too long")


def _is_change(line: bytes) -> bool:
    """Return whether an event of a watch is more than a bookmark."""
    event = _parsed(line.decode("utf-8", "replace"))
    return isinstance(event, dict) and event.get("type") != "BOOKMARK"
