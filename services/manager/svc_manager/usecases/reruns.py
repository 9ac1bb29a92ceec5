"""Requests that create an experiment again: its configuration, environment and secret values."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nni_proto.experiment.v1 import config_pb2
from nni_wire.pools import LOCAL_POOL
from svc_common.access.current_call import may_act_for
from svc_common.errors import FailedPreconditionError, PermissionDeniedError
from svc_manager.blobs.large_values import LargeValues
from svc_manager.converters.platform_secrets import put_secrets, required_secrets
from svc_manager.converters.scalars import pool_of
from svc_manager.converters.tasks import ENVIRONMENT_FILE
from svc_manager.converters.views import current_config
from svc_manager.domain.state import Experiment
from svc_manager.ports import FolderOpener, SecretStore
from svc_manager.usecases.activation import NewExperiment

_LIMIT_BYTES: Final = 4_000_000
"""Largest `environment.json` that is read; the kernel's limit for an environment is 2 MB."""


@dataclass(frozen=True, slots=True)
class Reruns:
    """Factory of requests that repeat an experiment as a new one, with its current configuration.

    The new experiment has the code folder, environment, interpreter, secret values and warm-start
    samples of the old one, no trials, and no port of its own.
    """

    folders: FolderOpener
    """Opens the folder of the old experiment, which has its environment."""
    secrets: SecretStore
    large_values: LargeValues

    async def request(
        self, old: Experiment, request_id: str = "", *, new_seed: bool = False
    ) -> NewExperiment:
        """Return a request that repeats an experiment; raise if the caller may not use its secrets.

        The environment and the secret values are the creator's: they get into another experiment by
        the creator's or an administrator's request only.

        Args:
            old: the experiment, in any state.
            request_id: idempotency key of the creation.
            new_seed: draw another random seed; False: the trials repeat those of the old one.

        Raises:
            FailedPreconditionError: a secret value or the environment cannot be read any more.
            PermissionDeniedError: they are another caller's.
        """
        config = current_config(old)
        if _has_private_values(old.id, config) and not may_act_for(old.creator):
            raise PermissionDeniedError(
                f"experiment {old.id!r} has the environment and the secrets of its creator "
                f"({old.creator or 'who is not known'}): let the creator or an administrator run "
                "it again, or create it from its configuration file with yours"
            )
        if new_seed:
            config.ClearField("seed")
        if config.HasField("search_space"):
            config.search_space.CopyFrom(await self.large_values.load(config.search_space))
        if config.HasField("search"):
            # The samples of earlier experiments are among the kept ones already.
            del config.search.warm_start_from[:]
            if config.search.HasField("known"):
                config.search.known.CopyFrom(await self.large_values.load(config.search.known))
            if config.search.HasField("earlier"):
                config.search.earlier.CopyFrom(await self.large_values.load(config.search.earlier))
        await self._add_secrets(old.id, config)
        environment: Mapping[str, str] = {}
        interpreter = ""
        if not config.HasField("code_archive"):
            environment, interpreter = await asyncio.to_thread(self._environment, old)
        return NewExperiment(
            config=config,
            request_id=request_id,
            environment=environment,
            interpreter=interpreter,
        )

    async def _add_secrets(self, old_id: str, config: config_pb2.ExperimentConfig) -> None:
        """Write stored secret values into the platforms' sections; raise if one is missing."""
        pool = pool_of(old_id, config)
        if pool == LOCAL_POOL:
            return
        by_id = {key: await self.secrets.read(key) for key, _ in required_secrets(config, pool)}
        for key, path in required_secrets(config, pool):
            if path not in by_id[key]:
                raise FailedPreconditionError(
                    f"this installation has no value of trainingService.{path} any more; create "
                    "the experiment from its configuration file, which has it",
                    {"field": f"trainingService.{path}"},
                )
        put_secrets(config, pool, by_id)

    def _environment(self, old: Experiment) -> tuple[dict[str, str], str]:
        try:
            with (
                self.folders.open(Path(old.directory)) as folder,
                folder.read_file(ENVIRONMENT_FILE) as file,
            ):
                # One that is nested deeper than any that a manager writes: RecursionError.
                found: Any = json.loads(file.read(_LIMIT_BYTES))
            environment = {str(name): str(text) for name, text in found["environment"].items()}
            return environment, str(found["interpreter"])
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            raise FailedPreconditionError(
                f"the environment of experiment {old.id!r} cannot be read from "
                f"{old.directory}/{ENVIRONMENT_FILE}; create the experiment with "
                "`nnictl create --config FILE`",
                {"directory": old.directory},
            ) from error


def _has_private_values(experiment_id: str, config: config_pb2.ExperimentConfig) -> bool:
    """Return whether a repetition needs the old experiment's secrets or environment."""
    pool = pool_of(experiment_id, config)
    has_secrets = pool != LOCAL_POOL and any(required_secrets(config, pool))
    return has_secrets or not config.HasField("code_archive")
