"""Model of a loss, and its scale, over the course of an experiment."""

import json
import math

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.gp_regression import Kernel, gp_posterior
from nni.hpo.models.loss_model import LossModel, _log_predictive_density
from nni.hpo.models.matern import Matern
from nni.hpo.models.targets import scaled


def new(least_noise: float = 0.0) -> LossModel:
    return LossModel(Kernel(np.arange(2), Matern.of(2.5), least_noise))


def results(count: int) -> tuple[Floats, Floats]:
    inputs = np.random.default_rng(0).random((count, 2))
    return inputs, (inputs[:, 0] - 0.4) ** 2


def test_goes_on_from_its_state() -> None:
    inputs, losses = results(30)
    first = new()
    first.update(inputs[:20], losses[:20])

    second = new()
    second.load_state(json.loads(json.dumps(first.state())))

    left, right = (one.update(inputs, losses) for one in (first, second))
    assert left.posterior.gaussian.weights.tolist() == right.posterior.gaussian.weights.tolist()


def test_state_of_an_older_version_is_taken_without_its_hyperparameters() -> None:
    inputs, losses = results(30)
    model, fresh = new(), new()

    model.load_state([[-1.0, -1.0, -9.0], 30])

    left, right = (one.update(inputs, losses) for one in (model, fresh))
    assert model.scale == fresh.scale
    assert left.posterior.gaussian.weights.tolist() == right.posterior.gaussian.weights.tolist()


def test_evidence_is_the_density_of_each_good_result_among_all_others() -> None:
    inputs, losses = results(12)
    targets = scaled(losses, 1.0)
    kernel = Kernel(np.arange(2), Matern.of(2.5), 0.01)
    posterior = gp_posterior(inputs, targets.values, kernel, np.array([-1.0, -1.0, -4.0, 0.0]))

    evidence = _log_predictive_density(posterior, targets)

    means, deviations = posterior.gaussian.leave_one_out(targets.values)
    good = np.flatnonzero(targets.better)
    expected = [
        float(slope)
        - 0.5 * float((targets.values[place] - means[place]) / deviations[place]) ** 2
        - math.log(deviations[place])
        for place, slope in zip(good, targets.log_slope, strict=True)
    ]
    assert evidence == pytest.approx(sum(expected))


def test_model_of_many_results_is_bounded_and_holds_the_best() -> None:
    inputs, losses = results(1200)

    fitted = new().update(inputs, losses)

    assert len(fitted.inputs) == 500
    assert inputs[int(np.argmin(losses))].tolist() in fitted.inputs.tolist()
    assert fitted.inputs.tolist() == inputs[fitted.kept].tolist()
    assert fitted.best_target == fitted.targets.min()


def test_running_trials_lower_the_deviation_and_keep_the_mean() -> None:
    model, at = new(), np.array([[0.9, 0.05]])
    fitted = model.update(*results(15))

    pending = model.gp.with_pending(fitted, at)

    assert pending.predict(at)[1] < 0.2 * fitted.posterior.predict(at)[1]
    assert pending.predict(at)[0] == pytest.approx(fitted.posterior.predict(at)[0], abs=0.01)


def test_one_result_is_enough() -> None:
    fitted = new().update(*results(1))

    assert np.isfinite(fitted.posterior.predict(np.array([[0.1, 0.2]]))).all()


def test_selection_predicts_like_the_model_of_all_results() -> None:
    rng = np.random.default_rng(3)
    crowd = 0.5 + 0.05 * rng.standard_normal((700, 2))
    inputs = np.concatenate([rng.random((100, 2)), crowd, rng.random((100, 2))])
    losses = ((inputs - 0.5) ** 2).sum(axis=1)
    # Where nothing was chosen a model predicts the mean; what is out there is worse than that.
    corners = np.array([[0.05, 0.05], [0.95, 0.1], [0.1, 0.9], [0.9, 0.95]])

    fitted = new(1e-6).update(inputs, losses)

    means, _ = fitted.posterior.predict(corners)
    assert means.min() > np.percentile(fitted.targets, 60)


def test_model_of_many_results_leaves_no_region_out() -> None:
    crowd = 0.5 + 0.01 * np.random.default_rng(0).standard_normal((1200, 2))
    inputs = np.array([*crowd, [0.95, 0.05]])

    fitted = new().update(inputs, (inputs * inputs).sum(axis=1))

    assert len(fitted.inputs) == 500
    assert fitted.inputs[-1].tolist() == [0.95, 0.05]


def test_learns_that_results_lie_on_a_logarithmic_scale() -> None:
    inputs = np.random.default_rng(0).random((60, 2))
    losses = np.exp(10 * ((inputs - 0.4) ** 2).sum(axis=1))
    model = new()

    for count in (30, 60):
        model.update(inputs[:count], losses[:count])

    assert model.scale is not None
    assert model.scale >= 10
    second = new()
    second.load_state(json.loads(json.dumps(model.state())))
    assert second.scale == model.scale
    model.reset()
    assert model.scale == new().scale == 0


def test_scale_does_not_change_without_evidence() -> None:
    inputs = np.random.default_rng(0).random((60, 2))
    model = new()

    for count in (30, 60):
        model.update(inputs[:count], np.full(count, 2.0))

    assert model.scale == 0


def test_reset_model_has_no_hyperparameters() -> None:
    model = new()
    model.update(*results(15))

    model.reset()

    assert model.state() == new().state()
