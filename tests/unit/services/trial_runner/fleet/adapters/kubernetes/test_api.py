from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

from svc_trial_runner.fleet.adapters.kubernetes.api import KubernetesApi, refused
from svc_trial_runner.fleet.adapters.kubernetes.causes import KubernetesRefusalError
from svc_trial_runner.fleet.adapters.kubernetes.options import parse_options
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.json_server import JsonHandler, JsonServer, serving
from tests.support.kubernetes.api_server import KUBECONFIG, TOKEN, api_server

if TYPE_CHECKING:
    from tests.support.kubernetes.api_server import ApiServer

SECRETS = "/api/v1/namespaces/{namespace}/secrets"
PODS = "/api/v1/namespaces/{namespace}/pods"
PLUG_IN = """\
#!/bin/sh
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
printf ' "status": {"token": "%s"}}' """


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server() as one:
        yield one


@pytest.fixture
def api(server: ApiServer, tmp_path: Path) -> Iterator[KubernetesApi]:
    one = KubernetesApi(parse_options({"kubeconfig": str(server.kubeconfig(tmp_path))}))
    yield one
    one.close()
    one.close()


def test_namespace_is_that_of_the_context(api: KubernetesApi) -> None:
    assert api.connect() == "tuning"


@pytest.mark.parametrize(
    ("context", "namespace"),
    [("", "first"), ("one", "first"), ("two", "second"), ("three", "default")],
)
def test_namespace_is_that_of_the_chosen_context(
    server: ApiServer, tmp_path: Path, context: str, namespace: str
) -> None:
    kubeconfig = server.kubeconfig(tmp_path)
    parts = "{cluster: tests, user: someone"
    contexts = (
        f"contexts:\n- {{name: one, context: {parts}, namespace: first}}}}\n"
        f"- {{name: two, context: {parts}, namespace: second}}}}\n"
        f"- {{name: three, context: {parts}}}}}\n"
    )
    text = kubeconfig.read_text().replace("current-context: tests", "current-context: one")
    kubeconfig.write_text(re.sub(r"contexts:\n- .*\n", lambda _: contexts, text))
    options = {"kubeconfig": str(kubeconfig), "context": context}

    with closing(KubernetesApi(parse_options(options))) as api:
        assert api.connect() == namespace


def test_created_object_is_listed(api: KubernetesApi) -> None:
    api.request("POST", SECRETS, {"metadata": {"name": "a", "labels": {"pool": "b"}}})

    items, version = api.list(SECRETS, {"labelSelector": "pool=b"})

    assert [item["metadata"]["name"] for item in items] == ["a"]
    assert version
    assert api.list(SECRETS, {"labelSelector": "pool=c"})[0] == []


@pytest.mark.parametrize("forgets_pages", [False, True])
def test_list_of_several_pages_is_complete(
    server: ApiServer, api: KubernetesApi, *, forgets_pages: bool
) -> None:
    server.forgets_pages = forgets_pages
    for number in range(501):
        server.objects.create("events", {"metadata": {"name": f"event-{number}"}})

    items, _ = api.list("/api/v1/namespaces/{namespace}/events")

    assert len({item["metadata"]["name"] for item in items}) == 501


def test_refusal_has_the_status_of_the_server(api: KubernetesApi) -> None:
    with pytest.raises(KubernetesRefusalError, match='"a" not found') as caught:
        api.request("GET", f"{SECRETS}/a")

    assert caught.value.refusal.status == 404
    assert refused(caught.value).permanent


def test_plug_in_of_the_kubeconfig_gives_the_token(server: ApiServer, tmp_path: Path) -> None:
    program = tmp_path / "plug-in"
    program.write_text(f"{PLUG_IN}{TOKEN}\n")
    program.chmod(0o755)
    user = (
        f"{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {program},"
        " interactiveMode: Never}}"
    )
    api = KubernetesApi(parse_options({"kubeconfig": str(server.kubeconfig(tmp_path, user))}))

    assert api.request("GET", "/version")["major"] == "1"
    api.close()


def test_wrong_token_is_refused(server: ApiServer, tmp_path: Path) -> None:
    kubeconfig = server.kubeconfig(tmp_path, "{token: another}")
    api = KubernetesApi(parse_options({"kubeconfig": str(kubeconfig)}))

    with pytest.raises(KubernetesRefusalError, match="Unauthorized"):
        api.request("GET", "/version")
    api.close()


@pytest.mark.parametrize("content", ["", "a: [", "contexts: []", "current-context: x"])
def test_damaged_kubeconfig_is_a_permanent_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)

    with pytest.raises(PlatformError, match="credentials of the cluster") as caught:
        KubernetesApi(parse_options({"kubeconfig": str(path)})).connect()

    assert caught.value.permanent


def test_unknown_context_is_named(server: ApiServer, tmp_path: Path) -> None:
    options = {"kubeconfig": str(server.kubeconfig(tmp_path)), "context": "no-such"}

    with pytest.raises(PlatformError, match="no-such"):
        KubernetesApi(parse_options(options)).connect()


def test_server_that_is_away_is_an_error_that_may_pass(tmp_path: Path) -> None:
    with api_server() as server:
        kubeconfig = server.kubeconfig(tmp_path)
    api = KubernetesApi(parse_options({"kubeconfig": str(kubeconfig)}))

    with pytest.raises(PlatformError, match="cannot be reached") as caught:
        api.request("GET", "/version")
    api.close()

    assert not caught.value.permanent


def test_change_after_the_listed_version_ends_the_watch(
    server: ApiServer, api: KubernetesApi
) -> None:
    _, version = api.list(PODS)
    server.objects.create("pods", {"metadata": {"name": "a"}, "spec": {}})

    assert api.watch(PODS, version, 60, lambda: False, {})


def test_forgotten_version_ends_the_watch(server: ApiServer, api: KubernetesApi) -> None:
    _, version = api.list(PODS)
    server.objects.forget_history()

    assert api.watch(PODS, version, 60, lambda: False, {})


def test_watch_that_is_over_notices_no_change(server: ApiServer, api: KubernetesApi) -> None:
    _, version = api.list(PODS)
    server.objects.create("pods", {"metadata": {"name": "a"}, "spec": {}})

    assert api.watch(PODS, version, 60, lambda: True, {}) is False


def test_watch_ends_at_its_limit(api: KubernetesApi) -> None:
    _, version = api.list(PODS)

    assert not api.watch(PODS, version, 0, lambda: False, {})


def test_watch_is_ended_from_another_thread(api: KubernetesApi) -> None:
    _, version = api.list(PODS)
    begun, over = threading.Event(), threading.Event()

    def is_over() -> bool:
        begun.set()
        return over.is_set()

    thread = threading.Thread(target=api.watch, args=(PODS, version, 60, is_over, {}))
    thread.start()
    begun.wait()
    over.set()
    api.stop_watching()
    thread.join(10)

    assert not thread.is_alive()


def test_forbidden_watch_is_a_refusal(server: ApiServer, api: KubernetesApi) -> None:
    server.denied.add(("watch", "pods"))

    with pytest.raises(KubernetesRefusalError, match="cannot watch"):
        api.watch(PODS, "0", 60, lambda: False, {})


@pytest.mark.parametrize(("objects", "requests"), [(500, 1), (501, 2)])
def test_page_of_a_list_has_up_to_500_objects(
    server: ApiServer, api: KubernetesApi, objects: int, requests: int
) -> None:
    for number in range(objects):
        server.objects.create("events", {"metadata": {"name": f"event-{number}"}})

    items, _ = api.list("/api/v1/namespaces/{namespace}/events")

    assert len(items) == objects
    assert len(server.requests) == requests


def test_section_that_asks_for_the_account_of_a_pod_has_none_here(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path)))

    with pytest.raises(PlatformError, match="credentials of the cluster") as caught:
        KubernetesApi(parse_options({"inCluster": True})).connect()

    assert caught.value.permanent


def test_refused_watch_of_a_closed_connection_is_no_change(
    server: ApiServer, api: KubernetesApi
) -> None:
    _, version = api.list(PODS)
    server.objects.create("pods", {"metadata": {"name": "a"}, "spec": {}})
    api.close()

    assert api.watch(PODS, version, 60, lambda: False, {}) is False


def test_patch_merges_and_parameters_without_a_value_are_left_out(api: KubernetesApi) -> None:
    labels: dict[str, str] = {"a": "1", "b": "2"}
    api.request("POST", SECRETS, {"metadata": {"name": "a", "labels": labels}})

    api.request("PATCH", f"{SECRETS}/a", {"metadata": {"labels": {"b": "3"}}}, {"dryRun": None})

    assert api.request("GET", f"{SECRETS}/a")["metadata"]["labels"] == {"a": "1", "b": "3"}


class RecordingServer(JsonServer):
    """Server that takes every request, and notes its headers and the end of its connection."""

    def __init__(self) -> None:
        super().__init__(RecordingHandler)
        self.kinds: list[tuple[str, str | None]] = []
        self.accepted: list[str | None] = []
        self.closed = threading.Event()


class RecordingHandler(JsonHandler):
    server: RecordingServer

    def respond(self, method: str) -> None:
        self.server.kinds.append((method, self.headers.get("Content-Type")))
        self.server.accepted.append(self.headers.get("Accept"))
        self.body()
        self.send_json(200, {})

    def finish(self) -> None:
        super().finish()
        self.server.closed.set()


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[tuple[RecordingServer, KubernetesApi]]:
    with serving(RecordingServer(), "recording server") as server:
        kubeconfig = tmp_path / "kubeconfig"
        user = f"{{token: {TOKEN}}}"
        kubeconfig.write_text(KUBECONFIG.format(namespace="tests", port=server.port, user=user))
        with closing(KubernetesApi(parse_options({"kubeconfig": str(kubeconfig)}))) as api:
            yield server, api


def test_requests_name_the_kind_of_what_they_send(
    recording: tuple[RecordingServer, KubernetesApi],
) -> None:
    server, api = recording

    for method, body in (("GET", None), ("POST", {}), ("PATCH", {}), ("DELETE", None)):
        api.request(method, SECRETS, body)

    assert server.kinds == [
        ("GET", None),
        ("POST", "application/json"),
        ("PATCH", "application/merge-patch+json"),
        ("DELETE", None),
    ]
    assert set(server.accepted) == {"application/json"}


def test_closed_client_leaves_no_connection_open(
    recording: tuple[RecordingServer, KubernetesApi],
) -> None:
    server, api = recording
    api.request("GET", SECRETS)
    before = server.closed.is_set()

    api.close()

    assert not before
    assert server.closed.wait(10)
