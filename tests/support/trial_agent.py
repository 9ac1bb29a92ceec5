"""Agent side of the trial channel, in a thread, for tests of its clients."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any, Self

TOKEN = "secret"


class TrialAgent:
    """Agent of one trial: returns its parameters and records its metrics."""

    def __init__(self, folder: Path, parameters: object = None) -> None:
        self.path = folder / "agent.sock"
        self.parameters = [parameters]
        """Sets of parameters by index: more than one for a multi-phase trial."""
        self.metrics: list[tuple[str, int, Any]] = []
        """Type, sequence and value of each accepted metric, in order."""
        self.checkpoints: list[int | None] = []
        """Steps of the checkpoints that the trial has completed."""
        self.checkpoint_warning: str | None = None
        """When set, checkpoints are answered with this warning."""
        self.greetings: list[int] = []
        """Process ids of the connections."""
        self.refusal: str | None = None
        """When set, every report is refused with this text."""
        self.hold = threading.Event()
        """Clear it to keep reports from being answered until it is set again."""
        self.hold.set()
        self.held = threading.Event()
        """Set when a report waits for `hold`."""
        self.offers_next = False
        """Whether the process may go on with another trial."""
        self.hang_up_at_next = False
        """Whether the connection is closed when the process asks for another trial."""
        self.successors: list[tuple[dict[str, Any], Path]] = []
        """Trials for the process: `next` of the reply, and the file of both outputs."""
        self._connections: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        for thread in self._threads:
            thread.join(10)

    def hang_up(self) -> None:
        """Close the existing connections."""
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def environment(self) -> dict[str, str]:
        """Return the variables of a trial of this agent."""
        return {
            "NNI_PLATFORM": "local",
            "NNI_EXP_ID": "exp1",
            "NNI_TRIAL_JOB_ID": "trial1",
            "NNI_TRIAL_SEQ_ID": "7",
            "NNI_OUTPUT_DIR": str(self.path.parent / "output"),
            "NNI_TRIAL_SOCKET": str(self.path),
            "NNI_TRIAL_TOKEN": TOKEN,
            "MULTI_PHASE": "false",
        }

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=[connection], daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines, contextlib.suppress(ConnectionError):
            for line in lines:  # until the trial closes the connection
                if json.loads(line)["op"] == "next" and self.successors:
                    self._hand_over(connection, *self.successors.pop(0))
                    continue
                if json.loads(line)["op"] == "next" and self.hang_up_at_next:
                    return
                reply = json.dumps(self._answer(json.loads(line)))
                connection.sendall(f"{reply}\n".encode())

    def _hand_over(self, connection: socket.socket, trial: dict[str, Any], output: Path) -> None:
        reply = json.dumps({"ok": True, "next": trial})
        with output.open("ab") as file:
            socket.send_fds(connection, [f"{reply}\n".encode()], [file.fileno(), file.fileno()])

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        operation = request["op"]
        if operation == "hello":
            if request["token"] != TOKEN:
                return {"ok": False, "error": "token is not that of this trial"}
            self.greetings.append(request["pid"])
            reply = {"ok": True, "experiment": "exp1", "trial": "trial1", "sequence": 7}
            return {**reply, "next": True} if self.offers_next else reply
        if operation == "next":
            return {"ok": True, "next": None}
        if operation == "parameters":
            index = request.get("parameter_index", 0)
            known = index < len(self.parameters)
            parameters = self.parameters[index] if known else None
            return {"ok": True, "parameter_id": 3, "parameters": parameters}
        if operation == "checkpoint":
            self.checkpoints.append(request.get("step"))
            warning = self.checkpoint_warning
            return {"ok": True, "step": 1} if warning is None else {"ok": True, "warning": warning}
        return self._take_over(request["type"], request["value"])

    def _take_over(self, kind: str, value: object) -> dict[str, Any]:
        if self.refusal is not None:
            return {"ok": False, "error": self.refusal}
        if not self.hold.is_set():
            self.held.set()
            self.hold.wait(10)
        with self._lock:
            sequence = sum(1 for other, _, _ in self.metrics if other == kind)
            self.metrics.append((kind, sequence, value))
        return {"ok": True}
