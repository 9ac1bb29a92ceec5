"""Checkpoints of an algorithm."""

from pathlib import Path
from typing import Any

import pytest

from nni.hpo.host.checkpoints import LEAST_WORK_S, CheckpointFile, CheckpointSchedule
from nni.hpo.registry import factory
from nni.hpo.search.driver import MetricCommand, TrialEndCommand
from nni.hpo.search.tuner_driver import TunerDriver

SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "y": {
        "_type": "choice",
        "_value": ["a", {"_name": "b", "z": {"_type": "randint", "_value": [0, 9]}}],
    },
}


def test_checkpoint_comes_back_to_the_same_algorithm_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "algorithm.json"
    CheckpointFile(path, {"seed": 1}).save([3, 0], {"x": float("inf")})

    assert CheckpointFile(path, {"seed": 1}).load() == ([3, 0], {"x": float("inf")})
    assert CheckpointFile(path, {"seed": 2}).load() is None
    assert CheckpointFile(None, {"seed": 1}).load() is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"identity": {}}'])
def test_damaged_checkpoint_is_no_checkpoint(tmp_path: Path, text: str) -> None:
    path = tmp_path / "algorithm.json"
    path.write_text(text)

    assert CheckpointFile(path, {}).load() is None


def test_checkpoint_that_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    CheckpointFile(tmp_path / "file" / "algorithm.json", {}).save([1, 0], {})

    assert (tmp_path / "file").read_text() == ""


def test_checkpoint_is_due_after_work_that_is_worth_it() -> None:
    worked_s = [LEAST_WORK_S]
    due = CheckpointSchedule(work_s=lambda: worked_s[0])

    early = due()
    worked_s[0] += 1.0
    later = due()
    due.taken(began_s=worked_s[0] - 0.5)  # it cost half a second
    worked_s[0] += 2.0
    too_soon = due()
    worked_s[0] += 1.0

    assert (early, later, too_soon, due()) == (False, True, False, True)


@pytest.mark.parametrize(("worked_s", "due"), [(0.24, False), (0.26, True)])
def test_first_checkpoint_is_due_after_a_quarter_of_a_second_of_work(
    worked_s: float, due: bool
) -> None:
    assert CheckpointSchedule(work_s=lambda: worked_s)() is due


def hosting(said: list[dict[str, Any]], tuner: str = "TPE") -> TunerDriver:
    built = factory.create("tuner", tuner, {}, 5)
    made = TunerDriver(built, factory.create("assessor", "Medianstop"), {}, said.append)
    made.initialize(SPACE)
    return made


def work(made: TunerDriver, ids: range) -> list[Any]:
    suggested = [item for id_ in ids for item in made.generate([id_]).parameters]
    for id_, parameters, _ in suggested[:-1]:
        for attempt in (1, 2):
            made.metric(MetricCommand(f"t{id_}", attempt, id_, False, 0, 0.5, False))
        made.metric(MetricCommand(f"t{id_}", 2, id_, True, 0, parameters["x"], False))
        made.trial_end(TrialEndCommand(f"t{id_}", id_, "SUCCEEDED", False))
    return suggested


@pytest.mark.parametrize("tuner", ["TPE", "Random"])
def test_restored_algorithm_goes_on_as_the_first(tmp_path: Path, tuner: str) -> None:
    said: list[dict[str, Any]] = []
    first = hosting(said, tuner)
    work(first, range(15))
    checkpoints = CheckpointFile(tmp_path / "algorithm.json", {})
    state = first.snapshot()
    assert state is not None
    checkpoints.save([9, 0], state)

    second = hosting([], tuner)
    kept = checkpoints.load()
    assert kept is not None
    second.restore(kept[1])

    assert second.repeat([14]) == first.repeat([14])
    assert second.repeat([14]).parameters[0][0] == 14
    assert work(second, range(15, 30)) == work(first, range(15, 30))
    assert second.snapshot() == first.snapshot()


def test_advice_that_may_not_have_arrived_is_given_again() -> None:
    said: list[dict[str, Any]] = []
    first = hosting([])
    work(first, range(3))
    first.generate([3])
    first.metric(MetricCommand("t3", 1, 3, False, 0, -9.0, False))  # the median is 0.5
    state = first.snapshot()
    assert state is not None

    hosting(said).restore(state)

    assert said == [{"stop": "t3"}]


def test_digest_is_that_of_the_loaded_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "algorithm.json"
    CheckpointFile(path, {"seed": 1}).save([3, 0], {}, digest=7)
    fitting, other = CheckpointFile(path, {"seed": 1}), CheckpointFile(path, {"seed": 2})
    before = fitting.digest
    fitting.load()
    other.load()

    assert (before, fitting.digest, other.digest) == (0, 7, 0)


@pytest.mark.parametrize(("log_end", "fits"), [([3, 0], True), ([2, 9], False), ([3, 1], True)])
def test_checkpoint_beyond_the_log_is_deleted(
    tmp_path: Path, log_end: list[int], fits: bool
) -> None:
    path = tmp_path / "algorithm.json"
    CheckpointFile(path, {}).save([3, 0], {})

    found = CheckpointFile(path, {}).load(log_end)

    assert (found is not None, path.exists()) == (fits, fits)


def test_refused_checkpoint_that_is_gone_is_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    CheckpointFile(tmp_path / "absent.json", {}).discard("it differs")

    assert "is refused: it differs" in caplog.text
    assert "cannot be deleted" not in caplog.text


def test_refused_checkpoint_that_cannot_be_deleted_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "folder").mkdir()

    CheckpointFile(tmp_path / "folder", {}).discard("it differs")

    assert "cannot be deleted" in caplog.text
