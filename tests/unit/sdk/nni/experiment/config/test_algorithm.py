"""Sections of tuner, assessor and advisor."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nni.experiment.config import (
    AlgorithmConfig,
    CustomAlgorithmConfig,
    ExperimentConfig,
)
from nni.experiment.errors import ConfigError
from tests.support.experiment_configs import complete


@pytest.mark.claim("platform", 16)
def test_arguments_of_the_tuner_exist_before_they_are_touched() -> None:
    config = ExperimentConfig()

    assert config.tuner is not None
    config.tuner.class_args["optimize_mode"] = "maximize"
    config.tuner.name = "TPE"

    assert config.to_dict()["tuner"] == {
        "name": "TPE",
        "classArgs": {"optimize_mode": "maximize"},
    }


def test_algorithm_has_one_source() -> None:
    with pytest.raises(ConfigError, match="only one of name and className"):
        complete(tuner={"name": "TPE", "className": "json.B"}).validate()
    with pytest.raises(ConfigError, match="codeDirectory is only for className"):
        complete(tuner=AlgorithmConfig(name="TPE", code_directory=Path())).validate()
    with pytest.raises(ConfigError, match="must be a module and a class"):
        complete(tuner={"className": "MyTuner"}).validate()


@pytest.mark.parametrize("name", ["nowhere.Tuner", "package.nowhere.Tuner"])
def test_module_of_a_class_must_exist(name: str, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()

    with pytest.raises(ConfigError, match=r"tuner\.className must name a module that exists"):
        complete(tuner={"className": name, "codeDirectory": tmp_path}).validate()


@pytest.mark.parametrize("name", ["mine.Tuner", "package.mine.Tuner", "json.decoder.Tuner"])
def test_module_of_a_class_is_not_imported_to_find_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    for place in (tmp_path, tmp_path / "package"):
        (place / "mine.py").write_text("raise RuntimeError")

    complete(tuner={"className": name, "codeDirectory": tmp_path}).validate()

    assert not {"mine", "package", "package.mine"} & set(sys.modules)


def test_class_looked_for_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert CustomAlgorithmConfig(class_name="json.B").code_directory == tmp_path


def test_tuner_that_a_server_runs_needs_no_class() -> None:
    config = complete(tuner={"serverAddress": "127.0.0.1:50080"})

    config.validate()

    assert config.tuner.server_address == "127.0.0.1:50080"


@pytest.mark.parametrize("address", ["50080", "host:", ":50080", "host:http"])
def test_address_of_a_tuner_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"tuner\.serverAddress must be host:port"):
        complete(tuner={"serverAddress": address}).validate()


def test_only_a_tuner_may_be_run_by_a_server() -> None:
    with pytest.raises(ConfigError, match=r"assessor\.serverAddress is only for a tuner"):
        complete(assessor={"serverAddress": "127.0.0.1:50080"}).validate()
