from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from svc_trial_runner.fleet.adapters.dlc.api import PAGE, DlcApi, DlcRefusalError
from svc_trial_runner.fleet.adapters.dlc.options import DlcOptions
from svc_trial_runner.fleet.adapters.json_answers import AnswerError
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.dlc_server import KEY, dlc_server
from tests.support.json_server import fixed_answer

JOB = {
    "JobType": "TFJob",
    "JobSpecs": [{"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "e"}],
    "UserCommand": "true",
}


def test_jobs_of_all_pages_are_listed() -> None:
    with dlc_server() as server:
        api = DlcApi(DlcOptions(endpoint=server.address, key_id=KEY.id), KEY.secret)
        for number in range(PAGE + 1):
            api.submit({**JOB, "DisplayName": f"nni-a-{number}"})
        api.submit({**JOB, "DisplayName": "other-nni-a-1"})

        assert len(api.jobs("nni-a-")) == PAGE + 1


class _SamePage(BaseHTTPRequestHandler):
    """Service that answers each page with the first one, and another address with HTML."""

    def do_GET(self) -> None:
        jobs = [{"JobId": str(number), "DisplayName": "nni-a-1"} for number in range(PAGE)]
        content = json.dumps({"Jobs": jobs}).encode()
        if "DisplayName=login" in self.path:
            content = b"<html>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def same_page() -> Iterator[DlcApi]:
    server = HTTPServer(("127.0.0.1", 0), _SamePage)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    yield DlcApi(DlcOptions(endpoint=address, key_id=KEY.id), KEY.secret)
    server.shutdown()
    thread.join()
    server.server_close()


def test_service_that_repeats_a_page_is_asked_no_further(same_page: DlcApi) -> None:
    assert len(same_page.jobs("nni-a-")) == PAGE


def test_login_page_is_no_empty_list_of_jobs(same_page: DlcApi) -> None:
    with pytest.raises(PlatformError, match="something else than a list of jobs"):
        same_page.jobs("login")


def test_job_that_is_gone_may_be_ended() -> None:
    with dlc_server() as server:
        api = DlcApi(DlcOptions(endpoint=server.address, key_id=KEY.id), KEY.secret)

        api.stop("nothing")
        api.delete("nothing")

        assert api.jobs("nothing") == []


def test_wrong_key_is_denied_without_its_secret() -> None:
    with dlc_server() as server:
        api = DlcApi(DlcOptions(endpoint=server.address, key_id=KEY.id), "wrong-secret")

        with pytest.raises(DlcRefusalError, match="does not conform") as caught:
            api.jobs("nni-")

    assert caught.value.denied
    assert "wrong-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "call", "words"),
    [
        ({"RequestId": "1"}, lambda api: api.jobs("nni-"), "Jobs must be a list, got None"),
        ({"Jobs": "x"}, lambda api: api.jobs("nni-"), "Jobs must be a list, got 'x'"),
        ({"Jobs": ["x"]}, lambda api: api.jobs("nni-"), r"Jobs\[0\] must be an object, got 'x'"),
        ({"Jobs": [{}]}, lambda api: api.jobs("nni-"), r"Jobs\[0\]\.JobId must be a text"),
        (
            {"Jobs": [{"JobId": "1", "DisplayName": 7}]},
            lambda api: api.jobs("nni-"),
            r"Jobs\[0\]\.DisplayName must be a text, got 7",
        ),
        (["x"], lambda api: api.submit(JOB), "JobId must be a text that is not empty, got None"),
        ({"JobId": 7}, lambda api: api.stop("1"), "JobId must be a text .*, got 7"),
        ("yes", lambda api: api.delete("1"), "JobId must be a text"),
    ],
)
def test_answer_of_another_shape_is_one_error(
    answer: Any, call: Callable[[DlcApi], object], words: str
) -> None:
    with fixed_answer(answer) as address:
        api = DlcApi(DlcOptions(endpoint=address, key_id=KEY.id), KEY.secret)

        with pytest.raises(AnswerError, match=f"PAI-DLC at {address} .*{words}") as caught:
            call(api)

    assert not caught.value.permanent


def test_list_that_is_empty_may_be_missing() -> None:
    with fixed_answer({"RequestId": "1", "TotalCount": 0}) as address:
        assert DlcApi(DlcOptions(endpoint=address, key_id=KEY.id), KEY.secret).jobs("nni-") == []


@pytest.mark.parametrize(
    ("status", "permanent", "denied"),
    [
        (300, True, False),
        (400, True, False),
        (401, False, True),
        (403, False, True),
        (429, False, False),
        (499, True, False),
        (500, False, False),
    ],
)
def test_only_refusals_of_the_request_are_permanent(
    status: int, *, permanent: bool, denied: bool
) -> None:
    error = DlcRefusalError(status, "", "no")

    assert (error.permanent, error.denied) == (permanent, denied)
    assert bool(error.remedy) is denied


@pytest.mark.parametrize("code", ["InvalidAccessKeyId.NotFound", "SignatureDoesNotMatch"])
def test_wrong_key_is_a_missing_right(code: str) -> None:
    error = DlcRefusalError(400, code, "no")

    assert error.denied
    assert "accessKeySecret" in error.remedy


@pytest.mark.parametrize("count", [PAGE - 1, PAGE])
def test_jobs_of_one_page_are_listed(count: int) -> None:
    with dlc_server() as server:
        api = DlcApi(DlcOptions(endpoint=server.address, key_id=KEY.id), KEY.secret)
        for number in range(count):
            server.jobs[str(number)] = {
                "JobId": str(number), "DisplayName": f"nni-a-{number}", "Status": "Running"
            }  # fmt: skip

        assert len(api.jobs("nni-a-")) == count


def test_list_that_is_missing_but_not_empty_is_an_error() -> None:
    with fixed_answer({"RequestId": "1", "TotalCount": 1}) as address:
        api = DlcApi(DlcOptions(endpoint=address, key_id=KEY.id), KEY.secret)

        with pytest.raises(AnswerError, match="Jobs must be a list"):
            api.jobs("nni-")


def test_job_that_is_not_over_cannot_be_deleted() -> None:
    with dlc_server() as server:
        api = DlcApi(DlcOptions(endpoint=server.address, key_id=KEY.id), KEY.secret)
        api.submit({**JOB, "DisplayName": "nni-a-1"})
        (job,) = server.jobs

        with pytest.raises(DlcRefusalError, match="is not over"):
            api.delete(job)


class _Recorder(BaseHTTPRequestHandler):
    requests: ClassVar[list[tuple[str, str, dict[str, str], bytes]]] = []

    def _record(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.requests.append((self.command, self.path, headers, body))
        content = b'{"JobId": "1", "Jobs": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = _record  # noqa: N815 - name of http.server
    do_POST = _record  # noqa: N815 - name of http.server
    do_DELETE = _record  # noqa: N815 - name of http.server

    def log_message(self, *args: object) -> None:
        """Log nothing."""


def test_requests_have_action_version_path_and_hash_of_the_content() -> None:
    _Recorder.requests.clear()
    server = HTTPServer(("127.0.0.1", 0), _Recorder)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    api = DlcApi(DlcOptions(endpoint=address, key_id="id", workspace="w"), "secret")
    try:
        assert api.jobs("nni a") == []
        api.submit({"DisplayName": "a"})
        api.stop("a/b")
        api.delete("c")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    assert [(method, path, body) for method, path, _, body in _Recorder.requests] == [
        (
            "GET",
            (
                "/api/v1/jobs?DisplayName=nni%20a&Order=desc&PageNumber=1&PageSize=50"
                "&SortBy=GmtCreateTime&WorkspaceId=w"
            ),
            b"",
        ),
        ("POST", "/api/v1/jobs", b'{"DisplayName": "a"}'),
        ("POST", "/api/v1/jobs/a%2Fb/stop", b""),
        ("DELETE", "/api/v1/jobs/c", b""),
    ]
    headers = [one for _, _, one, _ in _Recorder.requests]
    assert [one["x-acs-action"] for one in headers] == [
        "ListJobs", "CreateJob", "StopJob", "DeleteJob"
    ]  # fmt: skip
    assert {one["x-acs-version"] for one in headers} == {"2020-12-03"}
    assert [one.get("content-type") for one in headers] == [None, "application/json", None, None]
    for _, _, one, body in _Recorder.requests:
        assert one["x-acs-content-sha256"] == hashlib.sha256(body).hexdigest()
        assert one["authorization"].startswith("ACS3-HMAC-SHA256 Credential=id,SignedHeaders=")
        assert "secret" not in str(one)
    assert len({one["x-acs-signature-nonce"] for one in headers}) == 4
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", one["x-acs-date"]) for one in headers
    )


def test_address_where_nothing_listens_is_named() -> None:
    api = DlcApi(DlcOptions(endpoint="http://127.0.0.1:1", key_id="id"), "secret")

    with pytest.raises(PlatformError, match=r"PAI-DLC at http://127\.0\.0\.1:1 cannot be reached"):
        api.jobs("nni-")
