"""Running converted code in this process, with a configuration and without an experiment."""

from __future__ import annotations

from typing import Any

from nni.annotation import runtime
from nni.trial.api import use_channel


class Trial:
    """The trial side of a trial: gives one configuration and keeps what is reported."""

    def __init__(self, parameters: object) -> None:
        self._parameters = parameters
        self.reports: list[tuple[str, object]] = []
        self.fetched = 0

    def parameters(self, index: int) -> object:
        """Give the configuration, at the first call only."""
        self.fetched += 1
        return self._parameters if index == 0 else None

    def report(self, kind: str, value: object) -> None:
        """Keep a metric."""
        self.reports.append((kind, value))

    def run(self, code: bytes, **names: Any) -> dict[str, Any]:
        """Run a converted module and give its names."""
        runtime.forget()
        use_channel(self)
        try:
            namespace: dict[str, Any] = {"__name__": "converted", **names}
            exec(compile(code, "converted.py", "exec"), namespace)  # what is tested
            return namespace
        finally:
            use_channel(None)
            runtime.forget()
