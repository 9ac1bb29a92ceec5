from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.support.tracked_trials import run_trial

if find_spec("tensorboard") is None:
    pytest.importorskip("tensorboardX")

from nni.hpo import Uniform, optimize
from nni.integrations import TensorBoardCallback, report_to_tensorboard
from nni.integrations.tensorboard import _library


def events_below(folder: Path) -> list[Any]:
    """Return the values of all event files in a folder."""
    if find_spec("tensorboard") is not None:
        pytest.skip("reads event files by tensorboardX")
    import struct

    from tensorboardX.proto.event_pb2 import Event

    found: list[Any] = []
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        while content:  # length, its checksum, event, its checksum
            (length,) = struct.unpack("<Q", content[:8])
            found += Event.FromString(content[12 : 12 + length]).summary.value
            content = content[length + 16 :]
    return found


def test_scalars_and_hyperparameters_are_written_below_the_trial(tmp_path: Path) -> None:
    run_trial(lambda: report_to_tensorboard(tmp_path))

    values = events_below(tmp_path / "STANDALONE/STANDALONE")
    scalars = [(value.tag, value.simple_value) for value in values if value.simple_value]
    assert scalars == [("default", 1.5), ("default", 0.5), ("of/b", 2.0), ("final/default", 0.25)]
    plugins = [value for value in values if value.metadata.plugin_data.plugin_name == "hparams"]
    assert any(b"layer/width" in value.metadata.plugin_data.content for value in plugins)


def test_without_a_folder_it_is_that_of_the_web_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tracked = run_trial(report_to_tensorboard)

    assert isinstance(tracked.run, _library().SummaryWriter)
    assert list((tmp_path / "tensorboard").iterdir())


def test_each_trial_of_a_search_has_a_folder(tmp_path: Path) -> None:
    def objective(parameters: Any) -> Any:
        yield 0.5
        return 0.25 + parameters["x"]

    optimize(
        objective,
        {"x": Uniform(1, 2)},
        tuner="Random",
        trials=2,
        callbacks=[TensorBoardCallback(tmp_path, search="first")],
    )

    folders = sorted((tmp_path / "first").iterdir())
    assert [folder.name for folder in folders] == ["trial-0", "trial-1"]
    scalars = {value.tag: value.simple_value for value in events_below(folders[1])}
    assert scalars["default"] == 0.5
    assert 1.25 <= scalars["final/default"] <= 2.25
