"""Composition root: the stop of all experiments, and the services."""

from pathlib import Path

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.messaging.memory import InMemoryBus
from svc_manager.app import SERVICES, release, stop_all
from tests.unit.services.manager.world import hold, world_on

STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED
RUNNING = experiment_pb2.EXPERIMENT_STATE_RUNNING


async def test_a_stop_ends_every_open_experiment(tmp_path: Path) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path, hold) as world:
        first, second = await world.create(), await world.create()
        await world.agent.holds(2)

        await stop_all(world.manager)

        states = [(await world.experiments.get(one)).experiment.state for one in (first, second)]
        assert states == [STOPPED, STOPPED]
        assert not world.agent.live()


async def test_a_single_manager_keeps_its_experiments_when_it_leaves_without_a_stop(
    tmp_path: Path,
) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path, hold) as world:
        experiment_id = await world.create()
        await world.agent.holds(2)

        await release(world.manager, stop_first=False)

        view = (await world.experiments.get(experiment_id)).experiment
    assert view.state == RUNNING


def test_the_services_are_those_of_the_contract() -> None:
    assert sorted(SERVICES) == [
        "nni_proto.bytes.v1.ByteService",
        "nni_proto.experiment.v1.ExperimentService",
        "nni_proto.experiment.v1.HistoryService",
        "nni_proto.experiment.v1.StudyService",
        "nni_proto.runner.v1.InvitationService",
        "nni_proto.runner.v1.PoolService",
        "nni_proto.trial.v1.TrialService",
    ]
