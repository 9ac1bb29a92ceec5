"""Warm start of a new experiment's tuner from results of earlier experiments."""

import asyncio
from typing import Final

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_manager.actors.registry import ActorRegistry
from svc_manager.blobs.large_values import LargeValues
from svc_manager.domain.trial import Trial

_CONVERTED_AT_ONCE: Final = 250
"""Trials to convert before yielding to other tasks of the manager: a few milliseconds."""


class WarmStart:
    """Adder of earlier experiments' results, unfiltered, to the samples of a new one's search.

    Args:
        registry: registry of the actors.
        large_values: store of large values.
    """

    def __init__(self, registry: ActorRegistry, large_values: LargeValues) -> None:
        self._registry = registry
        self._large_values = large_values

    async def add_samples(self, search: config_pb2.SearchConfig) -> None:
        """Append results of the experiments in `warm_start_from` to a search's samples, in place.

        By rank they are appended to `earlier`, one list for each experiment; else to `known`.

        Raises:
            InvalidArgumentError: one of the experiments does not exist.
        """
        by_rank = search.warm_start_by == "rank"
        for number, experiment_id in enumerate(search.warm_start_from):
            try:
                actor = await self._registry.find(experiment_id)
            except NotFoundError:
                raise InvalidArgumentError(
                    f"search.warm_start_from[{number}]",
                    "must be the id of an experiment that is known here",
                    experiment_id[:80],
                ) from None
            samples = search.earlier.list_value.items.add() if by_rank else search.known
            samples.list_value.SetInParent()
            finished = [
                trial
                for trial in actor.experiment.trials.values()
                if trial.final is not None and not trial.live
            ]
            for place, trial in enumerate(finished):
                await self._add(samples, trial)
                if place % _CONVERTED_AT_ONCE == 0:
                    await asyncio.sleep(0)  # other tasks of the manager come first
        if search.HasField("known"):
            search.known.CopyFrom(await self._large_values.put(search.known))
        if search.HasField("earlier"):
            search.earlier.CopyFrom(await self._large_values.put(search.earlier))

    async def _add(self, samples: value_pb2.Value, trial: Trial) -> None:
        assert trial.final is not None
        parameters, value = value_pb2.Value(), value_pb2.Value()
        parameters.MergeFromString(trial.parameters)
        value.MergeFromString(trial.final.value)
        sample = samples.list_value.items.add().map_value
        sample.entries.add(key="parameter", value=await self._large_values.load(parameters))
        sample.entries.add(key="value", value=value)
