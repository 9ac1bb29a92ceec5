import json
from pathlib import Path

import torch

from nni.compression.pruning.amc.agent import Agent, AgentSettings
from nni.compression.pruning.amc.search_files import Episode, SearchFiles

RESULT = Episode((0.5, 1.0), 90.0, 0.4, 0.9)


def test_each_search_gets_the_next_number(tmp_path: Path) -> None:
    found = [SearchFiles(tmp_path, "a_search", None).folder.name for _ in range(2)]

    assert found == ["a_search-run1", "a_search-run2"]


def test_a_suffix_names_the_folder_and_its_log_starts_anew(tmp_path: Path) -> None:
    SearchFiles(tmp_path, "a", "one").add(0, RESULT)

    files = SearchFiles(tmp_path, "a", "one")

    assert files.folder == tmp_path / "a-one"
    assert (files.folder / "log.txt").read_text() == ""


def test_results_are_text_and_json(tmp_path: Path) -> None:
    files = SearchFiles(tmp_path, "a", None)

    files.add(3, RESULT)

    text = "episode 3: accuracy 90.0000, FLOPs ratio 0.4000, reward 0.900000, kept 0.5000, 1.0000\n"
    assert (files.folder / "log.txt").read_text() == text
    assert json.loads((files.folder / "history.jsonl").read_text()) == {
        "episode": 3,
        "actions": [0.5, 1.0],
        "accuracy": 90.0,
        "flops_ratio": 0.4,
        "reward": 0.9,
    }


def test_networks_are_saved_as_state_dicts(tmp_path: Path) -> None:
    agent = Agent(2, 4, 0.2, 1.0, AgentSettings(4, 4), torch.Generator())
    files = SearchFiles(tmp_path, "a", None)

    files.save_agent(agent)

    state = torch.load(files.folder / "actor.pkl", weights_only=True)
    assert list(state) == list(agent.actor.state_dict())
    assert (files.folder / "critic.pkl").is_file()
