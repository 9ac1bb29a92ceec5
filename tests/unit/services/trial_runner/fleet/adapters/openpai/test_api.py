from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from svc_trial_runner.fleet.adapters.json_answers import AnswerError
from svc_trial_runner.fleet.adapters.openpai.api import OpenpaiApi, OpenpaiRefusalError
from svc_trial_runner.fleet.adapters.openpai.options import OpenpaiOptions
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.json_server import fixed_answer
from tests.support.openpai_server import TOKEN, USER, openpai_server


class _LoginPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"<html>")

    def log_message(self, *args: object) -> None:
        """Log nothing."""


class _Redirector(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def redirector() -> Iterator[str]:
    with served(_Redirector) as address:
        yield address


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve a handler in a thread; yield the address."""
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_redirection_is_refused_and_gets_no_token(redirector: str) -> None:
    api = OpenpaiApi(OpenpaiOptions(host=redirector, username=USER), TOKEN)

    with pytest.raises(OpenpaiRefusalError, match="redirects to another address") as caught:
        api.jobs("0123abcd")

    assert caught.value.permanent


def test_login_page_is_no_empty_list_of_jobs() -> None:
    with served(_LoginPage) as address:
        api = OpenpaiApi(OpenpaiOptions(host=address, username=USER), TOKEN)

        with pytest.raises(PlatformError, match="the whole must be a list, got None") as caught:
            api.jobs("0123abcd")

    assert not caught.value.permanent


def test_address_where_nothing_listens_is_named() -> None:
    api = OpenpaiApi(OpenpaiOptions(host="http://127.0.0.1:1", username=USER), TOKEN)

    with pytest.raises(PlatformError, match=r"OpenPAI at http://127\.0\.0\.1:1 cannot be reached"):
        api.jobs("0123abcd")


def test_missing_job_has_a_code() -> None:
    with openpai_server() as server:
        api = OpenpaiApi(OpenpaiOptions(host=server.address, username=USER), TOKEN)

        with pytest.raises(OpenpaiRefusalError, match="is not found") as caught:
            api.job_status("nothing")
        api.stop("nothing")

    assert (caught.value.status, caught.value.code) == (404, "NoJobError")


NAME = "nni-0123abcd-exp-a-1"


@pytest.mark.parametrize(
    ("answer", "call", "words"),
    [
        ([7], lambda api: api.jobs("0123abcd"), r"\[0\] must be an object, got 7"),
        ({"data": {}}, lambda api: api.jobs("0123abcd"), r"data must be a list, got {}"),
        ({"message": "hi"}, lambda api: api.jobs("0123abcd"), "data must be a list, got None"),
        ({"data": ["x"]}, lambda api: api.jobs("0123abcd"), r"data\[0\] must be an object"),
        ([{}], lambda api: api.jobs("0123abcd"), r"\[0\]\.name must be a text .*, got None"),
        (
            [{"name": NAME, "state": {"RUNNING": 1}}],
            lambda api: api.jobs("0123abcd"),
            r"\[0\]\.state must be a text, got {'RUNNING': 1}",
        ),
        (["x"], lambda api: api.job_status(NAME), "the whole must be an object"),
        ({}, lambda api: api.job_status(NAME), "jobStatus must be an object, got None"),
        ({"jobStatus": "x"}, lambda api: api.job_status(NAME), "jobStatus must be an object"),
        ("yes", lambda api: api.submit({"name": NAME}), "the whole must be an object, got 'yes'"),
        ("yes", lambda api: api.stop(NAME), "the whole must be an object"),
        ([], lambda api: api.virtual_cluster("a"), "the whole must be an object"),
        ({"storages": "x"}, lambda api: api.storages(), "storages must be a list, got 'x'"),
        ({"storages": ["x"]}, lambda api: api.storages(), r"storages\[0\] must be an object"),
    ],
)
def test_answer_of_another_shape_is_one_error(
    answer: Any, call: Callable[[OpenpaiApi], object], words: str
) -> None:
    with fixed_answer(answer) as address:
        api = OpenpaiApi(OpenpaiOptions(host=address, username=USER), TOKEN)

        with pytest.raises(AnswerError, match=f"OpenPAI at {address} .*{words}") as caught:
            call(api)

    assert not caught.value.permanent
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("status", "permanent"),
    [
        (300, True),
        (302, True),
        (400, True),
        (401, False),
        (403, True),
        (429, False),
        (499, True),
        (500, False),
    ],
)
def test_only_refusals_of_the_request_are_permanent(status: int, *, permanent: bool) -> None:
    error = OpenpaiRefusalError(status, "", "no")

    assert error.permanent is permanent
    assert bool(error.remedy) is (status == 401)


class _Recorder(BaseHTTPRequestHandler):
    requests: ClassVar[list[tuple[str, str | None]]] = []

    def _record(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.command, self.headers["Content-Type"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = _record  # noqa: N815 - name of http.server
    do_PUT = _record  # noqa: N815 - name of http.server

    def log_message(self, *args: object) -> None:
        """Log nothing."""


def test_job_is_sent_as_yaml_and_its_stop_as_json() -> None:
    _Recorder.requests.clear()
    with served(_Recorder) as address:
        api = OpenpaiApi(OpenpaiOptions(host=address, username=USER), TOKEN)

        api.submit({"name": NAME})
        api.stop(NAME)

    assert _Recorder.requests == [("POST", "text/yaml"), ("PUT", "application/json")]


def test_jobs_are_those_of_the_user_and_the_installation() -> None:
    jobs = [
        {"name": NAME, "username": USER},
        {"name": f"{NAME}2"},
        {"name": f"{NAME}3", "username": "bob"},
        {"name": f"other-{NAME}", "username": USER},
    ]
    with fixed_answer(jobs) as address:
        api = OpenpaiApi(OpenpaiOptions(host=address, username=USER), TOKEN)

        assert [one["name"] for one in api.jobs("0123abcd")] == [NAME, f"{NAME}2"]


class _Refusing(BaseHTTPRequestHandler):
    answers: ClassVar[dict[str, tuple[int, bytes]]] = {
        "300": (300, b"{}"),
        "399": (399, b"{}"),
        "400": (400, b'{"code": "Bad", "message": "no  such"}'),
        "list": (400, b'["message"]'),
        "mute": (400, b'{"code": "Bad"}'),
        "empty": (400, b""),
        "long": (400, b'{"message": "' + b"a" * 500 + b'"}'),
        "page": (400, b"b" * 500),
    }

    def do_GET(self) -> None:
        status, content = self.answers[self.path.rpartition("~")[2]]
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("300", "OpenPAI redirects to another address; give that"),
        ("399", "OpenPAI redirects to another address; give that"),
        ("400", "no such"),
        ("list", 'HTTP status 400: ["message"]'),
        ("mute", 'HTTP status 400: {"code": "Bad"}'),
        ("empty", "HTTP status 400: no message"),
        ("long", "a" * 400),
        ("page", "HTTP status 400: " + "b" * 400),
    ],
)
def test_refusal_has_the_words_that_are_known(job: str, words: str) -> None:
    with served(_Refusing) as address:
        api = OpenpaiApi(OpenpaiOptions(host=address, username=USER), TOKEN)

        with pytest.raises(OpenpaiRefusalError) as caught:
            api.job_status(job)

    assert str(caught.value) == words


@pytest.mark.parametrize(("job", "code"), [("400", "Bad"), ("long", "")])
def test_refusal_has_the_code_if_there_is_one(job: str, code: str) -> None:
    with served(_Refusing) as address:
        api = OpenpaiApi(OpenpaiOptions(host=address, username=USER), TOKEN)

        with pytest.raises(OpenpaiRefusalError) as caught:
            api.job_status(job)

    assert caught.value.code == code


class _Paths(BaseHTTPRequestHandler):
    requests: ClassVar[list[tuple[str, str, str | None, bytes]]] = []

    def _record(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.requests.append((self.command, self.path, self.headers["Authorization"], body))
        content = b'{"data": [], "jobStatus": {}, "storages": [{"name": "a"}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = _record  # noqa: N815 - name of http.server
    do_POST = _record  # noqa: N815 - name of http.server
    do_PUT = _record  # noqa: N815 - name of http.server

    def log_message(self, *args: object) -> None:
        """Log nothing."""


def test_requests_have_the_paths_of_the_api_and_the_token() -> None:
    _Paths.requests.clear()
    with served(_Paths) as address:
        api = OpenpaiApi(OpenpaiOptions(host=address, username="a b"), "secret")
        assert api.jobs("0123abcd") == []
        api.job_status("a/b")
        api.submit({"b": 1, "a": 2})
        api.stop("c")
        api.virtual_cluster("d/e")
        assert api.storages() == ["a"]

    paths = [(method, path, body) for method, path, _, body in _Paths.requests]
    base = "/rest-server/api/v2"
    assert paths == [
        ("GET", f"{base}/jobs?username=a+b&keyword=nni-0123abcd-", b""),
        ("GET", f"{base}/jobs/a%20b~a%2Fb", b""),
        ("POST", f"{base}/jobs", b"b: 1\na: 2\n"),
        ("PUT", f"{base}/jobs/a%20b~c/executionType", b'{"value": "STOP"}'),
        ("GET", f"{base}/virtual-clusters/d%2Fe", b""),
        ("GET", f"{base}/storages", b""),
    ]
    assert {token for _, _, token, _ in _Paths.requests} == {"Bearer secret"}
