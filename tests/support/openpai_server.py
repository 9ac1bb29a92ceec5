"""Small OpenPAI: the paths of its REST API (v2) that the platform `openpai` uses.

The shapes are those of OpenPAI's own description of the API; jobs run nothing.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from tests.support.json_server import JsonHandler, JsonServer, serving

TOKEN = "token-of-ann"
USER = "ann"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,255}\Z")
_ROLE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
_OVER = {"STOPPED", "SUCCEEDED", "FAILED"}


class _RefusedError(Exception):
    """Refusal as OpenPAI answers it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.answer = {"code": code, "message": message}


class OpenpaiServer(JsonServer):
    """OpenPAI of one user on a free port of loopback.

    Attributes:
        summaries: of the jobs by name; a change of `state` is a change of the job.
        jobs: documents that were submitted, by name.
        waits: True: new jobs stay in the queue.
        refusal: status, code and message with which each submission is refused; None: none is.
        collected: names of ended jobs that the controller has no more.
        details: answer to each request for a job's details; None: those of the job.
        stops_slowly: True: a stopped job is STOPPING until its `state` is changed.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.lock = threading.Lock()
        self.summaries: dict[str, dict[str, Any]] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.waits = False
        self.refusal: tuple[int, str, str] | None = None
        self.collected: set[str] = set()
        self.details: Any = None
        self.stops_slowly = False

    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> Any:
        """Return the answer of a request.

        Raises:
            _RefusedError: it is refused.
        """
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[:3] != ["rest-server", "api", "v2"]:
            raise _RefusedError(404, "NoApiError", f"API {path} is not found.")
        with self.lock:
            match method, parts[3:]:
                case "GET", ["jobs"]:
                    return self._list(query)
                case "POST", ["jobs"]:
                    return self._submit(yaml.safe_load(body))
                case "GET", ["jobs", name]:
                    return self._details(name) if self.details is None else self.details
                case "PUT", ["jobs", name, "executionType"]:
                    return self._stop(name, json.loads(body)["value"])
                case "GET", ["virtual-clusters", name]:
                    if name != "default":
                        words = f"Virtual cluster {name} is not found."
                        raise _RefusedError(404, "NoVirtualClusterError", words)
                    return {"capacity": 100}
                case "GET", ["storages"]:
                    return {"storages": [{"name": "datasets", "share": True, "volumeName": "v"}]}
                case _:
                    raise _RefusedError(404, "NoApiError", f"API {path} is not found.")

    def _list(self, query: dict[str, str]) -> list[dict[str, Any]]:
        found = []
        for job in self.summaries.values():
            if job["state"] == "WAITING" and not self.waits:
                job |= {"state": "RUNNING", "subState": "AttemptRunning"}
            if query.get("username", USER) == USER and query.get("keyword", "") in job["name"]:
                found.append(dict(job))
        return found

    def _submit(self, job: dict[str, Any]) -> dict[str, str]:
        if self.refusal is not None:
            raise _RefusedError(*self.refusal)
        name = str(job["name"])
        if name in self.jobs:
            raise _RefusedError(409, "ConflictJobError", f"Job name {name} already exists.")
        broken = _broken_rule(job)
        if broken:
            raise _RefusedError(400, "InvalidProtocolError", broken)
        self.jobs[name] = job
        self.summaries[name] = {
            "name": name,
            "username": USER,
            "state": "WAITING",
            "subState": "AttemptCreationPending",
            "executionType": "START",
            "virtualCluster": "default",
        }
        return {"message": f"update job {name} successfully"}

    def _job(self, path: str) -> dict[str, Any]:
        user, _, name = path.partition("~")
        if user != USER or name not in self.summaries:
            raise _RefusedError(404, "NoJobError", f"Job {path} is not found.")
        return self.summaries[name]

    def _details(self, path: str) -> dict[str, Any]:
        job = self._job(path)
        failed = job["state"] == "FAILED"
        status = {
            **job,
            "appExitCode": 137 if failed else None,
            "appExitSpec": {"phrase": "ContainerOOMKilled"} if failed else None,
            "appExitDiagnostics": "the container was killed" if failed else None,
        }
        return {"name": job["name"], "jobStatus": status, "taskRoles": {}}

    def _stop(self, path: str, value: str) -> dict[str, str]:
        job = self._job(path)
        if job["name"] in self.collected:
            raise _RefusedError(404, "NoJobError", f"Job {path} is not found.")
        assert value == "STOP"
        job["executionType"] = value
        if job["state"] not in _OVER:
            job |= (
                {"state": "STOPPING", "subState": "AttemptDeleting"}
                if self.stops_slowly
                else {"state": "STOPPED", "subState": "Completed"}
            )
        return {"message": f"execute job {path} successfully"}


def _broken_rule(job: dict[str, Any]) -> str:
    """Return which rule of the job protocol a document breaks; empty: none."""
    if str(job.get("protocolVersion")) != "2" or job.get("type") != "job":
        return "protocolVersion must be 2, type must be job"
    if not _NAME.match(job["name"]):
        return "name must match ^[a-zA-Z0-9_-]+$"
    images = {one["name"] for one in job["prerequisites"] if one["type"] == "dockerimage"}
    for name, role in job["taskRoles"].items():
        if not _ROLE.match(name):
            return f"the name of the task role {name} must be a variable of C"
        if role.get("dockerImage") not in images:
            return f"the image of {name} is no prerequisite"
        resources = role.get("resourcePerInstance") or {}
        if not all(isinstance(resources.get(one), int) for one in ("cpu", "memoryMB", "gpu")):
            return f"resourcePerInstance of {name} must have cpu, memoryMB and gpu"
        if not role.get("commands"):
            return f"commands of {name} must be given"
    return ""


def _admit(authorization: str | None) -> None:
    if authorization != f"Bearer {TOKEN}":
        raise _RefusedError(401, "UnauthorizedUserError", "Your token is invalid.")


class _Handler(JsonHandler):
    server: OpenpaiServer

    def respond(self, method: str) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        body = self.body()
        try:
            _admit(self.headers.get("Authorization"))
            answer = self.server.answer(method, parts.path, query, body)
        except _RefusedError as error:
            self.send_json(error.status, error.answer)
        else:
            self.send_json(200 if method == "GET" else 202, answer)


@contextmanager
def openpai_server() -> Iterator[OpenpaiServer]:
    """Serve an OpenPAI without jobs in a thread."""
    with serving(OpenpaiServer(), "openpai") as server:
        yield server
