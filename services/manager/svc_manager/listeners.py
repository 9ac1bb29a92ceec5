"""The error of a port that somebody else holds."""

from svc_common.errors import FailedPreconditionError


class PortTakenError(FailedPreconditionError):
    """A listener cannot open because its port is in use.

    Args:
        port: the port.
        holder: who holds it, in words: `experiment abcd1234` or `program nginx (pid 12)`;
            empty if that cannot be told.
    """

    def __init__(self, port: int, holder: str) -> None:
        by = f" by {holder}" if holder else ""
        super().__init__(
            f"port {port} is in use{by}; choose another one with --port",
            {"field": "port", "value": str(port), "holder": holder},
        )
        self.port = port
        self.holder = holder
