"""A shared study on a manager with fakes, for tests."""

from __future__ import annotations

from typing import Any

from nni_proto.experiment.v1 import config_pb2
from tests.unit.services.manager.world import World


async def create_study(world: World, **fields: Any) -> str:
    """Create an experiment whose trials callers run; return its id."""
    return await world.create(
        trial_command=None,
        trial_code_directory=None,
        trial_concurrency=None,
        max_trial_number=fields.pop("max_trial_number", None),
        callers=config_pb2.Callers(),
        **fields,
    )
