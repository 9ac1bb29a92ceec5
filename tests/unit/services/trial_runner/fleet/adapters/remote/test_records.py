"""File with the machines of agents."""

import asyncio
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.remote.machines import Machine
from svc_trial_runner.fleet.adapters.remote.records import FILE, MachineRecord
from svc_trial_runner.fleet.testing import agent_name

MACHINES = [Machine(0, "a", "u"), Machine(1, "b", "u")]


def test_record_survives_the_process(tmp_path: Path) -> None:
    record = MachineRecord(tmp_path / "new", MACHINES)
    asyncio.run(record.add({agent_name(1): 0, agent_name(2): 1}))
    asyncio.run(record.forget([agent_name(1), agent_name(7)]))

    assert MachineRecord(tmp_path / "new", MACHINES).places() == {agent_name(2): 1}


def test_agents_follow_their_machine_in_a_changed_list(tmp_path: Path) -> None:
    asyncio.run(MachineRecord(tmp_path, MACHINES).add({agent_name(1): 0, agent_name(2): 1}))

    assert MachineRecord(tmp_path, [MACHINES[1]]).places() == {agent_name(2): 0}


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000])
def test_damaged_file_is_an_empty_record(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)

    assert MachineRecord(tmp_path, MACHINES).places() == {}


def test_record_is_private_and_leaves_no_draft(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    record = MachineRecord(folder, MACHINES)

    for number in (1, 2):
        asyncio.run(record.add({agent_name(number): 0}))

    assert folder.stat().st_mode & 0o777 == 0o700
    assert [one.name for one in folder.iterdir()] == [FILE]
    assert record.places() == {agent_name(1): 0, agent_name(2): 0}


def test_nothing_is_written_without_a_change(tmp_path: Path) -> None:
    record = MachineRecord(tmp_path / "a", MACHINES)

    asyncio.run(record.add({}))
    asyncio.run(record.forget([agent_name(1)]))

    assert not (tmp_path / "a").exists()


def test_names_that_are_none_of_agents_are_left_out(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"me": "u@a:22"}')

    assert MachineRecord(tmp_path, MACHINES).places() == {}


@pytest.mark.parametrize("address", ["[]", "{}", "7", "null", '"u@gone:22"'])
def test_place_that_is_no_machine_of_the_section_is_left_out(tmp_path: Path, address: str) -> None:
    names = [str(agent_name(number)) for number in (1, 2)]
    (tmp_path / FILE).write_text(f'{{"{names[0]}": {address}, "{names[1]}": "u@b:22"}}')

    assert MachineRecord(tmp_path, MACHINES).places() == {agent_name(2): 1}


def test_agent_that_is_started_elsewhere_has_its_new_machine(tmp_path: Path) -> None:
    record = MachineRecord(tmp_path, MACHINES)
    asyncio.run(record.add({agent_name(1): 0, agent_name(2): 0}))

    asyncio.run(record.add({agent_name(1): 1}))

    assert record.places() == {agent_name(1): 1, agent_name(2): 0}
