import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from nni.cli.create import option_named
from nni.cli.main import DONE, FAILED, REFUSED, main
from nni.experiment.errors import (
    ConfigError,
    ExperimentError,
    NotFoundError,
    Problem,
    RefusedError,
)
from nni_proto.experiment.v1 import experiment_pb2
from nni_wire.values import from_value
from tests.support.endpoint_files import write_endpoint
from tests.support.in_memory_manager import InMemoryManager
from tests.support.ports import free_port
from tests.support.schema_v1_samples import sample

CONFIG = """\
searchSpace: {x: {_type: uniform, _value: [0, 1]}}
trialCommand: python3 trial.py
trialConcurrency: 2
tuner: {name: Random}
trainingService: {platform: local}
"""
STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED


def _config_error(message: str, field: str) -> ConfigError:
    error = ConfigError([Problem(field, message.removeprefix(field).strip())])
    error.facts = {"field": field}
    return error


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yml"
    path.write_text(CONFIG)
    return path


def test_create_sends_configuration_environment_and_port(
    config: Path,
    manager: InMemoryManager,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATA_SET", "digits")
    port = free_port()

    done = main(["create", "-c", str(config), "--port", str(port), "--url_prefix", "/a/", "-d"])

    assert done == DONE
    (request,) = manager.created
    assert request.port == port
    assert request.url_prefix == "a"
    assert request.config.debug
    assert request.config.trial_concurrency == 2
    assert from_value(request.config.search_space)["x"]["_type"] == "uniform"
    assert request.environment["DATA_SET"] == "digits"
    shown = capsys.readouterr().out
    assert "The experiment id is new00001" in shown
    assert f"The Web UI urls are: http://127.0.0.1:{port}" in shown


def test_related_experiments_enter_by_rank(config: Path, manager: InMemoryManager) -> None:
    done = main(
        ["create", "-c", str(config), "--warm-start", "abcd1234", "--warm-start", "efgh5678"]
    )

    assert done == DONE
    (request,) = manager.created
    assert list(request.config.search.warm_start_from) == ["abcd1234", "efgh5678"]
    assert request.config.search.warm_start_by == "rank"


def test_related_experiments_are_not_mixed_with_results_by_value(
    config: Path, manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(CONFIG + "search: {warmStartFrom: [abcd1234]}\n")

    assert main(["create", "-c", str(config), "--warm-start", "efgh5678"]) == REFUSED
    assert "warmStartBy: rank" in capsys.readouterr().err
    assert manager.created == []


def test_file_of_schema_v1_is_created_as_schema_v2_with_one_warning(
    manager: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample("local_assessor", tmp_path)

    assert main(["create", "-c", str(path), "--port", str(free_port())]) == DONE

    (request,) = manager.created
    assert request.config.trial_command == "python3 mnist.py"
    assert request.config.tuner.name == "TPE"
    shown = capsys.readouterr().err
    assert shown.count("WARNING") == 1
    assert f"{path} has the schema of NNI 1.x (v1)" in shown
    assert "Without meaning here: authorName." in shown
    assert f"nnictl config convert {path}" in shown


def test_file_of_schema_v1_for_a_platform_that_is_not_there_is_refused_by_its_name(
    manager: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["create", "-c", str(sample("dlts", tmp_path))]) == REFUSED

    assert "DLTS is not supported: it has no public API; use kubeflow" in capsys.readouterr().err
    assert not manager.created


def test_output_is_kept_with_the_experiment(config: Path, manager: InMemoryManager) -> None:
    main(["create", "-c", str(config), "--port", str(free_port())])

    log = Path(manager.known["new00001"].directory) / "log" / "nnictl_stdout.log"
    assert "Successfully started experiment!" in log.read_text()


def test_wrong_configuration_is_refused_before_a_call(
    config: Path, manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(CONFIG.replace("trialConcurrency: 2", "trialConcurrency: 0"))

    assert main(["create", "-c", str(config)]) == REFUSED

    assert "trialConcurrency" in capsys.readouterr().err
    assert manager.created == []


def test_services_of_another_version_are_named(
    config: Path,
    manager: InMemoryManager,
    private_home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from nni.experiment.endpoint import read_endpoint

    endpoint = read_endpoint()
    assert endpoint is not None
    write_endpoint(
        private_home / "nni",
        endpoint.supervisor_pid,
        grpc=endpoint.grpc,
        http=endpoint.http,
        token=endpoint.token,
        version="0.1",
    )

    main(["create", "-c", str(config), "--port", str(free_port())])

    assert "have version 0.1" in capsys.readouterr().err


def test_resume_goes_on_with_a_stopped_experiment(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234", state=STOPPED, port=0)
    port = free_port()

    assert main(["resume", "abcd", "--port", str(port)]) == DONE

    resumed = manager.known["abcd1234"]
    assert (resumed.state, resumed.port) == (experiment_pb2.EXPERIMENT_STATE_RUNNING, port)


def test_resume_of_a_running_experiment_is_an_error(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")

    assert main(["resume", "abcd1234", "--port", str(free_port())]) == FAILED

    assert "abcd1234 is running" in capsys.readouterr().err


def test_view_opens_a_stopped_experiment(manager: InMemoryManager) -> None:
    manager.add_experiment("abcd1234", state=STOPPED, port=0)

    assert main(["view", "abcd1234", "--port", str(free_port())]) == DONE

    assert manager.known["abcd1234"].state == experiment_pb2.EXPERIMENT_STATE_VIEWED


def test_json_names_the_new_experiment_and_nothing_else(
    config: Path, manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()

    assert main(["create", "-c", str(config), "--port", str(port), "--json"]) == DONE

    shown = json.loads(capsys.readouterr().out)
    assert shown["id"] == "new00001"
    assert shown["urls"] == [f"http://127.0.0.1:{port}"]
    assert shown["port"] == port


def test_json_and_foreground_exclude_each_other(config: Path, manager: InMemoryManager) -> None:
    assert main(["create", "-c", str(config), "--json", "--foreground"]) == REFUSED

    assert not manager.created


class _Interrupting(list[Any]):
    """List whose growth sends a signal to this process."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__()
        self._number = number

    def append(self, item: Any) -> None:
        super().append(item)
        os.kill(os.getpid(), self._number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_creation_leaves_no_experiment_that_runs(
    number: signal.Signals,
    config: Path,
    manager: InMemoryManager,
    capsys: pytest.CaptureFixture[str],
) -> None:
    manager.created = _Interrupting(number)

    assert main(["create", "-c", str(config)]) == 128 + number

    assert manager.known["new00001"].state == STOPPED
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "Interrupted. Experiment new00001" in shown


def test_resume_without_the_code_is_refused(
    manager: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = manager.add_experiment("abcd1234", state=STOPPED)
    stopped.config.trial_code_directory = str(tmp_path / "gone")

    assert main(["resume", "abcd1234"]) == REFUSED

    assert "trialCodeDirectory must exist" in capsys.readouterr().err
    assert manager.known["abcd1234"].state == STOPPED


@pytest.mark.parametrize(
    "error",
    [
        NotFoundError("no experiment folder", {"kind": "experiment folder with an event log"}),
        _config_error("experiment_directory must be that of abcd", "experiment_directory"),
    ],
)
def test_wrong_folder_is_refused_by_the_name_of_the_option(
    error: ExperimentError, tmp_path: Path
) -> None:
    with pytest.raises(RefusedError, match="the folder that has") as raised, option_named(tmp_path):
        raise error

    assert "experiment_directory" not in str(raised.value)


def test_other_errors_of_resume_stay_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no experiment 'x'"), option_named(tmp_path):
        raise NotFoundError("there is no experiment 'x'", {"kind": "experiment"})
