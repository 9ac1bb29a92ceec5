"""Registry of platforms by name: those of this distribution, and those of other packages.

A package adds a platform by an entry point of the group `nni.platforms`: its name, and a
`PlatformEntry`, or the factory of the adapter alone. Adapters are imported when a pool needs them.
Those with heavy or fragile dependencies run in a child process of the fleet: `ISOLATED`, and
entries or factories with an attribute `isolated` that is true.
"""

import asyncio
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from nni_wire.own_platforms import GROUP, PlatformEntry, load_own_platform, load_reference
from nni_wire.pools import FRONT_HOST_OPTION
from svc_common.errors import InvalidArgumentError
from svc_common.own_files import private_folder
from svc_common.pool_secrets import PoolSecrets
from svc_trial_runner.fleet.adapters.isolated.adapter import IsolatedAdapter
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    AdapterFactory,
    BundleStore,
    FrontRegistry,
    InstallationEndpoints,
    PlatformAdapter,
    PlatformError,
)

DISTRIBUTION: Final = "nni-svc-trial-runner"
BUILT_IN: Final[Mapping[str, str]] = {
    "joined": "svc_trial_runner.fleet.adapters.joined.adapter:JoinedAdapter",
    "local": "svc_trial_runner.fleet.adapters.local_agents:LocalAgentsAdapter",
    "remote": "svc_trial_runner.fleet.adapters.remote.adapter:RemoteAdapter",
    "slurm": "svc_trial_runner.fleet.adapters.slurm.adapter:SlurmAdapter",
    "kubernetes": "svc_trial_runner.fleet.adapters.kubernetes.adapter:KubernetesAdapter",
    "kubeflow": "svc_trial_runner.fleet.adapters.operators.kubeflow:kubeflow_adapter",
    "frameworkcontroller": (
        "svc_trial_runner.fleet.adapters.operators.frameworkcontroller:frameworkcontroller_adapter"
    ),
    "adl": "svc_trial_runner.fleet.adapters.operators.adaptdl:adl_adapter",
    "aml": "svc_trial_runner.fleet.adapters.aml.login:aml_adapter",
    "dlc": "svc_trial_runner.fleet.adapters.dlc.adapter:DlcAdapter",
    "openpai": "svc_trial_runner.fleet.adapters.openpai.adapter:OpenpaiAdapter",
    "ray": "svc_trial_runner.fleet.adapters.ray_actors.adapter:RayAdapter",
}
"""Factories of this distribution."""
SERVICE_ADAPTER: Final = (
    "svc_trial_runner.fleet.adapters.training_services.adapter:TrainingServiceAdapter"
)
"""Adapter over the service of a `PlatformEntry`, which is its first argument."""
_ON_KUBERNETES: Final = ("kubernetes", "kubeflow", "frameworkcontroller", "adl")
ISOLATED: Final = frozenset({*_ON_KUBERNETES, "aml", "ray"})
"""Platforms of this distribution whose adapters run in a child process."""
BESIDE_THE_FLEET: Final = frozenset({"local"})
"""Platforms whose trials run on the fleet's machine, as its user."""
_PACKAGES: Final[Mapping[str, str]] = {
    "aml": "nni-svc-trial-runner[aml]",
    "ray": "nni-svc-trial-runner[ray]",
    "remote": "nni-svc-trial-runner[remote]",
    **dict.fromkeys(_ON_KUBERNETES, "nni-svc-trial-runner[kubernetes]"),
}
"""Requirement of a platform whose dependencies are an extra."""


def installed_version() -> str:
    """Return the version of this distribution on the disk; empty: it is not installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return ""


@dataclass(frozen=True, slots=True)
class PlatformDependencies:
    """Dependencies of all adapters: installation id, endpoints, bundles, secrets, folder, front."""

    installation: str
    endpoints: InstallationEndpoints
    bundles: BundleStore
    secrets: PoolSecrets
    folder: Path
    """Private folder of the fleet."""
    front: FrontRegistry
    deployed: bool = False
    """True in a container of a deployment: it has the keys of all platforms, and runs no trials."""


class InstalledPlatforms:
    """`PlatformOpener` of the platforms that are installed.

    Args:
        dependencies: shared by all adapters.
        read_version: returns the version of this distribution on the disk now.
    """

    def __init__(
        self,
        dependencies: PlatformDependencies,
        read_version: Callable[[], str] = installed_version,
    ) -> None:
        self._dependencies = dependencies
        self._read_version = read_version
        self._started_with = read_version()

    async def open(
        self, pool: str, key: str, platform: str, options: Mapping[str, object], secrets_id: str
    ) -> PlatformAdapter:
        """Return a new adapter; its module is imported in a thread, or in a child process.

        Raises:
            PlatformError: no such platform is installed, its secrets or folder are unusable, or
                other files than those of this process are installed; or its trials would run
                beside the fleet of a deployment.
        """
        if self._dependencies.deployed and platform in BESIDE_THE_FLEET:
            raise _refusal_beside_the_fleet(platform)
        await asyncio.to_thread(self._check_version)
        factory = await asyncio.to_thread(fleet_factory, platform)
        shared = self._dependencies
        folder = shared.folder / pool / key
        host = str(options.get(FRONT_HOST_OPTION) or "")
        own = {name: value for name, value in options.items() if name != FRONT_HOST_OPTION}
        try:
            values = shared.secrets.read(secrets_id) if secrets_id else {}
            for each in (shared.folder, folder.parent, folder):
                private_folder(each)
        except (OSError, InvalidArgumentError) as error:
            raise PlatformError(f"cannot open platform {platform}: {error}") from error
        return factory(
            AdapterContext(
                shared.installation,
                pool,
                PlatformSection(platform, own, values),
                shared.endpoints,
                shared.bundles,
                folder,
                shared.front.of_platform(pool, key, host),
                host,
            )
        )

    def _check_version(self) -> None:
        """Raise PlatformError unless the installed version is that of this process's start.

        Adapters are imported late, and bundles hold what is installed: both would be of another
        version than this process.
        """
        installed = self._read_version()
        if installed != self._started_with:
            raise PlatformError(
                f"the fleet runs version {self._started_with or 'unknown'} of NNI, and "
                f"{installed or 'none'} is installed",
                "start NNI's services again: nnictl down, then nnictl up",
                permanent=True,
            )

    async def forget(self, pool: str, key: str = "") -> None:
        """Remove the folder `key` of a pool; without a key all folders, and release its front."""
        folder = self._dependencies.folder / pool
        if not key:
            await self._dependencies.front.release(pool)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            return
        await asyncio.to_thread(shutil.rmtree, folder / key, ignore_errors=True)
        with suppress(OSError):
            await asyncio.to_thread(folder.rmdir)  # not if other platforms of the pool have one


def fleet_factory(platform: str) -> AdapterFactory:
    """Return the factory that the fleet calls: that of the platform, or one with a child process.

    Raises:
        PlatformError: the platform is not installed, or cannot be imported.
    """
    if platform in ISOLATED:
        return IsolatedAdapter
    if platform not in BUILT_IN and _is_isolated(_own_platform(platform)):
        return IsolatedAdapter
    return load_platform(platform)


def load_platform(platform: str) -> AdapterFactory:
    """Import a platform's factory and return it; raise PlatformError if not installed.

    Raises:
        PlatformError: it is not installed, or cannot be imported.
    """
    try:
        if platform in BUILT_IN:
            factory: AdapterFactory = load_reference(BUILT_IN[platform])
            return factory
        found = _own_platform(platform)
        if isinstance(found, PlatformEntry) and found.service:
            return partial(load_reference(SERVICE_ADAPTER), load_reference(found.service))
        loaded: AdapterFactory = (
            load_reference(found.adapter) if isinstance(found, PlatformEntry) else found
        )
    except ImportError as error:
        raise _import_error(platform, error) from error
    return loaded


def _is_isolated(found: object) -> bool:
    """Return whether the object of another package's platform asks for a child process."""
    if isinstance(found, PlatformEntry):
        return found.runs_in_child_process
    return bool(getattr(found, "isolated", False))


def _own_platform(platform: str) -> Any:  # noqa: ANN401 - an object of another package
    """Return the object of another package's platform entry; raise PlatformError if none.

    Raises:
        PlatformError: it is not installed, or cannot be imported.
    """
    try:
        found = load_own_platform(platform)
    except ImportError as error:
        raise _import_error(platform, error) from error
    if found is None:
        raise PlatformError(
            f"there is no platform {platform}",
            f"install the package that adds it (entry point {GROUP}), or write one of "
            f"{', '.join(sorted(BUILT_IN))}",
            permanent=True,
        )
    return found


def _refusal_beside_the_fleet(platform: str) -> PlatformError:
    return PlatformError(
        f"platform {platform} is none of a pool here: its trials would run in the container of the "
        "fleet, which has the keys of all platforms and runs no user code",
        f"leave {platform} out of the pool; an experiment with this platform alone runs on the "
        "agents of the deployment (trial-runner in compose, runnerPools in the chart)",
        permanent=True,
    )


def _import_error(platform: str, error: ImportError) -> PlatformError:
    requirement = _PACKAGES.get(platform, error.name or platform)
    return PlatformError(
        f"platform {platform} needs a package that is not installed: {error}",
        f"pip install '{requirement}' where NNI's services are installed",
        permanent=True,
    )
