"""Choice between a child process and an external server for an experiment's algorithm."""

from svc_common.access.transport import PLAIN, Transport
from svc_common.code_user import SAME_USER, CodeUser
from svc_dispatcher.adapters.child_host import ChildHostLauncher
from svc_dispatcher.adapters.server_host import ServerHostLauncher
from svc_dispatcher.domain.values import ExperimentSetup
from svc_dispatcher.ports import AlgorithmHost, HostSink


class SelectingHostLauncher:
    """`HostLauncher` that picks a child process or, if an address is set, an external server.

    Args:
        inherited: environment for child hosts whose experiment has none.
        transport: how servers on other machines are called.
        code_user: account of child hosts.
    """

    def __init__(
        self,
        inherited: dict[str, str],
        transport: Transport = PLAIN,
        code_user: CodeUser = SAME_USER,
    ) -> None:
        self._children = ChildHostLauncher(inherited, code_user)
        self._servers = ServerHostLauncher(transport)

    async def launch(self, setup: ExperimentSetup, sink: HostSink, *, eager: bool) -> AlgorithmHost:
        """Start an experiment's host at its external server, if set, else in a child process."""
        if setup.tuner is not None and setup.tuner.server_address:
            return await self._servers.launch(setup, sink, eager=eager)
        return await self._children.launch(setup, sink, eager=eager)
