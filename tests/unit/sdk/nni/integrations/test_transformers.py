from pathlib import Path
from typing import Any

import pytest

import nni
from nni.hpo import LogUniform, MedianstopAssessor
from tests.support.stopping_trial import StoppingTrial
from tests.support.trial_metrics import Metrics, metrics

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from nni.integrations import TransformersCallback, search_trainer
from tests.support.tiny_trainers import Line, tiny_trainer

__all__ = ["metrics"]  # a fixture


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def new_line() -> Line:
    return Line()


def train(callback: TransformersCallback, **words: Any) -> Any:
    trainer = tiny_trainer(**words)
    trainer.add_callback(callback)
    trainer.train()
    return trainer


def test_each_evaluation_and_the_end_are_reported(metrics: Metrics) -> None:
    trainer = train(TransformersCallback("eval_loss"))
    trainer.evaluate()

    losses = [log["eval_loss"] for log in trainer.state.log_history if "eval_loss" in log][:2]
    assert metrics == [*(("PERIODICAL", loss) for loss in losses), ("FINAL", losses[-1])]


def test_without_evaluations_each_log_is_reported(metrics: Metrics) -> None:
    train(TransformersCallback({"default": "loss", "of": "epoch"}), eval_strategy="no")

    assert [kind for kind, _ in metrics] == ["PERIODICAL", "PERIODICAL", "FINAL"]
    assert [value["of"] for _, value in metrics] == [1, 2, 2]


def test_the_trial_stops_the_training() -> None:
    trial = StoppingTrial()
    trainer = train(TransformersCallback("eval_loss", trial=trial), num_train_epochs=9)

    assert len(trial.reports) == 2
    assert trainer.state.epoch == 2


def test_a_metric_that_is_not_logged_is_an_error_with_the_known_ones(metrics: Metrics) -> None:
    with pytest.raises(ValueError, match="got 'eval_acc'; it logs epoch, eval_loss"):
        train(TransformersCallback("eval_acc"))


def test_the_next_attempt_goes_on_from_the_checkpoint(metrics: Metrics) -> None:
    output = str(nni.checkpoint_directory())
    words: dict[str, Any] = {"output_dir": output, "save_strategy": "epoch"}
    train(TransformersCallback("eval_loss", checkpoints=True), num_train_epochs=1, **words)
    first = metrics.copy()
    metrics.clear()

    callback = TransformersCallback("eval_loss", checkpoints=True, final="max")
    trainer = tiny_trainer(num_train_epochs=2, **words)
    trainer.add_callback(callback)
    trainer.train(resume_from_checkpoint=callback.checkpoint_path)

    assert [kind for kind, _ in metrics] == ["PERIODICAL", "FINAL"]
    assert metrics[-1] == first[-1]  # the loss of the first epoch is the largest


def test_checkpoints_elsewhere_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"output_dir must be nni\.checkpoint_directory\(\)"):
        train(TransformersCallback("eval_loss", checkpoints=True))


def test_a_search_sets_arguments_and_brings_them_back() -> None:
    scales: list[float] = []

    def model_init(parameters: Any) -> Line:
        scales.append(parameters["scale"] if parameters else 0)
        return Line(scales[-1])

    trainer = tiny_trainer(given={"model_init": model_init}, num_train_epochs=1)
    space = {"learning_rate": LogUniform(1e-5, 1e-3), "scale": {"_type": "choice", "_value": [0.5]}}
    best: Any = search_trainer(trainer, space, n_trials=2, seed=0, tuner="Random")

    found = best.run_summary
    assert scales == [0, 0.5, 0.5]
    # The larger step towards the weights of one leaves the smaller loss.
    assert best.hyperparameters["learning_rate"] == max(
        one.parameters["learning_rate"] for one in found.trials
    )
    assert best.objective == found.best_value == found.trials[int(best.run_id)].value
    assert trainer.args.learning_rate == 0.1
    assert trainer.args.output_dir == "output"


def test_an_assessor_stops_a_trial_of_a_search() -> None:
    trainer = tiny_trainer(given={"model_init": new_line}, num_train_epochs=4)
    space = {"learning_rate": {"_type": "choice", "_value": [0.1, 1e-6]}}
    best: Any = search_trainer(
        trainer,
        space,
        n_trials=2,
        tuner="GridSearch",
        assessor=MedianstopAssessor("minimize", start_step=1),
    )

    assert [len(one.intermediate) for one in best.run_summary.trials] == [4, 1]
    assert best.run_summary.trials[1].status == "EARLY_STOPPED"


def test_a_search_without_evaluations_evaluates_at_the_end() -> None:
    trainer = tiny_trainer(
        given={"model_init": new_line},
        num_train_epochs=1,
        eval_strategy="no",
        save_strategy="epoch",
    )
    space = {"per_device_train_batch_size": {"_type": "choice", "_value": [32]}}
    best: Any = search_trainer(
        trainer,
        space,
        n_trials=1,
        tuner="GridSearch",
        direction="maximize",
        compute_objective=lambda found: -found["eval_loss"],
    )

    assert best.objective < 0
    assert list(Path("output/run-0").glob("checkpoint-1"))  # one batch has all rows


def test_a_parameter_that_nothing_takes_is_an_error() -> None:
    trainer = tiny_trainer(given={"model_init": new_line})

    with pytest.raises(ValueError, match=r"must take the parameters, got raet"):
        search_trainer(trainer, {"raet": {"_type": "choice", "_value": [1]}}, n_trials=1)


def test_a_trainer_without_model_init_is_an_error() -> None:
    with pytest.raises(ValueError, match="trainer must have model_init"):
        search_trainer(tiny_trainer(), {})
