"""Small API server that speaks what the platform `kubernetes` needs, in the shapes of the real one.

The shapes are those of the documentation; they were not compared with a real server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.json_server import JsonHandler, JsonServer, serving
from tests.support.kubernetes.objects import NAMESPACE, ClusterObjects, RefusedError, missing
from tests.support.kubernetes.operators import OPERATORS

TOKEN = "token-of-the-user"
_GROUP_PARTS = 3
"""Parts of the path of an API group in a version."""
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: tests
contexts:
- {{name: tests, context: {{cluster: tests, user: someone, namespace: {namespace}}}}}
clusters:
- {{name: tests, cluster: {{server: "http://127.0.0.1:{port}"}}}}
users:
- name: someone
  user: {user}
"""


class ApiServer(JsonServer):
    """Server of the objects of one namespace on a free port of loopback.

    Attributes:
        objects: of the cluster.
        denied: verb and resource of requests that are forbidden.
        broken: status that every request gets instead of an answer; 0: none.
        forgets_pages: whether each second page of a list is refused with 410.
        invalid: path and message of a field that makes each job invalid; None: all are valid.
        operators: API groups of the operators that are installed.
        requests: methods and URLs of all requests.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.objects = ClusterObjects()
        self.denied: set[tuple[str, str]] = set()
        self.broken = 0
        self.forgets_pages = False
        self.invalid: tuple[str, str] | None = None
        self.operators = {one.group for one in OPERATORS}
        self.requests: list[tuple[str, str]] = []

    def kubeconfig(self, folder: Path, user: str = f"{{token: {TOKEN}}}") -> Path:
        """Return a kubeconfig of this server."""
        path = folder / "kubeconfig"
        path.write_text(KUBECONFIG.format(namespace=NAMESPACE, port=self.port, user=user))
        return path


@contextmanager
def api_server() -> Iterator[ApiServer]:
    """Serve a new cluster in a thread."""
    with serving(ApiServer(), "api server") as server, closing(server.objects):
        yield server


class _Handler(JsonHandler):
    server: ApiServer

    def respond(self, method: str) -> None:
        self.server.requests.append((method, self.path))
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        body = self.body()
        try:
            self._admit()
            if query.get("watch"):
                self._watch(parts.path, query)
                return
            given = json.loads(body) if body else {}
            answer = _answer(self.server, method, parts.path, query, given)
        except RefusedError as error:
            self.send_json(error.code, error.status)
        else:
            self.send_json(201 if method == "POST" else 200, answer)

    def _admit(self) -> None:
        if self.server.broken:
            raise RefusedError(self.server.broken, "InternalError", "etcdserver: no leader")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise RefusedError(401, "Unauthorized", "Unauthorized")

    def _watch(self, path: str, query: dict[str, str]) -> None:
        resource = path.rpartition("/")[2]
        _check_allowed(self.server, "watch", resource)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        events = self.server.objects.watch(
            resource,
            int(query.get("resourceVersion") or 0),
            query.get("labelSelector", ""),
            float(query.get("timeoutSeconds", 60)),
        )
        try:
            for event in events:
                content = json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except OSError:  # the client has gone
            self.close_connection = True


def _check_allowed(server: ApiServer, verb: str, resource: str) -> None:
    if (verb, resource) in server.denied:
        words = f'{resource} is forbidden: User "someone" cannot {verb} resource "{resource}"'
        raise RefusedError(403, "Forbidden", words)


def _answer(
    server: ApiServer, method: str, path: str, query: dict[str, str], body: dict[str, Any]
) -> dict[str, Any]:
    parts = path.strip("/").split("/")
    if path == "/version":
        return {"major": "1", "minor": "30", "gitVersion": "v1.30.0"}
    if parts[-1] == "selfsubjectaccessreviews":
        asked = body["spec"]["resourceAttributes"]
        allowed = (asked["verb"], asked["resource"]) not in server.denied
        return {**body, "status": {"allowed": allowed}}
    found = [one for one in OPERATORS if parts[:2] == ["apis", one.group]]
    if found and found[0].group in server.operators and len(parts) == _GROUP_PARTS:
        return {"kind": "APIResourceList", "resources": [{"name": one.plural} for one in found]}
    if found and found[0].group not in server.operators:
        raise RefusedError(404, "NotFound", "the server could not find the requested resource")
    if parts[:2] == ["apis", "scheduling.k8s.io"]:
        return server.objects.get("priorityclasses", parts[-1])
    if "namespaces" not in parts:
        raise RefusedError(404, "NotFound", "the server could not find the requested resource")
    namespace, *rest = parts[parts.index("namespaces") + 1 :]
    if namespace != NAMESPACE:
        raise missing("namespaces", namespace)
    if not rest:
        return server.objects.get("namespaces", namespace)
    return _namespaced(server, method, rest, query, body)


def _namespaced(
    server: ApiServer, method: str, rest: list[str], query: dict[str, str], body: dict[str, Any]
) -> dict[str, Any]:
    resource, name, part = (*rest, "", "")[:3]
    objects = server.objects
    collection = "list" if not name else "get"
    verbs = {"GET": collection, "POST": "create", "PATCH": "patch", "DELETE": "delete"}
    _check_allowed(server, verbs[method], resource)
    match method, part:
        case "GET", _ if name:
            return objects.get(resource, name)
        case "GET", _:
            return _page(server, resource, query)
        case "POST", "binding":
            return _bind(objects, name, body)
        case "POST", _:
            return _create(server, resource, query, body)
        case "PATCH", "status":
            return objects.patch(resource, name, {"status": body["status"]})
        case "PATCH", _:
            return objects.patch(resource, name, body)
    return _delete(objects, resource, name, query)


def _page(server: ApiServer, resource: str, query: dict[str, str]) -> dict[str, Any]:
    if "continue" in query and server.forgets_pages:
        raise RefusedError(410, "Expired", "The provided continue parameter is too old")
    items, version = server.objects.list(
        resource, query.get("labelSelector", ""), query.get("fieldSelector", "")
    )
    begin, count = int(query.get("continue", 0)), int(query.get("limit", len(items) or 1))
    metadata = {"resourceVersion": str(version)}
    if begin + count < len(items):
        metadata["continue"] = str(begin + count)
    return {"kind": "List", "metadata": metadata, "items": items[begin : begin + count]}


def _bind(objects: ClusterObjects, name: str, body: dict[str, Any]) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "True"}
    node = {"spec": {"nodeName": body["target"]["name"]}, "status": {"conditions": [condition]}}
    return objects.patch("pods", name, node)


def _create(
    server: ApiServer, resource: str, query: dict[str, str], body: dict[str, Any]
) -> dict[str, Any]:
    if resource == "jobs" and server.invalid is not None:
        field, message = server.invalid
        words = f'Job.batch "{body["metadata"]["name"]}" is invalid: {field}: {message}'
        causes = [{"reason": "FieldValueInvalid", "message": message, "field": field}]
        raise RefusedError(422, "Invalid", words, causes)
    if query.get("dryRun") == "All":
        return body
    return server.objects.create(resource, body)


def _delete(
    objects: ClusterObjects, resource: str, name: str, query: dict[str, str]
) -> dict[str, Any]:
    grace = query.get("gracePeriodSeconds")
    grace_s = None if grace is None else float(grace)
    if name:
        objects.delete(resource, name, grace_s)
    else:
        for item in objects.list(resource, query.get("labelSelector", ""))[0]:
            objects.delete(resource, item["metadata"]["name"], grace_s)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
