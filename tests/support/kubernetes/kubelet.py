"""Stand-in for scheduler and kubelet: containers run as processes of this machine.

It speaks to the API server only, so it works with the real one too. Paths of a container are
replaced by folders of this machine in commands, variables and folders.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.kubernetes.api_server import TOKEN
from tests.support.kubernetes.objects import NAMESPACE

NODE = "node-1"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_RETRY_S = 0.05
_OVER = {"Succeeded", "Failed"}


class Kubelet:
    """One node, on which every pod has room.

    Args:
        port: of the API server on loopback.
        folder: of the pods' volumes and logs.
        path: folders of programs, in place of those of all images.
    """

    def __init__(self, port: int, folder: Path, path: str) -> None:
        self._port = port
        self._folder = folder
        self._path = path
        self.missing_images: set[str] = set()
        self.unschedulable = ""
        """Message with which pods stay unscheduled; empty: they are bound."""
        self._stopped = threading.Event()
        self._runs: dict[str, _PodRun] = {}
        self._watch: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._follow, name="kubelet")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Kill all containers."""
        self._stopped.set()
        watch = self._watch
        if watch is not None and watch.sock is not None:
            with suppress(OSError):
                watch.sock.shutdown(2)
        self._thread.join()
        for run in self._runs.values():
            run.stop()

    def kill(self, job: str) -> None:
        """Kill the containers of a job's pod, as the kernel does if memory runs out."""
        for name, run in list(self._runs.items()):
            if name.startswith(f"{job}-"):
                run.signal(signal.SIGKILL)

    def log(self) -> str:
        """Return the output of all containers."""
        logs = sorted(self._folder.glob("*/log"))
        return "".join(path.read_text("utf-8", "replace") for path in logs)

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Return the answer of the API server; its `code` is that of a refusal."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            kind = "merge-patch+json" if method == "PATCH" else "json"
            headers = {
                "Authorization": f"Bearer {TOKEN}",
                "Content-Type": f"application/{kind}",
            }
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, headers)
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()

    def _follow(self) -> None:
        version = "0"
        while not self._stopped.is_set():
            self._watch = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            try:
                path = f"{PODS}?watch=true&resourceVersion={version}&timeoutSeconds=30"
                self._watch.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
                response = self._watch.getresponse()
                if self._stopped.is_set():
                    return  # `stop` may have looked before there was a socket
                for line in response:
                    event = json.loads(line)
                    if event.get("type") in {None, "ERROR"}:  # refused, or begun too early
                        answer = self.request("GET", PODS).get("metadata", {})
                        version = answer.get("resourceVersion", version)
                        self._stopped.wait(_RETRY_S)
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._handle(event["type"], event["object"])
            except (OSError, ValueError, http.client.HTTPException):
                self._stopped.wait(_RETRY_S)
            finally:
                self._watch.close()

    def _handle(self, kind: str, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        run = self._runs.get(name)
        if kind == "DELETED":
            if run is not None:
                run.signal(signal.SIGKILL)
        elif pod["metadata"].get("deletionTimestamp"):
            if run is not None:
                run.end()
        elif run is None and pod["status"].get("phase") == "Pending":
            if self.unschedulable:
                self._leave_unscheduled(pod)
                return
            self._runs[name] = _PodRun(self, pod, self._folder / name, self._path)
            self._runs[name].start()

    def _leave_unscheduled(self, pod: dict[str, Any]) -> None:
        if pod["status"].get("conditions"):
            return
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        condition["message"] = self.unschedulable
        path = f"{PODS}/{pod['metadata']['name']}/status"
        self.request("PATCH", path, {"status": {"conditions": [condition]}})


class _PodRun:
    """Containers of one pod."""

    def __init__(self, kubelet: Kubelet, pod: dict[str, Any], folder: Path, path: str) -> None:
        self._kubelet = kubelet
        self._pod = pod
        self._folder = folder
        self._path = path
        self._name = pod["metadata"]["name"]
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name=f"pod {self._name}")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self.signal(signal.SIGKILL)
        self._thread.join()

    def end(self) -> None:
        """End the pod as its deletion does: TERM, and KILL after its grace."""
        if self._ended.is_set():
            return
        self._ended.set()
        grace_s = self._pod["spec"].get("terminationGracePeriodSeconds", 30)
        self.signal(signal.SIGTERM)
        timer = threading.Timer(grace_s, self.signal, (signal.SIGKILL,))
        timer.daemon = True
        timer.start()

    def signal(self, number: int) -> None:
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)

    @property
    def _is_over(self) -> bool:
        return self._stopped.is_set() or self._ended.is_set()

    def _run(self) -> None:
        target = {"kind": "Node", "name": NODE}
        metadata = {"name": self._name}
        self._request("POST", f"{PODS}/{self._name}/binding", metadata=metadata, target=target)
        phase = self._containers()
        if phase and not self._stopped.is_set():
            self._report(phase, self._states)
        if self._ended.is_set() and not self._stopped.is_set():
            self._request("DELETE", f"{PODS}/{self._name}?gracePeriodSeconds=0")

    def _request(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        try:
            return self._kubelet.request(method, path, body or None)
        except (OSError, ValueError, http.client.HTTPException):
            return {"code": 503}

    def _report(self, phase: str, states: Mapping[str, Mapping[str, Any]]) -> None:
        spec = self._pod["spec"]
        names = {"initContainerStatuses": "initContainers", "containerStatuses": "containers"}
        status: dict[str, Any] = {"phase": phase}
        for key, kind in names.items():
            status[key] = [
                {"name": one["name"], "state": states.get(one["name"], _WAITING)}
                for one in spec.get(kind, [])
            ]
        self._request("PATCH", f"{PODS}/{self._name}/status", status=status)

    def _containers(self) -> str:
        """Run the containers; return the phase in which the pod ends, or nothing."""
        spec = self._pod["spec"]
        self._states: dict[str, dict[str, Any]] = {}
        image = spec["containers"][0]["image"]
        if image in self._kubelet.missing_images:
            words = f'Failed to pull image "{image}": not found'
            waiting = {"waiting": {"reason": "ErrImagePull", "message": words}}
            self._report("Pending", {spec["containers"][0]["name"]: waiting})
            return ""
        self._report("Pending", {})
        if not self._materialise(spec.get("volumes", [])):
            return ""
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            is_main = container in spec["containers"]
            code = self._run_container(container, is_main=is_main)
            if code is None:
                return ""
            reason = "Completed" if code == 0 else "Error"
            end = {"exitCode": code if code >= 0 else 128 - code, "reason": reason}
            self._states[container["name"]] = {"terminated": end}
            if code:
                return "Failed"
        return "Succeeded"

    def _materialise(self, volumes: list[dict[str, Any]]) -> bool:
        """Make the folders of volumes; return whether all are there."""
        self._folder.mkdir(exist_ok=True)
        for volume in volumes:
            folder = self._folder / "volumes" / volume["name"]
            folder.mkdir(parents=True, exist_ok=True)
            if "secret" not in volume:
                continue
            path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{volume['secret']['secretName']}"
            secret = self._request("GET", path)
            while "data" not in secret:
                if self._is_over:
                    return False
                self._stopped.wait(_RETRY_S)
                secret = self._request("GET", path)
            for key, value in secret["data"].items():
                (folder / key).write_bytes(base64.b64decode(value))
                (folder / key).chmod(0o400)
        return True

    def _run_container(self, container: dict[str, Any], *, is_main: bool) -> int | None:
        """Run a container to its end; return its exit code, or None if it did not start."""
        mounts = {
            one["mountPath"]: str(self._folder / "volumes" / one["name"])
            for one in container.get("volumeMounts", [])
        }
        variables = {one["name"]: one.get("value", "") for one in container.get("env", [])}
        with self._lock, (self._folder / "log").open("ab") as log:
            if self._is_over:
                return None
            self._process = subprocess.Popen(
                [_replaced(word, mounts) for word in container["command"]],
                cwd=_replaced(container.get("workingDir", "/"), mounts),
                env={
                    "PATH": self._path,
                    **{name: _replaced(value, mounts) for name, value in variables.items()},
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if is_main:
            self._states[container["name"]] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
            self._report("Running", self._states)
        try:
            return self._process.wait()
        finally:
            _kill_session(self._process.pid)


def _kill_session(leader: int) -> None:
    """Kill what is left of a container when its first process has ended, as the kernel does."""
    for process in Path("/proc").iterdir():
        with suppress(ValueError, ProcessLookupError):
            if os.getsid(int(process.name)) == leader:
                os.kill(int(process.name), signal.SIGKILL)


_WAITING = {"waiting": {"reason": "ContainerCreating"}}


def _replaced(text: str, mounts: Mapping[str, str]) -> str:
    for path, folder in mounts.items():
        if text == path or text.startswith(f"{path}/"):
            return folder + text[len(path) :]
    return text


@contextmanager
def kubelet(port: int, folder: Path, path: str) -> Iterator[Kubelet]:
    """Run a node for the API server of a port."""
    node = Kubelet(port, folder, path)
    node.start()
    try:
        yield node
    finally:
        node.stop()
