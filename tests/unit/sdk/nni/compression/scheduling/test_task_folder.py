import json
import re
from pathlib import Path

from torch import nn

from nni.compression.scheduling.task import Task
from nni.compression.scheduling.task_folder import TaskFolder


def test_each_pruning_gets_a_folder_named_by_the_time(tmp_path: Path) -> None:
    folders = [TaskFolder(tmp_path).path for _ in range(3)]

    assert len(set(folders)) == 3
    for path in folders:
        assert path.parent == tmp_path
        assert re.fullmatch(r"\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-\d{6}", path.name)


def test_origin_and_best_result_have_three_files_each(tmp_path: Path) -> None:
    folder = TaskFolder(tmp_path)

    folder.save_origin(nn.Linear(1, 1), {}, [])
    folder.save_best(nn.Linear(1, 2), {}, [{"op_names": ["a"]}])

    for name in ("origin", "best_result"):
        found = sorted(path.name for path in (folder.path / name).iterdir())
        assert found == ["config_list.json", "masks.pth", "model.pth"]
    assert folder.best().load_data()[2] == [{"op_names": ["a"]}]
    assert folder.origin_model_path.is_file()
    assert folder.origin_masks_path.is_file()


def test_files_that_no_task_starts_from_are_removed(tmp_path: Path) -> None:
    folder = TaskFolder(tmp_path)
    kept, _ = folder.save_compact(0, nn.Linear(1, 1), {})
    folder.save_config_list(0, [])

    folder.remove_unused({kept})

    assert [path.name for path in kept.parent.iterdir()] == ["0_compact_model.pth"]
    folder.remove_unused(set())
    assert not kept.parent.exists()
    folder.remove_unused(set())  # may be repeated


def test_tasks_are_written_as_json(tmp_path: Path) -> None:
    folder = TaskFolder(tmp_path)
    task = Task(0, "m", "k", "c")

    folder.write_tasks([task])

    assert json.loads((folder.path / ".tasks").read_text()) == {"0": task.to_dict()}
