import json
from pathlib import Path

import pytest

from nni.cli.main import DONE, FAILED, REFUSED, main
from nni_proto.experiment.v1 import experiment_pb2
from tests.support.in_memory_manager import InMemoryManager

STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED


def test_show_prints_the_profile(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.documents["/api/v1/nni/experiments/abcd1234/experiment"] = {"id": "abcd1234"}

    assert main(["experiment", "show"]) == DONE

    assert json.loads(capsys.readouterr().out) == {"id": "abcd1234"}


def test_status_holds_errors_and_reason_to_wait(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment(
        "abcd1234",
        errors=["the tuner failed"],
        waiting_for="a GPU",
        trial_counts={"TRIAL_STATE_RUNNING": 2, "TRIAL_STATE_FAILED": 0},
        repeatable=True,
    )

    assert main(["experiment", "status"]) == DONE

    assert json.loads(capsys.readouterr().out) == {
        "status": "RUNNING",
        "errors": ["the tuner failed"],
        "waitingFor": "a GPU",
        "trials": {"RUNNING": 2},
        "repeatable": True,
    }


def test_list_shows_running_experiments_and_with_all_the_stopped_ones(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.add_experiment("old00000", state=STOPPED)

    main(["experiment", "list"])
    running = capsys.readouterr().out
    main(["experiment", "list", "--all", "--json"])
    everything = json.loads(capsys.readouterr().out)

    assert "abcd1234" in running
    assert "old00000" not in running
    assert [record["id"] for record in everything] == ["old00000", "abcd1234"]


def test_list_without_services_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "list"]) == DONE

    assert "no experiment running; try --all" in capsys.readouterr().err


def test_delete_removes_a_stopped_experiment(manager: InMemoryManager) -> None:
    manager.add_experiment("old00000", state=STOPPED)
    manager.add_experiment("abcd1234")

    assert main(["experiment", "delete", "old"]) == DONE

    assert list(manager.known) == ["abcd1234"]


def test_delete_all_keeps_what_runs(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("old00000", state=STOPPED)
    manager.add_experiment("abcd1234")

    assert main(["experiment", "delete", "--all"]) == DONE

    assert list(manager.known) == ["abcd1234"]
    assert "abcd1234 is running and is kept" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["abcd1234", "--all"]])
def test_delete_needs_an_id_or_all(words: list[str], manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234", state=STOPPED)

    assert main(["experiment", "delete", *words]) == REFUSED

    assert list(manager.known) == ["abcd1234"]


def test_unknown_experiment_is_an_error(manager: InMemoryManager) -> None:
    assert main(["experiment", "status", "nope"]) == FAILED


def folder_of(root: Path, experiment_id: str) -> Path:
    """Return a folder with a log."""
    folder = root / "elsewhere" / experiment_id
    (folder / "db").mkdir(parents=True)
    (folder / "db" / "events.log").touch()
    return folder


def test_recover_brings_experiments_back_as_stopped(
    manager: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [folder_of(tmp_path, name) for name in ("first000", "second00")]

    assert main(["experiment", "recover", *map(str, folders)]) == DONE

    assert [found.state for found in manager.known.values()] == [STOPPED, STOPPED]
    assert [found.directory for found in manager.known.values()] == list(map(str, folders))
    assert "to continue it: nnictl resume second00" in capsys.readouterr().out


def test_recover_goes_on_after_a_folder_that_cannot_be_recovered(
    manager: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("known000", state=STOPPED)
    folders = [folder_of(tmp_path, name) for name in ("damaged0", "known000", "whole000")]
    empty = tmp_path / "empty000"

    assert main(["experiment", "recover", str(empty), *map(str, folders)]) == REFUSED

    assert list(manager.known) == ["known000", "whole000"]
    complaints = capsys.readouterr().err
    assert f"{empty}: the folder of an experiment must have the file db/events.log" in complaints
    assert f"{folders[0]}: its log is damaged" in complaints
    assert "experiment known000 is known already" in complaints
    assert "nnictl resume known000 --experiment_dir" in complaints
    assert "3 of 4 folders were not recovered" in complaints


def test_recover_needs_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with_help = main(["experiment", "recover", "--help"])

    assert with_help == DONE
    assert "FOLDER..." in capsys.readouterr().out
    assert main(["experiment", "recover"]) != DONE


def test_tags_are_added_and_removed_and_the_star_is_set(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.add_trial("abcd1234", "high0", result=0.75)

    assert main(["experiment", "tag", "abcd1234", "paper", "second run", "--star"]) == DONE
    assert main(["experiment", "tag", "abcd", "paper", "--remove", "--no-star"]) == DONE
    assert main(["experiment", "tag", "abcd", "--trial", "high0", "odd"]) == DONE
    assert main(["experiment", "tag", "abcd"]) == DONE

    assert capsys.readouterr().out.splitlines() == [
        "★, paper, second run", "second run", "odd", "second run",
    ]  # fmt: skip


def test_note_is_replaced_and_printed(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.add_trial("abcd1234", "high0", result=0.75)

    assert main(["experiment", "note", "abcd1234", "look again"]) == DONE
    assert main(["experiment", "note", "abcd1234"]) == DONE
    assert main(["experiment", "note", "abcd1234", "--trial", "high0", "an outlier"]) == DONE
    assert main(["experiment", "note", "abcd1234", "--trial", "high0"]) == DONE

    assert capsys.readouterr().out.splitlines() == ["look again", "an outlier"]


def test_tags_of_a_viewed_experiment_are_printed_and_not_changed(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    viewed = manager.add_experiment("abcd1234", state=experiment_pb2.EXPERIMENT_STATE_VIEWED)
    viewed.remarks.tags.append("paper")

    assert main(["experiment", "tag", "abcd1234"]) == DONE

    assert capsys.readouterr().out == "paper\n"
    assert main(["experiment", "tag", "abcd1234", "odd"]) == FAILED


def test_short_way_to_the_profile_fails_like_other_output(
    manager: InMemoryManager, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.documents["/api/v1/nni/experiments/abcd1234/experiment"] = {"id": "abcd1234"}
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stdout", full)

        assert main(["experiment", "show", "abcd1234"]) == FAILED

    assert "the output cannot be written: No space left" in capsys.readouterr().err
