"""Wiring of the manager's parts."""

from pathlib import Path

from svc_common.messaging.memory import InMemoryBus
from tests.unit.services.manager.world import world_on


async def test_all_parts_share_one_registry_and_one_monitor(tmp_path: Path) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        experiment_id = await world.create()
        actor = await world.manager.registry.find(experiment_id)

        listed = await world.experiments.list()
        counts = await world.manager.trials.counts(experiment_id)
        text = world.manager.telemetry.instruments.registry.render()

    assert [one.id for one in listed.items] == [experiment_id]
    assert sum(counts.values()) <= len(actor.experiment.trials)
    assert "nni_experiments" in str(text)


async def test_without_a_lease_store_no_other_manager_is_expected(tmp_path: Path) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        assert not world.manager.ownership.shared
        assert world.manager.ownership.others == []
