"""Trials of an exploration as its strategy's process sees them: lines on two pipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nni.hpo.host.command_pipe import CommandPipe
from nni.nas.execution.trial_platform import (
    CandidateAdded,
    CandidateEnded,
    CandidateLost,
    CandidateMetric,
    CandidateScheduled,
    PlatformClosed,
    PlatformEvent,
    PlatformLimits,
    PlatformOpened,
)


class PipeTrials:
    """`TrialPlatform` whose experiment belongs to the NAS service, at the other end of two pipes.

    Args:
        pipe: receives candidates and trials to stop.
        lines: lines of the service after the first one, each decoded.
    """

    def __init__(self, pipe: CommandPipe, lines: Iterator[dict[str, Any]]) -> None:
        self._pipe = pipe
        self._lines = lines
        self._parameters: dict[str, Mapping[str, Any]] = {}
        """Parameters by key, of candidates of an earlier process."""
        self._added: set[str] = set()
        self._keys: dict[str, str] = {}
        """Keys by trial, of the same."""

    def open(self, experiment_id: str | None) -> str:
        """Return the given id, "" for None; the service has opened the experiment already."""
        return experiment_id or ""

    def add(self, key: str, parameters: Mapping[str, Any]) -> None:
        """Send a candidate to the service."""
        self._added.add(key)
        self._pipe.write({"candidate": key, "parameters": dict(parameters)})

    def kill(self, trial_id: str) -> None:
        """Ask the service to stop a trial; do nothing if it has ended."""
        self._pipe.write({"kill": trial_id})

    def parameters(self, trial_id: str) -> Mapping[str, Any]:
        """Remove and return an earlier process's trial parameters; KeyError for any other trial."""
        return self._parameters.pop(self._keys.pop(trial_id), {})

    def events(self, *, follow: bool) -> Iterator[PlatformEvent]:
        """Yield the events not yielded before, in order; without `follow`, those of the past.

        Args:
            follow: true: until the pipe is closed; false: those before the start of the process.
        """
        for line in self._lines:
            if line["op"] == "live":
                if not follow:
                    return
                continue
            event = self._event_of(line)
            if event is not None:
                yield event

    def _event_of(self, line: dict[str, Any]) -> PlatformEvent | None:
        match line["op"]:
            case "added":
                return self._add_known(line["key"], line["parameters"])
            case "scheduled":
                if line["key"] not in self._added:
                    self._keys[line["trial_id"]] = line["key"]
                return CandidateScheduled(line["key"], line["trial_id"])
            case "lost":
                return CandidateLost(line["key"])
            case "metric":
                return CandidateMetric(line["key"], line["value"], line["is_final"])
            case "ended":
                return CandidateEnded(line["key"], line["succeeded"])
            case "closed":
                return PlatformClosed(line["reason"], line["is_final"])
            case "opened":
                return PlatformOpened()
            case "concurrency":
                return PlatformLimits(None, line["value"])
        return None

    def _add_known(self, key: str, parameters: Mapping[str, Any]) -> PlatformEvent:
        if key not in self._added:
            self._parameters[key] = parameters
        return CandidateAdded(key, parameters)

    def close(self) -> None:
        """Do nothing: the service ends the experiment, and closing its pipe ends `events`."""
