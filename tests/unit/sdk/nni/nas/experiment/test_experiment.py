import io
import json
import logging
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nni
from nni.experiment.errors import NotFoundError
from nni.mutable import Categorical
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.space import ModelStatus
from nni.nas.strategy import GridSearch, Random, Strategy
from nni.nas.strategy.base import StrategyStatus
from nni.testing.strategies import TableSpace

Make = Callable[..., NasExperiment]


class Evaluating:
    """Evaluator that counts its calls and raises an error at one of them."""

    def __init__(self, error_at: int = 0, error: BaseException | None = None) -> None:
        self.samples: list[dict[str, int]] = []
        self.error_at = error_at
        self.error = error

    def evaluate(self, model: dict[str, int]) -> None:
        self.samples.append(dict(model))
        if len(self.samples) == self.error_at and self.error is not None:
            raise self.error
        nni.report_final_result(model["a"] * 10 + model["b"])


class Killed(BaseException):
    """End of the process, after which nothing of the experiment runs."""


def space() -> TableSpace:
    """Return a space of 18 models."""
    return TableSpace(Categorical([1, 2, 3], label="a"), Categorical([1, 2, 3, 4, 5, 6], label="b"))


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Return a constructor of experiments that are stopped at the end of the test."""
    made: list[NasExperiment] = []

    def build(
        evaluator: Evaluating | None = None,
        strategy: Strategy | None = None,
        id: str | None = None,  # noqa: A002 - name of the argument
        **fields: Any,
    ) -> NasExperiment:
        config = NasExperimentConfig(
            "sequential", "raw", experiment_working_directory=tmp_path, **fields
        )
        made.append(
            NasExperiment(
                space(), evaluator or Evaluating(), strategy or GridSearch(seed=0), config, id
            )
        )
        return made[-1]

    yield build
    for experiment in made:
        experiment.stop()


def entry_of(experiment: NasExperiment) -> dict[str, Any]:
    path = Path(experiment.config.experiment_working_directory) / ".experiment"
    entry: dict[str, Any] = json.loads(path.read_text())[experiment.id]
    return entry


# Identity


@pytest.mark.claim("nas", 70)
@pytest.mark.parametrize("wrong", ["a b", "", "x" * 33, "a/b", "ä"])
def test_ids_of_other_characters_are_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="id must be 1 to 32 letters, digits"):
        NasExperiment(space(), None, Random(), id=wrong)


@pytest.mark.parametrize("wrong", ["random", Random])
def test_strategy_of_another_type_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="strategy must be an object"):
        NasExperiment(space(), None, wrong)


@pytest.mark.claim("nas", 70)
@pytest.mark.parametrize("wrong", [None, Evaluating, max])
def test_evaluator_of_another_type_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"evaluator must be an object with the method evaluate\("):
        NasExperiment(space(), wrong, GridSearch())


def test_generated_ids_are_valid(make: Make) -> None:
    ids = {make().id for _ in range(20)}

    assert len(ids) == 20
    assert all(re.fullmatch(r"[A-Za-z0-9_\-]{8}", one) for one in ids)


@pytest.mark.claim("nas", 71)
def test_command_channel_needs_a_running_experiment(make: Make) -> None:
    experiment = make()

    with pytest.raises(RuntimeError, match="is not running; start it first"):
        _ = experiment.tuner_command_channel
    experiment.start()
    with pytest.raises(RuntimeError, match="needs no manager"):
        _ = experiment.tuner_command_channel


def test_misspelled_strategy_gets_the_closest_names() -> None:
    name: Any = "Randm"

    with pytest.raises(TypeError, match=r"got 'Randm'; did you mean Random"):
        NasExperiment(space(), None, name)


# Run


def test_run_returns_true_when_the_strategy_has_ended(make: Make) -> None:
    experiment = make()

    assert experiment.run() is True
    assert experiment.strategy.status is StrategyStatus.Succeeded
    assert len(experiment.strategy.list_models()) == 18


def test_configuration_is_edited_between_construction_and_start(make: Make) -> None:
    experiment = make()

    experiment.config.max_trial_number = 4
    experiment.run()

    assert len(experiment.strategy.list_models()) == 4


@pytest.mark.claim("nas", 65)
def test_exported_models_are_sorted_and_rebuild_the_best_model(make: Make) -> None:
    experiment = make()
    experiment.run()

    assert experiment.export_top_models(3, formatter="dict") == [
        {"a": 3, "b": 6},
        {"a": 3, "b": 5},
        {"a": 3, "b": 4},
    ]
    assert experiment.export_top_models()[0].metric == 36
    assert experiment.export_top_models(formatter="instance") == [{"a": 3, "b": 6}]


@pytest.mark.claim("nas", 64)
def test_wrong_exports_are_refused_and_old_keywords_warn(make: Make) -> None:
    experiment = make()
    experiment.run()

    with pytest.raises(ValueError, match="top_k must be >= 0, got -1"):
        experiment.export_top_models(-1)
    with pytest.raises(ValueError, match="formatter must be one of"):
        experiment.export_top_models(formatter="xml")
    with pytest.raises(ValueError, match="needs models in the graph format"):
        experiment.export_top_models(formatter="code")
    with pytest.warns(DeprecationWarning, match="optimize_mode of export_top_models"):
        experiment.export_top_models(optimize_mode="minimize")
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        experiment.export_top_models(other=1)


def test_experiment_starts_once(make: Make) -> None:
    experiment = make()
    experiment.run()

    with pytest.raises(RuntimeError, match="was started before; build a new one"):
        experiment.run()


def test_configuration_instead_of_a_port_is_refused(make: Make) -> None:
    experiment = make()
    config: Any = experiment.config

    with pytest.raises(TypeError, match="assign experiment"):
        experiment.run(config)


def test_wrong_configuration_starts_nothing(make: Make, tmp_path: Path) -> None:
    experiment = make(trial_concurrency=3)

    with pytest.raises(ValueError, match="trial_concurrency must be 1"):
        experiment.run()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("engine", "remedy"), [("cgo", "remote machines")])
def test_engines_that_cannot_be_started_are_refused(make: Make, engine: str, remedy: str) -> None:
    experiment = make()
    experiment.config.execution_engine = engine

    with pytest.raises((TypeError, ValueError), match=remedy):
        experiment.run()


def test_error_of_a_model_ends_the_run(make: Make) -> None:
    experiment = make(Evaluating(3, OSError("disk")))

    with pytest.raises(OSError, match="disk"):
        experiment.run()

    assert experiment.strategy.status is StrategyStatus.Failed


def test_interrupt_stops_the_experiment(make: Make) -> None:
    experiment = make(Evaluating(3, KeyboardInterrupt()))

    assert experiment.run() is None
    assert experiment.strategy.status is StrategyStatus.Interrupted
    assert entry_of(experiment)["status"] == "STOPPED"
    statuses = [model.status for model in experiment.strategy.list_models(sort=False)]
    assert statuses == [ModelStatus.Trained, ModelStatus.Trained, ModelStatus.Interrupted]


@pytest.mark.claim("nas", 72)
def test_manifest_shows_the_state_of_the_experiment(make: Make) -> None:
    experiment = make()

    experiment.run()
    running = entry_of(experiment)
    experiment.stop()
    stopped = entry_of(experiment)

    assert (running["status"], running["port"], running["endTime"]) == ("RUNNING", "N/A", "N/A")
    assert stopped["status"] == "STOPPED"
    assert stopped["endTime"] >= stopped["startTime"] == running["startTime"]


def test_log_file_holds_what_the_library_logs(make: Make, tmp_path: Path) -> None:
    experiment = make()

    experiment.run(debug=True)
    experiment.stop()

    text = (tmp_path / experiment.id / "log" / "experiment.log").read_text()
    assert f"experiment {experiment.id} starts in" in text
    assert "has stopped" in text
    assert experiment.config.debug


# Trials


def test_models_of_this_process_are_listed_as_trials(make: Make) -> None:
    experiment = make(max_trial_number=3)

    before = experiment.get_status(), experiment.list_trial_jobs()
    experiment.run()
    ended = experiment.get_status(), experiment.get_job_statistics()
    experiment.stop()

    assert before == ("INITIALIZED", [])
    assert ended == ("DONE", {"SUCCEEDED": 3})
    assert experiment.get_status() == "STOPPED"
    assert [result.value for result in experiment.export_data()] == [
        sample["a"] * 10 + sample["b"]
        for sample in (job.hyperParameters[0].parameters for job in experiment.list_trial_jobs())
    ]


def test_failed_search_has_the_state_error(make: Make) -> None:
    experiment = make(Evaluating(2, OSError("disk")))

    with pytest.raises(OSError, match="disk"):
        experiment.run()

    assert experiment.get_status() == "ERROR"
    assert experiment.get_job_statistics() == {"SUCCEEDED": 1, "FAILED": 1}


# Checkpoints


@pytest.mark.claim("nas", 66)
def test_checkpoint_exists_after_the_stop(make: Make, tmp_path: Path) -> None:
    experiment = make(max_trial_number=2)
    assert not experiment.has_checkpoint()

    experiment.run()
    experiment.stop()

    folder = tmp_path / experiment.id / "checkpoint"
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "state.ckpt.torch"]
    assert json.loads((folder / "config.json").read_text())["maxTrialNumber"] == 2
    assert experiment.state_dict()["version"] == 1


def test_state_of_an_experiment_without_an_engine_has_none(make: Make) -> None:
    experiment = make(strategy=Random(seed=0))

    experiment.save_checkpoint()
    experiment.load_checkpoint()

    assert set(experiment.state_dict()) == {"version", "strategy"}


@pytest.mark.claim("nas", 67)
@pytest.mark.parametrize("strategy", [GridSearch, Random])
def test_killed_search_is_resumed_without_repetition(
    make: Make, strategy: Callable[..., Strategy]
) -> None:
    first = make(Evaluating(11, Killed()), strategy(seed=0))
    with pytest.raises(Killed):
        first.run()

    evaluator = Evaluating()
    second = make(evaluator, strategy(seed=1), first.id)
    second.resume()

    done = first.evaluator.samples[:10]
    assert sorted(map(tuple, (s.values() for s in [*done, *evaluator.samples]))) == [
        (a, b) for a in (1, 2, 3) for b in (1, 2, 3, 4, 5, 6)
    ]
    assert len(second.strategy.list_models()) == 18
    assert second.export_top_models(formatter="dict") == [{"a": 3, "b": 6}]


@pytest.mark.claim("nas", 67)
@pytest.mark.slow
def test_search_of_a_killed_process_is_resumed(make: Make, tmp_path: Path) -> None:
    script = textwrap.dedent(
        f"""
        import os, nni
        from nni.mutable import Categorical
        from nni.nas.experiment import NasExperiment, NasExperimentConfig
        from nni.nas.strategy import GridSearch
        from nni.testing.strategies import TableSpace

        class Evaluating:
            calls = 0
            def evaluate(self, model):
                self.calls += 1
                if self.calls == 11:
                    os.kill(os.getpid(), 9)
                nni.report_final_result(model["a"] * 10 + model["b"])

        space = TableSpace(
            Categorical([1, 2, 3], label="a"), Categorical([1, 2, 3, 4, 5, 6], label="b")
        )
        config = NasExperimentConfig(
            "sequential", "raw", experiment_working_directory={str(tmp_path)!r}
        )
        NasExperiment(space, Evaluating(), GridSearch(seed=0), config, "killed").run()
        """
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False, timeout=50)

    evaluator = Evaluating()
    resumed = make(evaluator, GridSearch(seed=1), "killed")
    resumed.resume()

    assert ran.returncode == -9
    assert len(evaluator.samples) == 8
    assert len(resumed.strategy.list_models()) == 18


def test_checkpoint_that_cannot_be_loaded_is_not_overwritten(make: Make, tmp_path: Path) -> None:
    first = make(max_trial_number=4)
    first.run()
    first.stop()
    state = tmp_path / first.id / "checkpoint" / "state.ckpt.torch"
    saved = state.read_bytes()

    class Unlike(GridSearch):
        def load_state_dict(self, state_dict: object) -> None:
            raise KeyError(state_dict)

    other = make(None, Unlike(), first.id)
    with pytest.raises(KeyError):
        other.resume()
    other.stop()

    assert state.read_bytes() == saved
    assert entry_of(other)["status"] == "STOPPED"


def test_spent_budget_is_not_spent_again(make: Make) -> None:
    first = make(max_trial_number=4)
    first.run()
    first.stop()

    evaluator = Evaluating()
    make(evaluator, GridSearch(seed=0), first.id, max_trial_number=10).resume()

    assert len(evaluator.samples) == 6


@pytest.mark.claim("nas", 68)
def test_changed_configuration_is_an_error_in_the_log_and_is_used(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    first = make(max_trial_number=4)
    first.run()
    first.stop()

    second = make(None, GridSearch(seed=0), first.id, max_trial_number=6)
    with caplog.at_level(logging.ERROR):
        second.resume()

    assert '+  "maxTrialNumber": 6' in caplog.text
    assert len(second.strategy.list_models()) == 6


def test_configuration_that_is_not_given_is_that_of_the_checkpoint(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    first = NasExperiment(space(), Evaluating(), GridSearch(), id="default")
    first.config.execution_engine, first.config.model_format = "sequential", "raw"
    first.config.max_trial_number = 4
    first.run()
    first.stop()

    second = NasExperiment(space(), Evaluating(), GridSearch(), id="default")
    second.resume()
    second.stop()

    assert second.config.max_trial_number == 4
    assert len(second.strategy.list_models()) == 4


@pytest.mark.claim("nas", 69)
def test_checkpoint_that_cannot_be_saved_does_not_stop_the_search(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    experiment = make(id="one")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "checkpoint").write_text("a file where the folder should be")

    with caplog.at_level(logging.ERROR):
        assert experiment.run() is True

    assert "the checkpoint of experiment one could not be saved" in caplog.text
    assert len(experiment.strategy.list_models()) == 18


def test_state_of_another_version_is_a_warning(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    experiment = make(strategy=Random(seed=0))
    state = experiment.state_dict()

    class Fresh(Random):
        def load_state_dict(self, state_dict: object) -> None:
            del state_dict

    other = make(strategy=Fresh())
    other.start()
    with caplog.at_level(logging.WARNING):
        other.load_state_dict({**state, "version": 0})

    assert "the state has version 0, this is version 1" in caplog.text


# Experiments that exist


def test_unknown_searches_cannot_be_resumed_or_viewed(make: Make) -> None:
    experiment = make(id="unknown")

    for call in (experiment.resume, experiment.view):
        with pytest.raises(NotFoundError, match="no search unknown was started in"):
            call()


def test_run_or_resume_does_what_is_needed(make: Make) -> None:
    evaluators = Evaluating(5, KeyboardInterrupt()), Evaluating()

    for evaluator in evaluators:
        make(evaluator, GridSearch(seed=0), "one").run_or_resume()

    assert [len(one.samples) for one in evaluators] == [5, 14]


def test_viewed_search_exports_its_models_and_evaluates_none(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make(max_trial_number=4)
    first.run()
    first.stop()
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))

    for non_blocking in (True, False):
        evaluator = Evaluating()
        view = make(evaluator, GridSearch(), first.id, max_trial_number=4)
        view.view(non_blocking=non_blocking)
        assert view.export_top_models(4, formatter="dict") == first.export_top_models(
            4, formatter="dict"
        )
        assert evaluator.samples == []
    assert entry_of(first)["status"] == "STOPPED"


def test_a_port_leads_to_no_search() -> None:
    with pytest.raises(RuntimeError, match=r"Experiment\.connect\(8081\) to watch the trials"):
        NasExperiment.connect(8081)


def test_detached_experiment_is_not_stopped_at_exit(make: Make) -> None:
    experiment = make(max_trial_number=1)

    experiment.start(run_mode="detach")

    assert entry_of(experiment)["status"] == "RUNNING"
