"""Activation of experiments: creation, resumption, and opening for reading."""

import asyncio
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2, experiment_pb2
from nni_wire.pools import LOCAL_PLATFORM, LOCAL_POOL, experiment_of_pool
from svc_common.access.current_call import audit_folder, caller_name
from svc_common.clock import Clock
from svc_common.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    LostOwnershipError,
    NotFoundError,
    ServiceError,
)
from svc_common.large_work import copy_of, encoded, off_loop
from svc_common.messaging.ports import EventLog
from svc_common.pool_secrets import POOL_SECRETS_FOLDER, secrets_id_of
from svc_common.storage.shared_storage import SharedStorage
from svc_common.subjects import check_id
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.actors.leasing import OwnedElsewhereError
from svc_manager.actors.registry import ActorRegistry
from svc_manager.blobs.large_values import LargeValues
from svc_manager.blobs.shared_storages import SharedStorages
from svc_manager.converters.creation import created_event
from svc_manager.converters.platform_secrets import required_secrets, take_secrets
from svc_manager.converters.pools import platforms_of
from svc_manager.converters.scalars import pool_of
from svc_manager.domain.events import ExperimentCreated
from svc_manager.domain.inputs import Command, Create, RecordedCommand, Resume, View
from svc_manager.domain.requests import CREATE_METHOD, check_repetition, fingerprint_of_bytes
from svc_manager.domain.state import Experiment
from svc_manager.event_log.folder_import import import_folder
from svc_manager.ports import (
    AlgorithmChecker,
    Folders,
    IdSource,
    JobChecker,
    Journals,
    Listeners,
    PlatformChecker,
    SecretStore,
)
from svc_manager.usecases.config_amounts import check_amounts
from svc_manager.usecases.config_checks import PLATFORMS, check_config, choose_algorithm
from svc_manager.usecases.folder_admission import FolderAdmission
from svc_manager.usecases.pools import Pools
from svc_manager.usecases.request_checks import check_config_values, check_environment, check_text
from svc_manager.usecases.warm_start import WarmStart

_MODES = {
    "": metric_pb2.OPTIMIZE_MODE_UNSPECIFIED,
    "minimize": metric_pb2.OPTIMIZE_MODE_MINIMIZE,
    "maximize": metric_pb2.OPTIMIZE_MODE_MAXIMIZE,
}
_LAST_PORT = 65535
_DRAWS = 100
"""Maximum ids drawn for a new experiment until one is unused."""


_CHOSEN_ID: Final = re.compile(r"[a-z0-9]{4,32}")


@dataclass(frozen=True, slots=True)
class NewExperiment:
    """Request to create an experiment: configuration, port, environment, interpreter."""

    config: config_pb2.ExperimentConfig
    request_id: str = ""
    port: int = 0
    """Port of its own listener; 0: none."""
    url_prefix: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The client's environment."""
    interpreter: str = ""
    """The client's `sys.executable`; empty: the manager's own."""
    skip_platform_check: bool = False
    """True: platforms are not asked whether they accept their sections."""
    experiment_id: str = ""
    """Id of the experiment; empty: one is drawn."""


@dataclass(frozen=True, slots=True)
class ReopenRequest:
    """Request to resume a stopped experiment or open it for reading: id, port, folder."""

    experiment_id: str
    request_id: str = ""
    port: int = 0
    url_prefix: str = ""
    experiment_directory: str = ""
    """Current folder of the experiment; empty: the folder of the log."""
    environment: Mapping[str, str] = field(default_factory=dict)
    interpreter: str = ""
    debug: bool = False


@dataclass(frozen=True, slots=True)
class ActivatedExperiment:
    """Experiment that was just created, resumed or opened for reading, with page and warnings."""

    experiment: experiment_pb2.Experiment
    urls: list[str]
    """Addresses of its page."""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ActivationDependencies:
    """Log, folders, listeners, checkers, ids, clock, secrets and pools for activations."""

    events: EventLog
    journals: Journals
    folders: Folders
    listeners: Listeners
    checker: AlgorithmChecker
    jobs: JobChecker
    ids: IdSource
    clock: Clock
    secrets: SecretStore
    pools: Pools
    platform_checker: PlatformChecker
    shared_storages: SharedStorages


class Activations:
    """Use cases that create, resume, view and import experiments, undoing a refused request.

    Args:
        registry: registry of the actors.
        ports: ports of the manager.
        large_values: store of large values.
        default_root: folder of experiments that name none.
        version: of NNI.
        environment: of this installation, for experiments whose client is on another machine: it
            sends an archive of its code and no environment.
        admission: which folders callers may name; None: those below ``default_root``.
        platforms: those that experiments may name.
    """

    def __init__(
        self,
        registry: ActorRegistry,
        ports: ActivationDependencies,
        large_values: LargeValues,
        default_root: Path,
        version: str,
        environment: Mapping[str, str] | None = None,
        admission: FolderAdmission | None = None,
        platforms: Collection[str] = PLATFORMS,
    ) -> None:
        self._registry = registry
        self._ports = ports
        self._large_values = large_values
        self._warm_start = WarmStart(registry, large_values)
        self._default_root = default_root
        self._version = version
        self._environment = dict(environment or {})
        self._admission = admission or FolderAdmission([default_root])
        self._platforms = platforms
        self._creating: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._importing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.events = ports.events

    def urls(self, view: experiment_pb2.Experiment) -> list[str]:
        """Return the addresses of an experiment's page; none without a port."""
        return self._ports.listeners.urls(view.port, view.url_prefix) if view.port else []

    async def create(self, new: NewExperiment) -> ActivatedExperiment:
        """Create an experiment, or return the one that the same request id created before."""
        await check_amounts(new.config)
        new, secrets = await _without_secrets(new)
        digest = await _fingerprint_of(new)
        _check_id(new.experiment_id)
        if not new.request_id:
            free_id = await self._free_id(new.experiment_id)
            return await self._create(new, free_id, secrets, digest)
        # Two requests for one chosen id are one after the other: the second finds the first's log.
        key = new.experiment_id or new.request_id
        async with self._creating.setdefault(key, asyncio.Lock()):
            for draw in range(1 if new.experiment_id else _DRAWS):
                # The id is derived from the request, so that a repetition at any manager finds it.
                drawn = self._ports.ids.experiment_id(new.request_id, draw)
                experiment_id = new.experiment_id or drawn
                if await self._ports.events.last(experiment_id) is None:
                    return await self._create(new, experiment_id, secrets, digest)
                actor = await self._registry.find(experiment_id)
                known = actor.experiment.requests.get(new.request_id)
                if known is not None:
                    check_repetition(known, new.request_id, CREATE_METHOD, digest)
                    return self._activated(actor.view())
        raise AlreadyExistsError("experiment", experiment_id)

    async def _create(
        self,
        new: NewExperiment,
        experiment_id: str,
        secrets: Sequence[Mapping[str, str]],
        digest: str,
    ) -> ActivatedExperiment:
        config = new.config
        await self._complete_and_check(config)
        root, storage = self._check_folders(config, secrets)
        check_environment(new.environment)
        check_text(new.interpreter, "interpreter")
        _check_port(new.port)
        travels = config.HasField("code_archive") or config.HasField("callers")
        if travels and not new.environment:
            new = replace(new, environment=self._environment, interpreter="")
        interpreter = new.interpreter or sys.executable
        await self._check_code(config)
        pool = pool_of(experiment_id, config)
        if _is_shared(pool):
            await self._ports.pools.check_exists(pool)
        warnings, mode = await self._check_algorithm(config, interpreter)
        if not new.skip_platform_check:
            warnings = [*warnings, *await self._check_platforms(config, secrets)]
        await self._store_values(config)
        prefix = new.url_prefix.strip("/")
        if new.port:
            await self._ports.listeners.open_listener(new.port, experiment_id, prefix)
        directory = root / experiment_id
        try:
            # First what most likely fails, so that a refusal leaves neither folder nor secrets.
            if storage is not None:
                await self._ports.shared_storages.begin(experiment_id, storage, config)
            sha256 = await self._ports.folders.create(directory, new.environment, interpreter)
            await self._write_secrets(pool, secrets)
        except BaseException:
            await self._ports.listeners.close_listener(experiment_id)
            raise
        created = created_event(
            experiment_id,
            config,
            environment_sha256=sha256,
            interpreter=interpreter,
            nni_version=self._version,
            resolved_mode=_MODES.get(mode, metric_pb2.OPTIMIZE_MODE_UNSPECIFIED),
        )
        await asyncio.sleep(0)  # encoding and view of a long configuration take 15 ms each
        view = await self._start(created, new, prefix, digest)
        return self._activated(view, warnings)

    async def _store_values(self, config: config_pb2.ExperimentConfig) -> None:
        """Replace a large search space by a blob reference, add warm starts' samples; in place."""
        if config.HasField("search_space"):
            config.search_space.CopyFrom(await self._large_values.put(config.search_space))
        if config.HasField("search"):
            await self._warm_start.add_samples(config.search)

    def _check_folders(
        self, config: config_pb2.ExperimentConfig, secrets: Sequence[Mapping[str, str]]
    ) -> tuple[Path, SharedStorage | None]:
        """Raise unless the caller may name the folders; return the root and the shared storage."""
        root = self._admission.check(
            "experiment_working_directory", config.experiment_working_directory
        )
        return root, self._admission.check_storage(config, secrets[0] if secrets else {})

    async def _write_secrets(self, pool: str, secrets: Sequence[Mapping[str, str]]) -> None:
        for index, values in enumerate(secrets):
            if values and pool != LOCAL_POOL:
                await self._ports.secrets.write(secrets_id_of(pool, index), values)

    async def _check_platforms(
        self, config: config_pb2.ExperimentConfig, secrets: Sequence[Mapping[str, str]]
    ) -> list[str]:
        """Make the platforms check their sections; raise for a refused one; return warnings."""
        services = platforms_of(config)
        padded = [*secrets, *({} for _ in services[len(secrets) :])]
        return await self._ports.platform_checker.check(services, padded, "trainingService")

    async def _check_algorithm(
        self, config: config_pb2.ExperimentConfig, interpreter: str
    ) -> tuple[list[str], str]:
        """Validate the algorithm, or the job by its service; return warnings and optimize mode."""
        if config.HasField("compression") or config.HasField("nas"):
            await self._ports.jobs.check(config)
            return [], "maximize"
        return await self._ports.checker.check(config, interpreter)

    async def _start(
        self, created: ExperimentCreated, new: NewExperiment, prefix: str, digest: str
    ) -> experiment_pb2.Experiment:
        """Start a new experiment's actor, append first events; return its view; undo if refused.

        A client that disconnects meanwhile finds them by its request id.
        """
        experiment_id = created.experiment_id
        command = Create(created, new.port, prefix)
        debug = created.settings.debug
        try:
            actor = await self._registry.start(experiment_id, created.directory, debug=debug)
            request = (new.request_id, CREATE_METHOD, caller_name(), digest)
            await actor.submit(RecordedCommand(command, *request))
        except (LostOwnershipError, OwnedElsewhereError):
            # Another manager handled the same request first: log and folder belong to it.
            await self._ports.listeners.close_listener(experiment_id)
            raise
        except ServiceError:
            await self._registry.forget(experiment_id)
            await self._ports.listeners.close_listener(experiment_id)
            await self._ports.events.delete(experiment_id)
            await self._ports.folders.remove(Path(created.directory))
            if experiment_of_pool(created.settings.pool) is not None:
                await self._ports.secrets.remove_pool(created.settings.pool)
            await self._registry.release(experiment_id)
            raise
        return actor.view()

    async def resume(self, reopening: ReopenRequest) -> ActivatedExperiment:
        """Resume a stopped experiment; a given folder is its new place, or imported if unknown."""
        check_environment(reopening.environment)
        check_text(reopening.interpreter, "interpreter")
        actor, warnings = await self._find_or_import(reopening)
        if _repeats(actor, reopening, "ResumeExperiment"):
            return self._activated(actor.view())
        pool = actor.experiment.settings.pool
        if _is_shared(pool):
            await self._ports.pools.check_exists(pool)
        await self._check_secrets(actor.experiment)
        await self.start_job_service(actor)
        moved = await self._moved(actor, reopening)
        directory = Path(moved or actor.experiment.directory)
        has_environment = bool(reopening.environment or reopening.interpreter)
        if has_environment and await asyncio.to_thread(self._exists, directory):
            await self._ports.folders.create(
                directory,
                reopening.environment,
                reopening.interpreter or actor.experiment.interpreter or sys.executable,
            )
        prefix = reopening.url_prefix.strip("/") or actor.experiment.url_prefix
        command = Resume(reopening.port, prefix, moved)
        resumed = await self._reopen(actor, reopening, command, "ResumeExperiment")
        return replace(resumed, warnings=warnings)

    async def _check_secrets(self, experiment: Experiment) -> None:
        """Raise unless this installation has the secret values that an experiment needs.

        Raises:
            FailedPreconditionError: one is missing, as after a load; names the field.
        """
        if experiment.settings.pool == LOCAL_POOL:
            return  # its agents need none
        config = config_pb2.ExperimentConfig.FromString(experiment.config)
        for secrets_id, path in required_secrets(config, experiment.settings.pool):
            if path not in await self._ports.secrets.read(secrets_id):
                field = f"trainingService.{path}"
                file = f"{POOL_SECRETS_FOLDER}/{secrets_id}.json"
                raise FailedPreconditionError(
                    f"{field} is secret, and this installation does not have it: write it into "
                    f"the file {file} of the installation's folder, which only you may read, as "
                    f'{{"{path}": "..."}}',
                    {"field": field, "file": file},
                )

    async def view(self, reopening: ReopenRequest) -> ActivatedExperiment:
        """Open a stopped experiment for reading, given folder imported if unknown; return it."""
        actor, warnings = await self._find_or_import(reopening)
        if _repeats(actor, reopening, "ViewExperiment"):
            return self._activated(actor.view())
        prefix = reopening.url_prefix.strip("/") or actor.experiment.url_prefix
        command = View(reopening.port, prefix, await self._moved(actor, reopening))
        viewed = await self._reopen(actor, reopening, command, "ViewExperiment")
        return replace(viewed, warnings=warnings)

    async def start_job_service(self, actor: ExperimentActor) -> None:
        """Make a job's or exploration's service check it, which starts it; others: do nothing."""
        if actor.experiment.settings.algorithm_service:
            await self._ports.jobs.check(actor.view().config)

    async def _reopen(
        self, actor: ExperimentActor, reopening: ReopenRequest, command: Command, method: str
    ) -> ActivatedExperiment:
        _check_port(reopening.port)
        opens = bool(reopening.port) and reopening.port != actor.experiment.port
        if opens:
            prefix = reopening.url_prefix.strip("/") or actor.experiment.url_prefix
            await self._ports.listeners.open_listener(reopening.port, actor.id, prefix)
        try:
            await actor.submit(RecordedCommand(command, reopening.request_id, method))
        except BaseException:
            if opens and actor.experiment.port != reopening.port:
                await self._ports.listeners.close_listener(actor.id)
            raise
        return self._activated(actor.view())

    async def _find_or_import(self, reopening: ReopenRequest) -> tuple[ExperimentActor, list[str]]:
        """Return an experiment's actor and warnings; import the given folder if it is unknown.

        The list holds the warnings of an import.
        """
        check_text(reopening.experiment_directory, "experiment_directory")
        try:
            return await self._registry.find(reopening.experiment_id), []
        except NotFoundError:
            if not reopening.experiment_directory:
                raise
        directory = self._admission.check("experiment_directory", reopening.experiment_directory)
        return await self._import(check_id("experiment_id", reopening.experiment_id), directory)

    async def _import(
        self, experiment_id: str, directory: Path
    ) -> tuple[ExperimentActor, list[str]]:
        """Import an experiment's folder under a lease, unless known; return actor and warnings."""
        async with self._importing.setdefault(experiment_id, asyncio.Lock()):
            try:
                return await self._registry.find(experiment_id), []
            except NotFoundError:
                await self._registry.reserve(experiment_id)
            try:
                warnings = await import_folder(
                    self._ports.events,
                    self._ports.journals,
                    self._ports.ids,
                    experiment_id,
                    directory,
                    self._admission.check_storage,
                )
                return await self._registry.find(experiment_id), warnings
            finally:
                await self._registry.release(experiment_id)

    async def _moved(self, actor: ExperimentActor, reopening: ReopenRequest) -> str:
        """Return the folder to which an experiment moves, if that holds its log; empty: it stays.

        Raises:
            InvalidArgumentError: the folder holds another experiment's log, or none, or the
                caller may not name it.
        """
        audit_folder(actor.experiment.directory)
        if not reopening.experiment_directory:
            return ""
        directory = self._admission.check("experiment_directory", reopening.experiment_directory)
        if str(directory) == actor.experiment.directory:
            return ""
        found = await self._ports.journals.experiment_of(directory)
        if found != actor.id:
            raise InvalidArgumentError(
                "experiment_directory",
                f"must be the folder of experiment {actor.id}",
                str(directory),
                f"its log is of experiment {found}" if found else "it holds no readable log",
            )
        return str(directory)

    def _exists(self, directory: Path) -> bool:
        try:
            self._ports.folders.open(directory).close()
        except OSError:
            return False
        return True

    async def _check_code(self, config: config_pb2.ExperimentConfig) -> None:
        if config.HasField("callers"):
            return  # they have it
        if not config.HasField("code_archive"):
            if any(service.platform != LOCAL_PLATFORM for service in config.training_services):
                raise InvalidArgumentError(
                    "code_archive",
                    "must be given when a platform other than local is named",
                    remedy="upload it with ByteService, then create the experiment",
                )
            await _check_folder(config)
        elif not await self._large_values.has(config.code_archive.sha256):
            raise InvalidArgumentError(
                "code_archive",
                "must be the hash of an archive that was uploaded",
                config.code_archive.sha256[:80],
                "upload it with ByteService, then create the experiment",
            )

    def _activated(
        self, view: experiment_pb2.Experiment, warnings: list[str] | None = None
    ) -> ActivatedExperiment:
        return ActivatedExperiment(view, self.urls(view), warnings or [])

    async def _complete_and_check(self, config: config_pb2.ExperimentConfig) -> None:
        """Set defaults of a configuration, in place: root, seed, platform, tuner; then check it."""
        if not config.experiment_working_directory:
            config.experiment_working_directory = str(self._default_root)
        if not config.HasField("seed"):
            config.seed = self._ports.ids.seed()
        if not config.training_services and not config.HasField("callers"):
            config.training_services.add(platform="local")
        choose_algorithm(config)
        check_config(config, self._platforms)
        await off_loop(config.ByteSize(), check_config_values, config)

    async def _free_id(self, chosen: str) -> str:
        """Return the chosen id, or else a drawn one that is unused; raise if the chosen is taken.

        Raises:
            AlreadyExistsError: an experiment has the chosen id.
        """
        if chosen and await self._ports.events.last(chosen) is not None:
            raise AlreadyExistsError("experiment", chosen)
        return chosen or self._unused_id()

    def _unused_id(self) -> str:
        for _ in range(_DRAWS):
            experiment_id = self._ports.ids.experiment_id()
            if not self._registry.exists(experiment_id):
                return experiment_id
        raise AlreadyExistsError("experiment", experiment_id)


def _is_shared(pool: str) -> bool:
    """Return whether a pool is neither `local` nor an experiment's own, by its name alone."""
    return pool != LOCAL_POOL and experiment_of_pool(pool) is None


async def _fingerprint_of(new: NewExperiment) -> str:
    """Return a hash of a creation's configuration, port, URL prefix and chosen id."""
    config = await encoded(new.config, deterministic=True)
    chosen = (new.experiment_id,) if new.experiment_id else ()
    rest = (new.port, new.url_prefix, *chosen)
    return await off_loop(len(config), fingerprint_of_bytes, config, *rest)


async def _without_secrets(new: NewExperiment) -> tuple[NewExperiment, list[dict[str, str]]]:
    """Return a copy of a creation without its platforms' secret values, and those by path."""
    config = await copy_of(new.config)
    secrets = take_secrets(config)
    return replace(new, config=config), secrets


def _repeats(actor: ExperimentActor, reopening: ReopenRequest, method: str) -> bool:
    """Return whether the request's id is recorded for the same method: a repetition.

    `decide_recorded` refuses another one with its id.
    """
    known = actor.experiment.requests.get(reopening.request_id, "")
    return known.partition(" ")[0] == method


def _check_id(experiment_id: str) -> None:
    """Raise InvalidArgumentError unless an id is empty or one that subjects and folders can have.

    Raises:
        InvalidArgumentError: it is another text.
    """
    if experiment_id and not _CHOSEN_ID.fullmatch(experiment_id):
        raise InvalidArgumentError(
            "experiment_id", "must be 4 to 32 of the characters a-z and 0-9", experiment_id[:80]
        )


def _check_port(port: int) -> None:
    if not 0 <= port <= _LAST_PORT:
        raise InvalidArgumentError("port", f"must be 1 to {_LAST_PORT}", port)


async def _check_folder(config: config_pb2.ExperimentConfig) -> None:
    path = Path(config.trial_code_directory)
    try:
        readable = path.is_dir() and next(path.iterdir(), path) is not None  # noqa: ASYNC240 - one look
    except OSError as error:
        raise InvalidArgumentError(
            "trial_code_directory", "must be readable", str(path), error.strerror or str(error)
        ) from error
    if not readable:
        raise InvalidArgumentError("trial_code_directory", "must be a folder", str(path))
