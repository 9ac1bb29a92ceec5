"""Fuzzed search spaces, configurations and command lines: each is accepted or refused."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nni.cli.main import main
from nni.experiment import ExperimentConfig
from nni.experiment.errors import ConfigError
from nni.hpo import RandomTuner
from nni.hpo.space.parser import contains, parse_space
from tests.support.fuzzing.effort import cases
from tests.support.fuzzing.json_values import changed, json_values
from tests.support.fuzzing.messages import broken
from tests.support.local_shape import LocalShape, running_shape

NESTED: Final = {"_type": "choice", "_value": [1, "a"]}
SPACES: Final[list[Any]] = [
    {"x": {"_type": "uniform", "_value": [0, 1]}, "n": {"_type": "randint", "_value": [1, 9]}},
    {"lr": {"_type": "loguniform", "_value": [1e-5, 0.1]}},
    {"q": {"_type": "quniform", "_value": [0, 10, 0.5]}},
    {
        "z": {"_type": "qlognormal", "_value": [0, 1, 0.1]},
        "m": {"_type": "normal", "_value": [0, 1]},
    },
    {"c": {"_type": "choice", "_value": [1, None, {"_name": "b", "y": NESTED}]}},
]
CONFIG: Final[dict[str, Any]] = {
    "experimentName": "fuzz",
    "searchSpace": SPACES[0],
    "trialCommand": "python3 trial.py",
    "trialConcurrency": 2,
    "trialGpuNumber": 0,
    "maxExperimentDuration": "1h",
    "maxTrialNumber": 10,
    "maxTrialDuration": "10m",
    "debug": False,
    "tunerGpuIndices": [0, 1],
    "tuner": {"name": "TPE", "classArgs": {"optimize_mode": "minimize"}},
    "assessor": {"name": "Medianstop", "classArgs": {"start_step": 2}},
    "trainingService": {"platform": "local", "useActiveGpu": True, "gpuIndices": "0,1"},
}
WORDS: Final = [
    "create", "resume", "view", "stop", "update", "trial", "experiment", "log", "config", "top",
    "webui", "runner", "ss_gen", "doctor", "ls", "kill", "show", "list", "status", "export",
    "import", "delete", "concurrency", "duration", "trialnum", "searchspace", "stdout", "url",
    "--config", "-c", "-f", "--filename", "-v", "--value", "--port", "-p", "--all", "-a", "--json",
    "--head", "--tail", "-t", "--type", "-i", "--trial_id", "-T", "--help", "-h", "--", "-", "",
    "abc12345", "8080", "-1", "99999999999", "1h", "no/such/file", "*", "🦆", "\x00", "=", "--x=1",
]  # fmt: skip


@cases(80)
@given(space=changed(st.sampled_from(SPACES)) | json_values())
def test_a_search_space_is_read_or_refused_in_words(space: Any) -> None:
    try:
        parsed = parse_space(space)
    except ValueError as error:
        assert len(str(error)) > 8  # noqa: PT017 - a right space raises nothing
        return
    tuner = RandomTuner(seed=1)
    tuner.update_search_space(space)
    assert contains(parsed, tuner.generate_parameters(0))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "trial.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def texts() -> st.SearchStrategy[bytes]:
    documents = changed(st.just(CONFIG)) | json_values()
    written = documents.map(lambda data: json.dumps(data).encode()) | documents.map(
        lambda data: yaml.safe_dump(data, allow_unicode=True).encode("utf-8", "surrogatepass")
    )
    return written | written.flatmap(broken) | st.binary(max_size=30)


@cases(80)
@given(text=texts())
def test_a_configuration_is_read_or_refused_in_words(folder: Path, text: bytes) -> None:
    path = folder / "config.yml"
    path.write_bytes(text)

    try:
        config = ExperimentConfig.load(path)
    except ConfigError as error:
        assert str(path) in str(error)  # noqa: PT017 - a right one raises nothing
        return
    with contextlib.suppress(ConfigError):
        config.validate()
    config.save(folder / "again.yml")
    assert ExperimentConfig.load(folder / "again.yml") == config


@pytest.fixture(scope="module")
def empty_shape(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalShape]:
    """Running services without any experiment."""
    with running_shape(tmp_path_factory.mktemp("shape")) as shape:
        yield shape


@pytest.fixture
def commands(empty_shape: LocalShape, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point `nnictl` in this process to the services."""
    assert folder.exists()
    monkeypatch.setenv("NNI_HOME", str(empty_shape.home))


@pytest.mark.usefixtures("commands")
@cases(40)
@given(words=st.lists(st.sampled_from(WORDS), max_size=6))
def test_a_command_line_is_carried_out_or_refused_in_words(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(words)

    output = capsys.readouterr()
    assert code in {0, 1, 2}
    assert "Traceback" not in output.err + output.out
    assert "This is a defect" not in output.err
    assert code == 0 or (output.err + output.out).strip()
