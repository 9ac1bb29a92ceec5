"""Scripted manager for tests of the dispatcher; it appends the events that a test chooses."""

from __future__ import annotations  # enum values have types only in the stubs

import asyncio
import itertools
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2, inbox_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import from_value, to_value
from svc_common.messaging.ports import Bus

WAIT_S = 60.0


def named(name: str, **class_args: Any) -> config_pb2.AlgorithmConfig:
    return config_pb2.AlgorithmConfig(name=name, class_args=to_value(class_args))


def custom(class_name: str, code_directory: Path, **class_args: Any) -> config_pb2.AlgorithmConfig:
    return config_pb2.AlgorithmConfig(
        custom=config_pb2.CustomClass(class_name=class_name, code_directory=str(code_directory)),
        class_args=to_value(class_args),
    )


class ScriptedManager:
    """Sole writer of an experiment's log.

    Each answer of the dispatcher that the real manager would append is appended, unless the test
    consumes it first.
    """

    def __init__(self, bus: Bus, experiment_id: str, root: Path) -> None:
        self.bus = bus
        self.id = experiment_id
        self.root = root
        self.inbox: list[inbox_pb2.InboxMessage] = []
        self._sequence = 0
        self._appends = itertools.count()
        self._changed = asyncio.Condition()
        self._ids = itertools.count()
        self._requests = itertools.count()

    @property
    def log_directory(self) -> Path:
        return self.root / self.id / "log"

    def dispatcher_log(self) -> str:
        return (self.log_directory / "dispatcher.log").read_text()

    async def read_inbox(self) -> None:
        async with aclosing(self.bus.inbox.follow(self.id)) as batches:
            async for batch in batches:
                async with self._changed:
                    self.inbox += [
                        inbox_pb2.InboxMessage.FromString(message.payload) for message in batch
                    ]
                    self._changed.notify_all()

    async def append(self, *events: event_pb2.Event) -> int:
        payload = event_pb2.EventBatch(epoch=1, events=events).SerializeToString()
        self._sequence = await self.bus.events.append(
            self.id,
            payload,
            expected_sequence=self._sequence,
            epoch=1,
            append_id=str(next(self._appends)),
        )
        return self._sequence

    async def create(
        self, search_space: Any, *, generation: int = 1, service: str = "", **config: Any
    ) -> None:
        config.setdefault("seed", 7)
        created = event_pb2.ExperimentCreated(
            experiment_id=self.id,
            config=config_pb2.ExperimentConfig(
                search_space=(
                    search_space
                    if isinstance(search_space, value_pb2.Value)
                    else to_value(search_space)
                ),
                experiment_working_directory=str(self.root),
                **config,
            ),
        )
        await self.append(
            event_pb2.Event(experiment_created=created), requested(generation, service)
        )

    async def received(
        self, kind: str, match: Callable[[Any], bool] = lambda _: True, timeout_s: float = WAIT_S
    ) -> Any:
        """Wait for the first message of a kind in the INBOX that matches."""
        async with asyncio.timeout(timeout_s), self._changed:
            while True:
                for message in self.all(kind):
                    if match(message):
                        return message
                await self._changed.wait()

    def all(self, kind: str) -> list[Any]:
        return [
            getattr(message, kind) for message in self.inbox if message.WhichOneof("kind") == kind
        ]

    async def ask(self, count: int) -> str:
        """Append a request for parameters; return its id."""
        request_id = f"request-{next(self._requests)}"
        ids = [next(self._ids) for _ in range(count)]
        await self.append(
            event_pb2.Event(
                trials_requested=event_pb2.TrialsRequested(request_id=request_id, parameter_ids=ids)
            )
        )
        return request_id

    async def answer(self, request_id: str) -> event_pb2.ParametersGenerated:
        generated: event_pb2.ParametersGenerated = await self.received(
            "parameters_generated", lambda m: m.request_id == request_id
        )
        return generated

    async def generate(self, count: int = 1) -> list[tuple[int, Any]]:
        """Request parameters, append the answer and a trial for each; return (id, parameters)."""
        answer = await self.answer(await self.ask(count))
        await self.schedule(answer)
        return [(item.parameter_id, from_value(item.parameters)) for item in answer.parameters]

    async def schedule(self, answer: event_pb2.ParametersGenerated) -> None:
        await self.append(
            event_pb2.Event(parameters_generated=answer),
            *(
                scheduled(trial_of(item.parameter_id), item.parameter_id, item.parameters)
                for item in answer.parameters
            ),
        )

    async def finish(self, parameter_id: int, value: Any, *intermediate: Any) -> None:
        await self.append(
            *(
                metric(parameter_id, step, sequence=sequence, final=False)
                for sequence, step in enumerate(intermediate)
            ),
            metric(parameter_id, value),
            ended(parameter_id),
        )


def trial_of(parameter_id: int) -> str:
    return f"t{parameter_id:04}"


def requested(generation: int, service: str = "") -> event_pb2.Event:
    return event_pb2.Event(
        algorithm_requested=event_pb2.AlgorithmRequested(
            generation=generation, resumed=generation > 1, service=service
        )
    )


def handed_over(generation: int, tuner: config_pb2.AlgorithmConfig) -> event_pb2.Event:
    return event_pb2.Event(
        algorithm_requested=event_pb2.AlgorithmRequested(generation=generation, tuner=tuner)
    )


def scheduled(
    trial_id: str,
    parameter_id: int,
    parameters: Any,
    source: trial_pb2.ParameterSource.ValueType = trial_pb2.PARAMETER_SOURCE_ALGORITHM,
) -> event_pb2.Event:
    return event_pb2.Event(
        trial_scheduled=event_pb2.TrialScheduled(
            trial_id=trial_id, parameter_id=parameter_id, parameters=parameters, source=source
        )
    )


def metric(
    parameter_id: int, value: Any, *, sequence: int = 0, final: bool = True, attempt: int = 1
) -> event_pb2.Event:
    kind = metric_pb2.METRIC_TYPE_FINAL if final else metric_pb2.METRIC_TYPE_PERIODICAL
    return event_pb2.Event(
        metric_reported=event_pb2.MetricReported(
            trial_id=trial_of(parameter_id),
            attempt=attempt,
            parameter_id=parameter_id,
            metric=metric_pb2.Metric(type=kind, sequence=sequence, value=to_value(value)),
        )
    )


def ended(
    parameter_id: int, state: trial_pb2.TrialState.ValueType = trial_pb2.TRIAL_STATE_SUCCEEDED
) -> event_pb2.Event:
    return event_pb2.Event(
        trial_ended=event_pb2.TrialEnded(trial_id=trial_of(parameter_id), attempt=1, state=state)
    )


def stop_requested(trial_id: str) -> event_pb2.Event:
    """Return the event of a stop that the assessor advised."""
    return event_pb2.Event(
        trial_stop_requested=event_pb2.TrialStopRequested(
            trial_id=trial_id, end_state=trial_pb2.TRIAL_STATE_EARLY_STOPPED
        )
    )


def experiment_ended() -> event_pb2.Event:
    return event_pb2.Event(experiment_ended=event_pb2.ExperimentEnded(state="STOPPED"))
