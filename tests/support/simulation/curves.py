"""Simulated experiments on recorded learning curves, with the services' real decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nni.hpo.simulation.curve_table import CurveTable
from nni.hpo.simulation.table_training import TableTraining
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from tests.support.simulation.agent import Outcome
from tests.support.simulation.scenario import Scenario
from tests.support.simulation.world import World


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Names and arguments of a tuner and an assessor, or of an advisor."""

    tuner: str = ""
    tuner_args: Mapping[str, Any] | None = None
    assessor: str = ""
    assessor_args: Mapping[str, Any] | None = None
    advisor: str = ""
    advisor_args: Mapping[str, Any] | None = None

    def configure(self, table: CurveTable) -> Callable[[config_pb2.ExperimentConfig], None]:
        """Return a function that sets the algorithms and the table's space in a configuration."""

        def change(config: config_pb2.ExperimentConfig) -> None:
            config.search_space.CopyFrom(to_value(table.search_space))
            for kind in ("tuner", "assessor", "advisor"):
                config.ClearField(kind)
                name, arguments = getattr(self, kind), getattr(self, f"{kind}_args")
                if name:
                    modes = {"optimize_mode": table.optimize_mode} | dict(arguments or {})
                    getattr(config, kind).name = name
                    getattr(config, kind).class_args.CopyFrom(to_value(modes))

        return change


def run_on_curves(
    table: CurveTable,
    scheduler: Scheduler,
    scenario: Scenario,
    trial_steps: int | None = None,
) -> World:
    """Simulate an experiment whose trials report the table's values after their recorded times."""
    training = TableTraining(table, trial_steps or table.steps)

    def outcome_of(parameters: Any) -> Outcome:
        segment = training.segment(parameters)
        training.save(parameters, len(segment.values))
        return Outcome(segment.values[-1], segment.values, fails=False, step_s=segment.step_s)

    return World(scenario, outcome_of, scheduler.configure(table)).run()
