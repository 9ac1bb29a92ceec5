"""Classes and functions that run on the nodes of a Ray cluster; standard library and Ray only.

They travel by value, so that NNI need not be installed there. The process of the agent is tethered
to that of its actor: it holds the other end of a pipe, and ends the agent and its trials when the
actor has ended, however that came.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

STARTING: Final = "starting"
RUNNING: Final = "running"
ENDED: Final = "ended"
LINGER_S: Final = 600.0
"""An actor whose agent has ended, and that is not removed, releases its resources after this."""
_MARKER: Final = "NNI-WORKER "
_COMMAND_S: Final = 300.0
_SHOWN_CHARACTERS: Final = 500


def network_key() -> str:
    """Return the id of the network namespace: processes with the same one share a loopback."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return f"{boot}:{Path('/proc/self/ns/net').readlink()}"


def run_program(
    program: bytes, arguments: Sequence[str], content: bytes = b""
) -> tuple[bytes, bytes, int]:
    """Run the worker's program in a process of its own; return stdout, stderr, exit code.

    Args:
        program: its source.
        arguments: of the program.
        content: read by the program.
    """
    load = f"import sys; f = sys.stdin.buffer; exec(f.read({len(program)}))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", load, *arguments],
        input=program + content,
        capture_output=True,
        check=False,
        timeout=_COMMAND_S,
        cwd="/",
    )
    return done.stdout, done.stderr, done.returncode


class BundleActor:
    """Ray actor that holds a bundle, from which agents on other nodes fetch it.

    Args:
        content: of the bundle.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content

    def content(self) -> bytes:
        """Return the bundle."""
        return self._content


class AgentActor:
    """Ray actor that unpacks the bundle, runs one agent, and reports its phase and end.

    Args:
        plan: `name`, `digest`, `holder`, `namespace`, `folder`, `settings`, `program`.
    """

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._plan = plan
        self._phase = STARTING
        self._reason = ""
        self._tether: IO[bytes] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="agent")
        self._thread.start()

    def state(self) -> tuple[str, str, str]:
        """Return phase, host, and the reason of an end."""
        return self._phase, os.uname().nodename, self._reason

    def end(self, grace_s: float) -> None:
        """End the agent with its trials, and remove its folder."""
        self._command("remove", "--grace", str(grace_s), self._plan["name"])

    def _run(self) -> None:
        try:
            self._run_agent()
        except Exception as error:  # noqa: BLE001 - rim: the reason is shown by the fleet
            self._reason = f"{error}"[:_SHOWN_CHARACTERS]
        self._phase = ENDED
        self._release()

    def _release(self) -> None:
        """Release the resources of the actor, unless it is removed before."""
        time.sleep(LINGER_S)
        os._exit(0)

    def _run_agent(self) -> None:
        plan = self._plan
        settings = self._settings()
        # Marks the bundle as used: another pool may remove those that are not. It has no secret.
        self._command("settings", plan["name"], plan["digest"])
        found = self._command("probe")
        if plan["digest"] not in found["bundles"]:
            self._command("unpack", plan["digest"], content=self._fetch_bundle())
        process = subprocess.Popen(
            [
                *(found["interpreter"], "-I", "-S"),
                f"{found['folder']}/bundles/{plan['digest']}/run.py",
                *("worker", "--folder", found["folder"], "run"),
                *("--tether", str(len(settings)), plan["name"], plan["digest"]),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._tether = process.stdin  # open as long as this process runs
        process.stdin.write(settings)
        process.stdin.flush()
        process.wait()  # it forks: its child is not a child of this process, which Ray may kill
        with process.stdout as output:
            word = output.readline().decode("utf-8", "replace").strip()
            if word != "started":
                raise RuntimeError(word or "the agent did not start")
            self._phase = RUNNING
            output.read()
        self._reason = self._reason_of_end()

    def _settings(self) -> bytes:
        settings: Mapping[str, bytes] = self._plan["settings"]
        found = settings.get(network_key(), settings.get(""))
        if found is None:
            raise RuntimeError(
                f"{os.uname().nodename} does not reach NNI's services: no way in was open when the"
                " agent was launched"
            )
        return found

    def _fetch_bundle(self) -> bytes:
        import ray

        holder = ray.get_actor(self._plan["holder"], namespace=self._plan["namespace"])
        content: bytes = ray.get(holder.content.remote())
        return content

    def _reason_of_end(self) -> str:
        for found in self._command("status", self._plan["name"])["agents"]:
            if found["name"] == self._plan["name"]:
                return str(found.get("reason", ""))
        return ""

    def _command(self, *arguments: str, content: bytes = b"") -> dict[str, Any]:
        words = ["--folder", self._plan["folder"], *arguments]
        output, errors, code = run_program(self._plan["program"], words, content)
        for line in reversed(output.decode("utf-8", "replace").splitlines()):
            _, marker, text = line.partition(_MARKER)
            if marker:
                report: dict[str, Any] = json.loads(text)
                if "error" in report:
                    raise RuntimeError(report["error"]["message"])
                return report
        said = errors.decode("utf-8", "replace").strip()[-_SHOWN_CHARACTERS:]
        raise RuntimeError(f"{arguments[0]} ended with {code}: {said}")
