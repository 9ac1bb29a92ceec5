"""Small PAI-DLC: the operations on jobs of its API (2020-12-03), with checked signatures.

The shapes are those of the documentation of Alibaba Cloud; jobs run nothing.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from svc_trial_runner.fleet.adapters.dlc.adapter import DlcAdapter
from svc_trial_runner.fleet.adapters.dlc.signature import AccessKey, authorization
from svc_trial_runner.fleet.domain.agents import PlatformSection
from tests.support.json_server import JsonHandler, JsonServer, serving
from tests.support.local_platforms import front_context

KEY = AccessKey("key-of-ann", "secret-of-ann")
_OVER = {"Succeeded", "Failed", "Stopped"}


class _RefusedError(Exception):
    """Refusal as Alibaba Cloud answers it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.answer = {"Code": code, "Message": message, "RequestId": "1"}


class DlcServer(JsonServer):
    """PAI-DLC of one user on a free port of loopback.

    Attributes:
        jobs: by id, with what was submitted.
        waits: True: new jobs stay in the queue.
        refusal: status, code and message with which each submission is refused; None: none is.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.lock = threading.Lock()
        self.jobs: dict[str, dict[str, Any]] = {}
        self.waits = False
        self.refusal: tuple[int, str, str] | None = None
        self._numbers = itertools.count(1)

    def job(self, name: str) -> dict[str, Any]:
        """Return the job with a display name."""
        (found,) = [one for one in self.jobs.values() if one["DisplayName"] == name]
        return found

    def answer(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Any:
        """Return the answer of a request.

        Raises:
            _RefusedError: it is refused.
        """
        with self.lock:
            match method, path.strip("/").split("/"):
                case "GET", ["api", "v1", "jobs"]:
                    return self._list(query)
                case "POST", ["api", "v1", "jobs"]:
                    return self._submit(json.loads(body))
                case "POST", ["api", "v1", "jobs", job, "stop"]:
                    self._known(job)["Status"] = "Stopped"
                    return {"JobId": job}
                case "DELETE", ["api", "v1", "jobs", job]:
                    if self._known(job)["Status"] not in _OVER:
                        raise _RefusedError(400, "InvalidStatus", f"job {job} is not over")
                    del self.jobs[job]
                    return {"JobId": job}
                case _:
                    raise _RefusedError(404, "InvalidAction.NotFound", "no such operation")

    def _list(self, query: Mapping[str, str]) -> dict[str, Any]:
        found = []
        for job in self.jobs.values():
            if job["Status"] == "Queuing" and not self.waits:
                job["Status"] = "Running"
            if query["DisplayName"] in job["DisplayName"]:
                found.append(dict(job))
        size, number = int(query["PageSize"]), int(query["PageNumber"])
        begin = size * (number - 1)
        return {"Jobs": found[begin : begin + size], "TotalCount": len(found)}

    def _submit(self, job: dict[str, Any]) -> dict[str, Any]:
        if self.refusal is not None:
            raise _RefusedError(*self.refusal)
        (spec,) = job["JobSpecs"]
        missing = [name for name in ("Type", "Image", "PodCount", "EcsSpec") if not spec.get(name)]
        if (
            missing
            or not job.get("UserCommand")
            or job.get("JobType") not in {"TFJob", "PyTorchJob"}
        ):
            raise _RefusedError(400, "InvalidParameter", f"invalid job: {missing}")
        number = f"dlc{next(self._numbers):06}"
        self.jobs[number] = {**job, "JobId": number, "Status": "Queuing"}
        return {"JobId": number}

    def _known(self, job: str) -> dict[str, Any]:
        if job not in self.jobs:
            raise _RefusedError(404, "JobNotFound", f"job {job} is not found")
        return self.jobs[job]


class _Handler(JsonHandler):
    server: DlcServer

    def respond(self, method: str) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        body = self.body()
        try:
            self._admit(method, parts.path, query, body)
            answer = self.server.answer(method, parts.path, query, body)
        except _RefusedError as error:
            self.send_json(error.status, error.answer)
        else:
            self.send_json(200, {"RequestId": "1", **answer})

    def _admit(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> None:
        """Raise _RefusedError unless the signature is that of the user for this request."""
        given = {name.lower(): value for name, value in self.headers.items()}
        _, _, rest = given.get("authorization", "").partition("SignedHeaders=")
        names = rest.partition(",")[0].split(";")
        headers = {name: given.get(name, "") for name in names}
        headers["x-acs-content-sha256"] = hashlib.sha256(body).hexdigest()
        if given.get("authorization") != authorization(KEY, method, path, query, headers):
            words = "The request signature does not conform to Aliyun standards."
            raise _RefusedError(400, "SignatureDoesNotMatch", words)


@contextmanager
def dlc_server() -> Iterator[DlcServer]:
    """Serve a PAI-DLC without jobs in a thread."""
    with serving(DlcServer(), "dlc") as server:
        yield server


def dlc_adapter(
    server: DlcServer,
    folder: Path,
    pool: str,
    installation: str,
    secret: str = KEY.secret,
    **options: object,
) -> DlcAdapter:
    """Return a new adapter of a pool, with further options; the NAS is a folder of the test."""
    nas = folder / "nas"
    nas.mkdir(exist_ok=True)
    section = {
        "image": "registry.example.org/trials:1",
        "ecsSpec": "ecs.c6.large",
        "region": "cn-hangzhou",
        "endpoint": server.address,
        "nasDataSourceId": "datat56by9n1xt0a",
        "accessKeyId": KEY.id,
        "localStorageMountPoint": str(nas),
        "pollIntervalSeconds": 0.05,
        **options,
    }
    secrets = {"accessKeySecret": secret} if secret else {}
    return DlcAdapter(
        front_context(folder / "dlc", installation, pool, PlatformSection("dlc", section, secrets))
    )
