from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from nni_wire.own_platforms import GROUP
from nni_wire.pools import FRONT_HOST_OPTION
from svc_common.pool_secrets import PoolSecrets
from svc_trial_runner.fleet.adapters import platform_registry
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.isolated.adapter import IsolatedAdapter
from svc_trial_runner.fleet.adapters.local_agents import LocalAgentsAdapter
from svc_trial_runner.fleet.adapters.platform_registry import (
    BUILT_IN,
    ISOLATED,
    InstalledPlatforms,
    PlatformDependencies,
    installed_version,
    load_platform,
)
from svc_trial_runner.fleet.adapters.training_services.adapter import TrainingServiceAdapter
from svc_trial_runner.fleet.ports import AdapterContext, InstallationEndpoints, PlatformError
from tests.support.fleet_pools import INSTALLATION, POOL
from tests.support.local_platforms import NoBundles

MODULE = """\
opened = []

def adapter(context):
    opened.append(context)
    return context

def fragile(context):
    raise AssertionError("opened in the fleet")

fragile.isolated = True

from nni_wire.own_platforms import PlatformEntry

entry = PlatformEntry("queue_platform:no_config", "queue_platform:adapter")
heavy = PlatformEntry("queue_platform:no_config", "queue_platform:missing", isolated=True)
jobs = PlatformEntry("queue_platform:no_config", service="queue_platform:adapter")
"""


class NamedFronts(NoFront):
    """Registry of fronts that remembers under which hosts they are opened."""

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.released: list[str] = []

    def of_platform(self, pool: str, key: str, host: str = "") -> NoFront:
        self.hosts.append(host)
        return super().of_platform(pool, key, host)

    async def release(self, pool: str) -> None:
        self.released.append(pool)


@pytest.fixture
def dependencies(tmp_path: Path) -> PlatformDependencies:
    endpoints = InstallationEndpoints("nats://127.0.0.1:1", "127.0.0.1:2")
    return PlatformDependencies(
        INSTALLATION,
        endpoints,
        NoBundles(),
        PoolSecrets(tmp_path),
        tmp_path / "pools",
        NoFront(),
    )


@pytest.fixture
def platforms(dependencies: PlatformDependencies) -> InstalledPlatforms:
    return InstalledPlatforms(dependencies)


@pytest.fixture
def own_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install a package that adds a platform; return the platform's name."""
    site = tmp_path / "site"
    info = site / "queues-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: queues\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\nqueue = queue_platform:adapter\nbroken = queue_platform_missing:adapter\n"
        "fragile = queue_platform:fragile\nheavy = queue_platform:heavy\n"
        "declared = queue_platform:entry\njobs = queue_platform:jobs\n"
    )
    (site / "queue_platform.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(site))
    return "queue"


async def test_adapter_is_opened_with_section_secrets_and_a_private_folder(
    platforms: InstalledPlatforms, own_platform: str, tmp_path: Path
) -> None:
    PoolSecrets(tmp_path).write("s1", {"password": "hidden"})

    context = await platforms.open(POOL, "queue-2", own_platform, {"a": 1}, "s1")

    assert isinstance(context, AdapterContext)
    assert (context.installation, context.pool) == (INSTALLATION, POOL)
    assert context.section.options == {"a": 1}
    assert context.section.secrets == {"password": "hidden"}
    assert context.folder == tmp_path / "pools" / POOL / "queue-2"
    assert context.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("platform", [*sorted(ISOLATED), "fragile", "heavy", "jobs"])
async def test_platform_with_heavy_dependencies_gets_a_child_process(
    platforms: InstalledPlatforms, own_platform: str, platform: str
) -> None:
    adapter = await platforms.open(own_platform, platform, platform, {}, "")

    assert isinstance(adapter, IsolatedAdapter)
    assert adapter.child_pid is None  # it starts with the first call


async def test_entry_names_the_factory_of_its_adapter(
    platforms: InstalledPlatforms, own_platform: str
) -> None:
    context = await platforms.open(POOL, own_platform, "declared", {}, "")

    assert isinstance(context, AdapterContext)


async def test_entry_with_a_service_gets_the_adapter_of_training_services(
    platforms: InstalledPlatforms, own_platform: str
) -> None:
    opened = await platforms.open(POOL, own_platform, own_platform, {}, "")
    assert isinstance(opened, AdapterContext)

    adapter = load_platform("jobs")(opened)

    assert isinstance(adapter, TrainingServiceAdapter)


def test_entry_whose_adapter_is_missing_is_a_permanent_error(own_platform: str) -> None:
    with pytest.raises(PlatformError, match="queue_platform has no missing") as caught:
        load_platform("heavy")

    assert caught.value.permanent


async def test_local_platform_is_built_in(platforms: InstalledPlatforms) -> None:
    adapter = await platforms.open(POOL, "local", "local", {}, "")

    assert isinstance(adapter, LocalAgentsAdapter)


async def test_fleet_in_a_container_runs_no_trials_beside_it(
    dependencies: PlatformDependencies,
) -> None:
    deployed = InstalledPlatforms(replace(dependencies, deployed=True))

    with pytest.raises(PlatformError, match="in the container of the fleet") as caught:
        await deployed.open(POOL, "0-local", "local", {}, "")

    assert caught.value.permanent
    assert "leave local out of the pool" in caught.value.remedy


# Tests run without the package of aml: `aml/test_login.py` has another one in its place.
@pytest.mark.parametrize("platform", sorted(set(BUILT_IN) - {"aml"}))
def test_factories_of_this_distribution_exist(platform: str) -> None:
    on_kubernetes = ("kubernetes", "kubeflow", "frameworkcontroller", "adl")
    packages = {"remote": "asyncssh", **dict.fromkeys(on_kubernetes, "kubernetes")}
    package = packages.get(platform)
    if package is not None:
        pytest.importorskip(package, reason=f"the platform {platform} is an extra")

    assert callable(load_platform(platform))


def test_unknown_platform_is_a_permanent_error() -> None:
    with pytest.raises(PlatformError, match="no platform nowhere") as caught:
        load_platform("nowhere")

    assert caught.value.permanent
    assert all(platform in caught.value.remedy for platform in BUILT_IN)


def test_platform_without_its_package_says_what_to_install(own_platform: str) -> None:
    with pytest.raises(PlatformError, match="platform broken needs a package") as caught:
        load_platform("broken")

    assert own_platform == "queue"
    assert "pip install 'queue_platform_missing'" in caught.value.remedy


async def test_damaged_secrets_are_an_error_without_their_content(
    platforms: InstalledPlatforms, tmp_path: Path
) -> None:
    PoolSecrets(tmp_path).write("s1", {})
    (tmp_path / "pool-secrets" / "s1.json").write_text("hidden")

    with pytest.raises(PlatformError) as caught:
        await platforms.open(POOL, "local", "local", {}, "s1")

    assert "hidden" not in str(caught.value)


async def test_folders_of_a_clean_pool_are_removed(
    platforms: InstalledPlatforms, tmp_path: Path
) -> None:
    await platforms.open(POOL, "local", "local", {}, "")

    await platforms.forget(POOL)
    await platforms.forget(POOL)

    assert list((tmp_path / "pools").iterdir()) == []


async def test_files_of_another_version_are_an_error_with_the_remedy(
    dependencies: PlatformDependencies,
) -> None:
    versions = iter(["1.0", "1.0", "1.1"])
    platforms = InstalledPlatforms(dependencies, lambda: next(versions))
    assert await platforms.open(POOL, "local", "local", {}, "") is not None

    with pytest.raises(PlatformError, match=r"runs version 1\.0 of NNI, and 1\.1") as caught:
        await platforms.open(POOL, "local", "local", {}, "")

    assert "nnictl down" in caught.value.remedy
    assert caught.value.permanent


async def test_folder_of_one_platform_is_removed_and_that_of_another_stays(
    platforms: InstalledPlatforms, tmp_path: Path
) -> None:
    for key in ("local", "slurm"):
        await platforms.open(POOL, key, "local", {}, "")

    await platforms.forget(POOL, "slurm")
    left = [path.name for path in (tmp_path / "pools" / POOL).iterdir()]
    await platforms.forget(POOL, "local")

    assert left == ["local"]
    assert list((tmp_path / "pools").iterdir()) == []


async def test_platform_without_a_folder_is_forgotten(
    platforms: InstalledPlatforms, tmp_path: Path
) -> None:
    await platforms.forget(POOL, "slurm")
    await platforms.open(POOL, "local", "local", {}, "")

    await platforms.forget(POOL, "slurm")

    assert [path.name for path in (tmp_path / "pools" / POOL).iterdir()] == ["local"]


async def test_host_of_the_manager_is_one_for_the_front_and_no_option_of_the_platform(
    dependencies: PlatformDependencies, own_platform: str
) -> None:
    front = NamedFronts()
    platforms = InstalledPlatforms(replace(dependencies, front=front))
    options: dict[str, object] = {"queue": "long", FRONT_HOST_OPTION: "10.0.0.7"}

    context = await platforms.open(POOL, own_platform, own_platform, options, "")

    assert isinstance(context, AdapterContext)
    assert context.section.options == {"queue": "long"}
    assert front.hosts == ["10.0.0.7"]


def test_installed_version_is_that_of_this_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_version() == version("nni-svc-trial-runner")
    monkeypatch.setattr(platform_registry, "DISTRIBUTION", "nni-that-is-not-installed")
    assert installed_version() == ""


async def test_front_of_a_pool_is_released_with_its_last_folder(
    dependencies: PlatformDependencies,
) -> None:
    front = NamedFronts()
    platforms = InstalledPlatforms(replace(dependencies, front=front))

    await platforms.forget(POOL, "slurm")
    assert front.released == []
    await platforms.forget(POOL)

    assert front.released == [POOL]


async def test_pool_without_a_host_has_none_for_the_front(
    dependencies: PlatformDependencies, own_platform: str
) -> None:
    front = NamedFronts()
    platforms = InstalledPlatforms(replace(dependencies, front=front))

    context = await platforms.open(POOL, own_platform, own_platform, {FRONT_HOST_OPTION: None}, "")

    assert isinstance(context, AdapterContext)
    assert (front.hosts, context.front_host) == ([""], "")
