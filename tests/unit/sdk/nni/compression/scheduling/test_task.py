import json
import math
from pathlib import Path

import pytest
from torch import nn

from nni.compression.scheduling import task_files
from nni.compression.scheduling.task import Task, TaskStatus


def test_a_task_loads_its_files(tmp_path: Path) -> None:
    paths = tmp_path / "model.pth", tmp_path / "masks.pth", tmp_path / "config_list.json"
    task_files.save_model(nn.Linear(1, 2), paths[0])
    task_files.save_masks({}, paths[1])
    task_files.save_config_list([{"op_names": ["a"]}], paths[2])

    model, masks, config_list = Task(0, *paths).load_data()

    assert isinstance(model, nn.Linear)
    assert (masks, config_list) == ({}, [{"op_names": ["a"]}])
    assert Task(0, *paths).paths() == set(paths)


@pytest.mark.parametrize(("score", "written"), [(0.5, 0.5), (None, None), (math.nan, None)])
def test_a_task_is_json(score: float | None, written: float | None) -> None:
    task = Task(3, "m", "k", "c", TaskStatus.FINISHED, score, {"iteration": 1})

    assert json.loads(json.dumps(task.to_dict())) == {
        "task_id": 3,
        "model_path": "m",
        "masks_path": "k",
        "config_list_path": "c",
        "status": "Finished",
        "score": written,
        "state": {"iteration": 1},
    }
