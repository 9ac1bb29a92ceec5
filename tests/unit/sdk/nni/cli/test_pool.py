import json
from pathlib import Path

import pytest

from nni.cli.main import DONE, FAILED, REFUSED, main
from nni_proto.runner.v1 import pool_pb2
from tests.support.in_memory_manager import InMemoryManager

FILE = """
name: gpus
trainingService: {platform: slurm, partition: gpu}
maxAgents: 4
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pool.yml"
    path.write_text(FILE)
    return path


@pytest.fixture
def gpus(manager: InMemoryManager) -> InMemoryManager:
    """Manager with a pool that an experiment uses."""
    agent = pool_pb2.PoolAgent(
        name="nni-abcdefgh-gpus-1",
        platform="slurm",
        state=pool_pb2.POOL_AGENT_STATE_PENDING,
        slots=2,
        reason="Resources",
    )
    pool = manager.pools.add("gpus", "slurm", agents=[agent], reason="slurm: it waits")
    pool.users.add(experiment_id="abcd1234", waiting_count=3, running_count=1)
    pool.definition.limits.max_agents = 4
    pool.definition.limits.cost_per_agent_hour = 2.0
    pool.used_agent_time.FromSeconds(5400)
    return manager


def test_create_sends_the_file_and_names_how_experiments_use_the_pool(
    manager: InMemoryManager, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pool", "create", str(file)]) == DONE

    definition = manager.pools.pools["gpus"].definition
    assert (definition.platforms[0].platform, definition.limits.max_agents) == ("slurm", 4)
    assert "{platform: pool, name: gpus}" in capsys.readouterr().out


def test_broken_file_is_one_error_and_nothing_is_sent(
    manager: InMemoryManager, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(FILE + "maxCost: 5\n")

    assert main(["pool", "create", str(file)]) == REFUSED

    assert "costPerAgentHour must be given with maxCost" in capsys.readouterr().err
    assert manager.pools.pools == {}


def test_update_replaces_the_definition(gpus: InMemoryManager, file: Path) -> None:
    file.write_text(FILE.replace("4", "9"))

    assert main(["pool", "update", "gpus", str(file)]) == DONE

    assert gpus.pools.pools["gpus"].definition.limits.max_agents == 9


def test_update_with_the_file_of_another_pool_is_refused(
    gpus: InMemoryManager, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(FILE.replace("gpus", "other"))

    assert main(["pool", "update", "gpus", str(file)]) == REFUSED

    assert "defines pool other, not gpus" in capsys.readouterr().err


def test_list_has_a_line_per_pool(
    gpus: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    gpus.pools.add("cpus", "remote").definition.draining = True

    assert main(["pool", "list"]) == DONE
    first, second = capsys.readouterr().out.splitlines()[-2:]

    assert first.split()[:3] == ["cpus", "DRAINING", "remote"]
    assert second.split() == ["gpus", "OPEN", "slurm", "1", "3", "1", "1.5", "abcd1234"]


def test_show_prints_limits_agents_and_users(
    gpus: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pool", "show", "gpus"]) == DONE
    shown = capsys.readouterr().out

    for text in ("maxAgents: 4", "usedCost: 3.0", "reason: slurm: it waits", "PENDING", "abcd1234"):
        assert text in shown


def test_show_prints_json(gpus: InMemoryManager, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pool", "show", "gpus", "--json"]) == DONE
    record = json.loads(capsys.readouterr().out)

    assert (record["name"], record["usedHours"], record["platforms"]) == ("gpus", 1.5, ["slurm"])
    assert record["agents"][0]["reason"] == "Resources"


def test_drain_may_be_undone(gpus: InMemoryManager) -> None:
    assert main(["pool", "drain", "gpus"]) == DONE
    assert gpus.pools.pools["gpus"].definition.draining

    assert main(["pool", "drain", "gpus", "--undo"]) == DONE
    assert not gpus.pools.pools["gpus"].definition.draining


def test_pool_in_use_is_removed_with_force_only(gpus: InMemoryManager) -> None:
    assert main(["pool", "rm", "gpus"]) == FAILED
    assert main(["pool", "rm", "gpus", "--force"]) == DONE

    assert gpus.pools.pools == {}


def test_unknown_pool_is_an_error(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pool", "show", "nope"]) == FAILED

    assert "no pool nope" in capsys.readouterr().err


def test_wrong_name_lists_the_pools_and_the_near_one(
    gpus: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pool", "drain", "gpu"]) == FAILED

    assert "known are: gpus; did you mean 'gpus'?" in capsys.readouterr().err


def test_wrong_name_without_pools_says_how_to_make_one(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pool", "show", "nope"]) == FAILED

    assert "nnictl pool create FILE" in capsys.readouterr().err
