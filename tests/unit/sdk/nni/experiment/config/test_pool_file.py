from pathlib import Path

import pytest

from nni.experiment.config.pool_file import PoolFile
from nni.experiment.errors import ConfigError


def written(folder: Path, text: str) -> Path:
    file = folder / "pool.yml"
    file.write_text(text)
    return file


def test_file_is_read_with_paths_relative_to_its_folder(tmp_path: Path) -> None:
    text = """
name: gpus
trainingService:
  platform: remote
  machineList:
    - {host: box, user: ann, sshKeyFile: key}
slots: 2
minAgents: 1
maxAgents: 4
idleTime: 5m
maxAgentTime: 10h
maxCost: 20
costPerAgentHour: 1.5
"""

    pool = PoolFile.load(written(tmp_path, text))

    (section,) = pool.platforms()
    assert section.to_dict()["machineList"][0]["sshKeyFile"] == str(tmp_path / "key")
    assert (pool.name, pool.slots, pool.min_agents, pool.max_agents) == ("gpus", 2, 1, 4)
    assert (pool.max_agent_time, pool.max_cost, pool.cost_per_agent_hour) == ("10h", 20.0, 1.5)


def test_pool_without_platforms_is_for_agents_that_join_by_hand(tmp_path: Path) -> None:
    assert PoolFile.load(written(tmp_path, "name: hands")).platforms() == []


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("name: exp-1", "name"),
        ("name: gpus\nmaxAgent: 3", "maxAgent"),
        ("name: gpus\nminAgents: 3\nmaxAgents: 2", "maxAgents"),
        ("name: gpus\nmaxCost: 3", "costPerAgentHour"),
        ("name: gpus\nmaxCost: -3\ncostPerAgentHour: 1", "maxCost"),
        ("name: gpus\nmaxCost: .nan\ncostPerAgentHour: 1", "maxCost"),
        ("name: gpus\nmaxAgentTime: soon", "maxAgentTime"),
        ("name: gpus\ntrainingService: {platform: pool, name: b}", "trainingService.platform"),
        ("name: gpus\ntrainingService: [{platform: remote}]", r"trainingService\[0\].machineList"),
        ("- a list", "mapping"),
    ],
)
def test_broken_rule_is_one_error_that_names_file_and_field(
    text: str, field: str, tmp_path: Path
) -> None:
    file = written(tmp_path, text)

    with pytest.raises(ConfigError, match=field) as caught:
        PoolFile.load(file)

    assert str(file) in str(caught.value)
