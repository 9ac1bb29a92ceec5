"""Interfaces that the fleet needs from outside: platforms, bundles and credentials."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from svc_common.errors import ServiceError
from svc_trial_runner.fleet.domain.agents import (
    AgentCredentials,
    AgentName,
    AgentOrder,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
    PlatformSection,
)
from svc_trial_runner.fleet.domain.invitations import JoinedMachine
from svc_trial_runner.fleet.domain.leftovers import Leftover


class PlatformError(ServiceError):
    """Error of a platform that cannot be reached or refuses.

    Attributes:
        remedy: what a person can do about it; empty: nothing is known.
        permanent: True if another try cannot succeed before the configuration is changed.
    """

    def __init__(self, message: str, remedy: str = "", *, permanent: bool = False) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.permanent = permanent

    def problem(self, field: str, value: str = "") -> PlatformProblem:
        """Return the error as a broken rule of a field, unless it names a field of its own."""
        return PlatformProblem(field, str(self), value, self.remedy, permanent=self.permanent)


class PlatformAdapter(Protocol):
    """Interface of one platform of one pool: starts, lists and terminates its agents.

    Every method may be called again after a failure or a kill at any instant: it continues from
    what is on the platform. Calls of one adapter do not overlap, except `wait_changed` and
    `aclose`. Blocking work runs off the event loop. Errors that the platform reports are values or
    `PlatformError`; both carry the platform's own words.
    """

    async def check(self) -> list[PlatformProblem]:
        """Return problems of the section, after asking the platform; start nothing."""
        ...

    async def prepare(self) -> None:
        """Bring to the platform what its agents need (bundle, relay), unless it has it already.

        Raises:
            PlatformError: the platform cannot be reached or refuses.
        """
        ...

    async def capacity(self) -> int | None:
        """Return how many agents the platform can have at once; None: it has no limit of its own.

        For `remote` it is the number of machines.
        """
        ...

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Start agents; return those that were not started.

        An order whose agent exists on the platform is done already: none is launched twice.

        Raises:
            PlatformError: the platform cannot be reached.
        """
        ...

    async def agents(self) -> list[PlatformAgent]:
        """Return the agents of this pool and installation on the platform, ended ones included.

        Raises:
            PlatformError: the platform cannot be reached.
        """
        ...

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """End agents, with their trials, and forget them; do nothing for those that are gone.

        Raises:
            PlatformError: the platform cannot be reached.
        """
        ...

    async def clean(self) -> None:
        """Remove everything of this pool and installation from the platform, agents included.

        Raises:
            PlatformError: the platform cannot be reached.
        """
        ...

    async def wait_changed(self) -> None:
        """Wait until the result of `agents` may have changed."""
        ...

    async def aclose(self) -> None:
        """Release connections; agents on the platform live on. May be called twice."""
        ...


@runtime_checkable
class PlatformCleaner(Protocol):
    """Interface of an adapter that finds its installation's leftovers; removes those of no pool.

    All adapters of this distribution have it. It is called on an adapter of a pool that does not
    exist; what is found is removed by `clean` of an adapter of its pool.
    """

    async def leftovers(self) -> list[Leftover]:
        """Return the leftovers of all pools of the installation on the platform.

        Raises:
            PlatformError: the platform, or one of its machines, cannot be reached.
        """
        ...

    async def clean_rest(self) -> None:
        """Remove things of no pool, such as bundles that no agent uses.

        Raises:
            PlatformError: the platform, or one of its machines, cannot be reached.
        """
        ...


@dataclass(frozen=True, slots=True)
class InstallationEndpoints:
    """Addresses of bus and manager as this machine reaches them."""

    bus: str
    """`nats://host:port`."""
    manager_grpc: str
    """`host:port`."""


class BundleStore(Protocol):
    """Interface of packed agents: all that a machine with Python needs to run one."""

    async def bundle(self, python: tuple[int, int], platform_tag: str) -> Path:
        """Return a bundle for a worker's Python, made once; its file name has its content hash.

        Args:
            python: major and minor version of the worker's interpreter.
            platform_tag: of its wheels, e.g. `manylinux_2_17_x86_64`.

        Raises:
            PlatformError: a distribution is missing; the message names it and how to get it.
        """
        ...


class CredentialStore(Protocol):
    """Interface of agents' credentials at bus and manager: issue, replacing earlier, and revoke."""

    async def issue(self, name: AgentName) -> AgentCredentials:
        """Return new credentials of an agent; earlier ones of the same name are revoked."""
        ...

    async def revoke(self, names: Sequence[AgentName]) -> None:
        """Revoke credentials; connections that use them are closed."""
        ...


@dataclass(frozen=True, slots=True)
class FrontEndpoint:
    """Address of the open TLS front for agents elsewhere, and its authority's certificate."""

    address: str
    """`host:port` that other machines reach: of the manager, and of the bus after `tls://`."""
    authority: str
    """Certificate, in PEM, of the authority that has signed the front's own."""


class Front(Protocol):
    """Interface of the installation's TLS front, a reverse proxy to bus and manager."""

    async def open(self) -> FrontEndpoint:
        """Return the address of the TLS front, opened if it is not open; safe to repeat.

        Raises:
            PlatformError: it cannot be opened: no port is free, or a package is missing.
        """
        ...


class FrontRegistry(Protocol):
    """Interface of the TLS front towards the fleet: it is open while a platform uses it."""

    def of_platform(self, pool: str, key: str, host: str = "") -> Front:
        """Return the TLS front of one platform of a pool; nothing is opened.

        Args:
            pool: the pool.
            key: of the platform.
            host: name or address by which its agents reach the front; empty: the installation's.
        """
        ...

    async def release(self, pool: str) -> None:
        """Unregister a pool from the TLS front, which closes after its last user."""
        ...


class ObservableFront(Protocol):
    """Interface of the TLS front for publishing its state: endpoint, wait for a change."""

    @property
    def endpoint(self) -> FrontEndpoint | None:
        """Address and authority; None: the TLS front is closed."""
        ...

    async def wait_changed(self, known: FrontEndpoint | None) -> None:
        """Wait until the endpoint differs from a known one."""
        ...


class JoinedMachines(Protocol):
    """Interface of the record, by pool, of enrolled machines and expired invitations."""

    async def of_pool(self, pool: str) -> list[JoinedMachine]:
        """Return the machines of a pool, ended ones included.

        Raises:
            PlatformError: they cannot be read.
        """
        ...

    async def put(self, pool: str, machine: JoinedMachine) -> None:
        """Add a machine, or replace its record; it is on the disk at the return.

        Raises:
            PlatformError: it cannot be written.
        """
        ...

    async def expired(self, pool: str) -> set[str]:
        """Return the ids of a pool's invitations that are known to have expired.

        Raises:
            PlatformError: they cannot be read.
        """
        ...

    async def put_expired(self, pool: str, invitation_ids: Collection[str]) -> None:
        """Replace the ids of a pool's expired invitations; they are on the disk at the return.

        Raises:
            PlatformError: they cannot be written.
        """
        ...


@dataclass(frozen=True, slots=True)
class AdapterContext:
    """Context of an adapter: installation, pool, section, endpoints, bundles, folder, front."""

    installation: str
    pool: str
    section: PlatformSection
    endpoints: InstallationEndpoints
    bundles: BundleStore
    folder: Path
    """Private folder of this pool and platform on this machine, for keys, sockets and logs."""
    front: Front
    """Way in for agents on machines that do not reach loopback."""
    front_host: str = ""
    """`nniManagerIp` of the configuration, by which agents reach the front; empty: not given."""


AdapterFactory = Callable[[AdapterContext], PlatformAdapter]
"""Makes the adapter of one platform; does no I/O."""


class PlatformOpener(Protocol):
    """Interface that opens the adapter of a platform by its name, with its secrets."""

    async def open(
        self, pool: str, key: str, platform: str, options: Mapping[str, object], secrets_id: str
    ) -> PlatformAdapter:
        """Return a new adapter for one platform of a pool.

        Args:
            pool: whose agents it launches.
            key: of the platform in its pool; names the adapter's private folder.
            platform: `local`, `remote`, ...
            options: of the section, without secret values.
            secrets_id: of the section's secret values; empty: it has none.

        Raises:
            PlatformError: no such platform is installed, or the secrets are missing.
        """
        ...

    async def forget(self, pool: str, key: str = "") -> None:
        """Remove the private folders of a pool that is closed and clean.

        Args:
            pool: whose folders they are.
            key: of the platform whose folder alone is removed; empty: all, and the pool uses the
                front no more.
        """
        ...
