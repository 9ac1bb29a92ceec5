"""Hand-over of a running experiment to another tuner."""

import asyncio

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.blobs.large_values import LargeValues
from svc_manager.converters.views import algorithm_name, config_view
from svc_manager.domain.inputs import ChangeTuner, RecordedCommand
from svc_manager.domain.state import Experiment
from svc_manager.ports import AlgorithmChecker
from svc_manager.usecases.config_amounts import check_tuner_amount
from svc_manager.usecases.config_checks import check_algorithms
from svc_manager.usecases.request_checks import check_algorithm_values

_MODE = "optimize_mode"
_MODES = ("maximize", "minimize")


class TunerChanges:
    """Use case that checks another tuner and hands a running experiment over to it.

    Args:
        checker: validates algorithms.
        large_values: store of large values.
    """

    def __init__(self, checker: AlgorithmChecker, large_values: LargeValues) -> None:
        self._checker = checker
        self._large_values = large_values

    async def change(
        self, actor: ExperimentActor, tuner: config_pb2.AlgorithmConfig, request_id: str
    ) -> None:
        """Check a tuner against the experiment's space, assessor and mode, and hand over to it.

        Raises:
            InvalidArgumentError: the tuner breaks a rule, or is none for this experiment.
            FailedPreconditionError: the experiment is stopped, ERROR, or open for reading only.
        """
        await check_tuner_amount(tuner)
        config = config_view(actor.experiment)
        _check_replaceable(config)
        check_algorithm_values(tuner, "tuner")
        replaced = config_pb2.AlgorithmConfig()
        replaced.CopyFrom(config.tuner)
        config.tuner.CopyFrom(tuner)
        check_algorithms(config)
        space = await self._large_values.load(config.search_space)
        await asyncio.sleep(0)  # a large copy takes up to 40 ms
        config.search_space.CopyFrom(space)
        await self._check(config, actor.experiment, replaced)
        command = ChangeTuner(config.tuner.SerializeToString(deterministic=True))
        await actor.submit(RecordedCommand(command, request_id, "UpdateExperiment"))

    async def _check(
        self,
        config: config_pb2.ExperimentConfig,
        experiment: Experiment,
        replaced: config_pb2.AlgorithmConfig,
    ) -> None:
        """Validate by the dispatcher; write the experiment's mode into a tuner that has none."""
        _, mode = await self._checker.check(config, experiment.interpreter, replaced_tuner=replaced)
        expected = experiment.settings.optimize_mode.name.lower()
        if config.objectives or mode not in _MODES or mode == expected:
            return
        if _has_mode(config.tuner):
            raise InvalidArgumentError(
                f"tuner.classArgs.{_MODE}",
                f"must be {expected}, as the results so far are ranked",
                mode,
                "leave it out, or create another experiment with warmStartFrom",
            )
        config.tuner.class_args.map_value.entries.add(key=_MODE, value=to_value(expected))
        await self._checker.check(config, experiment.interpreter)


def _has_mode(tuner: config_pb2.AlgorithmConfig) -> bool:
    return any(entry.key == _MODE for entry in tuner.class_args.map_value.entries)


def _check_replaceable(config: config_pb2.ExperimentConfig) -> None:
    """Raise InvalidArgumentError unless a tuner proposes the experiment's parameters."""
    if config.HasField("tuner"):
        return
    rule = "cannot take over from an advisor"
    if config.HasField("compression"):
        rule = "cannot be changed for a compression job"
    elif config.HasField("nas"):
        rule = "cannot be changed for an exploration of architectures"
    raise InvalidArgumentError(
        "tuner",
        rule,
        algorithm_name(config),
        "create an experiment with this tuner; its warmStartFrom imports earlier results",
    )
