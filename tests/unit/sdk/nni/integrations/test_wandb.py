from pathlib import Path
from typing import Any

import pytest

from tests.support.tracked_trials import run_trial

wandb = pytest.importorskip("wandb")

from nni.hpo import Uniform, optimize  # noqa: E402
from nni.integrations import WandbCallback, report_to_wandb  # noqa: E402 - needs the library

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def test_an_offline_run_has_all_of_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEAM_KEY", "k" * 40)
    (tmp_path / "model.txt").write_text("weights")
    seen: dict[str, Any] = {}

    def start() -> Any:
        tracked = report_to_wandb(
            "digits",
            offline=True,
            key_variable="TEAM_KEY",
            outputs="model.txt",
            settings={"silent": True, "x_disable_stats": True, "console": "off"},
        )
        seen["config"] = tracked.run.config
        return tracked

    tracked = run_trial(start)
    wandb.teardown()  # its process has the last part of the file until it ends

    assert tracked.run.project == "digits"
    assert tracked.run.group == "STANDALONE"
    assert dict(seen["config"])["layer/kind"] == "conv"
    [written] = (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")
    content = written.read_bytes()
    for part in (b"final/default", b"nni.trial_id", b"of/b", b"model.txt"):
        assert part in content
    assert all(b"k" * 40 not in path.read_bytes() for path in files_in(tmp_path / "wandb"))


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_missing_key_is_an_error_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="key_variable must be the name of an environment"):
        report_to_wandb(key_variable="NO_SUCH_KEY")


def test_each_trial_of_a_search_is_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    track = WandbCallback(
        "square",
        offline=True,
        search="first",
        settings={"silent": True, "x_disable_stats": True, "console": "off"},
    )

    optimize(
        lambda parameters: parameters["x"] ** 2,
        {"x": Uniform(0, 1)},
        tuner="Random",
        trials=2,
        callbacks=[track],
    )
    wandb.teardown()  # its process has the last part of the files until it ends

    written = list((tmp_path / "wandb").glob("offline-run-*/run-*.wandb"))
    assert len(written) == 2
    for path in written:
        content = path.read_bytes()
        assert b"final/default" in content
        assert b"nni.search" in content
