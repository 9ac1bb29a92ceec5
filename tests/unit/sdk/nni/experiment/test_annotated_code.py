from __future__ import annotations

from pathlib import Path

import pytest

from nni.experiment.annotated_code import (
    annotated_search_space,
    converted_code,
    remove_converted_code,
)
from nni.experiment.config import AlgorithmConfig, ExperimentConfig, LocalConfig
from nni.experiment.errors import ConfigError, RefusedError, UnreachableError, WrongStateError

ANNOTATED = "'''@nni.variable(nni.uniform(0, 1), name=x)'''\nx = 0.5\n"
SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "trial.py").write_text(ANNOTATED)
    return folder


@pytest.fixture
def config(code: Path) -> ExperimentConfig:
    config = ExperimentConfig(
        trial_command="python3 trial.py",
        trial_code_directory=code,
        trial_concurrency=1,
        use_annotation=True,
        training_service=LocalConfig(),
    )
    config.tuner = AlgorithmConfig(name="Random")
    return config


def copies(home: Path) -> list[Path]:
    return [*(home / "nni" / "annotation").glob("*")]


def test_trials_run_a_copy_below_the_home_of_the_installation(
    config: ExperimentConfig, private_home: Path
) -> None:
    before = config.to_dict()
    config.validate()

    with converted_code(config) as runnable:
        pass

    (copy,) = copies(private_home)
    assert runnable.trial_code_directory == copy
    assert runnable.search_space == SPACE
    assert "__nni__" in (copy / "trial.py").read_text()
    assert config.to_dict() == before


def test_configuration_without_annotation_is_left_alone(
    config: ExperimentConfig, private_home: Path
) -> None:
    config.use_annotation = False

    with converted_code(config) as runnable:
        assert runnable is config

    assert copies(private_home) == []


@pytest.mark.claim("hpo", 21)
@pytest.mark.parametrize("field", ["search_space", "search_space_file"])
def test_search_space_beside_annotations_is_refused(
    config: ExperimentConfig, code: Path, field: str
) -> None:
    setattr(config, field, {} if field == "search_space" else code / "space.json")

    with pytest.raises(ConfigError, match="useAnnotation must not be given together"):
        config.validate()


@pytest.mark.parametrize(
    ("tuner", "content", "message"),
    [
        ("GridSearch", "x = 1\n", "code: must have an annotation"),
        (
            "GridSearch",
            f"y = 1\n{ANNOTATED}".replace("x =", "z ="),
            r"code/trial\.py:2: .* assigns to z",
        ),
        (
            "BatchTuner",
            "'''@nni.variable(nni.lognormal(0, 1), name=x)'''\nx = 1\n",
            "BatchTuner.*lognormal",
        ),
    ],
)
def test_code_that_cannot_be_tuned_is_refused_before_the_start(
    config: ExperimentConfig,
    code: Path,
    private_home: Path,
    tuner: str,
    content: str,
    message: str,
) -> None:
    config.tuner = AlgorithmConfig(name=tuner)
    (code / "trial.py").write_text(content)

    with pytest.raises(ConfigError, match=message), converted_code(config):
        pass

    assert copies(private_home) == []


def test_folder_that_cannot_be_written_is_refused(
    config: ExperimentConfig, private_home: Path
) -> None:
    (private_home / "nni").mkdir()
    (private_home / "nni" / "annotation").write_text("a file")

    with pytest.raises(RefusedError, match="cannot be copied"), converted_code(config):
        pass


@pytest.mark.parametrize(
    ("error", "left"), [(WrongStateError("taken"), 0), (UnreachableError("time out"), 1)]
)
def test_copy_goes_with_the_experiment_that_was_refused(
    config: ExperimentConfig, private_home: Path, error: Exception, left: int
) -> None:
    with pytest.raises(type(error)), converted_code(config):
        raise error

    assert len(copies(private_home)) == left


def test_only_copies_are_removed_with_their_experiment(
    config: ExperimentConfig, code: Path, private_home: Path
) -> None:
    with converted_code(config) as runnable:
        pass

    remove_converted_code(str(runnable.trial_code_directory))
    remove_converted_code(str(code))
    remove_converted_code("")

    assert copies(private_home) == []
    assert (code / "trial.py").is_file()


def test_what_is_never_sent_and_what_experiments_write_is_no_code(
    config: ExperimentConfig, code: Path
) -> None:
    wrong = "'''@nni.wrong'''\n"
    for folder in ("data", "experiments", ".git"):
        (code / folder).mkdir()
        (code / folder / "wrong.py").write_text(wrong)
    (code / ".nniignore").write_text("data/\n")
    config.experiment_working_directory = code / "experiments"

    with converted_code(config) as runnable:
        pass

    copy = runnable.trial_code_directory
    assert (copy / "data" / "wrong.py").read_text() == wrong
    assert all((copy / folder).is_symlink() for folder in ("data", "experiments", ".git"))


def test_space_can_be_had_without_an_experiment(code: Path, private_home: Path) -> None:
    assert annotated_search_space(code) == SPACE
    assert copies(private_home) == []
