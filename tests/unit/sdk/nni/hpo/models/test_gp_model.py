"""When hyperparameters are fitted, and the posterior over the course of an experiment."""

import json

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.gp_model import FittedGP, GPModel
from nni.hpo.models.gp_regression import Kernel, initial_hyperparameters
from nni.hpo.models.matern import Matern
from nni.hpo.models.targets import standardised

INITIAL = initial_hyperparameters(2).tolist()
Starts = list[list[list[float]]]
AT = np.array([[0.9, 0.05]])


def new(fits: Starts | None = None) -> GPModel:
    """Return a model; with a list, each fit is recorded and adds 1 to its first start."""
    kernel = Kernel(np.arange(2), Matern.of(2.5))
    if fits is None:
        return GPModel(kernel)

    def fit(
        inputs: Floats, targets: Floats, kernel: Kernel, starts: list[Floats], *, evaluations: int
    ) -> Floats:
        fits.append([start.tolist() for start in starts])
        return starts[0] + 1.0

    return GPModel(kernel, fit)


def updated(model: GPModel, count: int) -> FittedGP:
    inputs = np.random.default_rng(0).random((count, 2))
    targets = standardised((inputs[:, 0] - 0.4) ** 2)
    return model.update(inputs, targets, np.arange(count), count)


@pytest.fixture
def fits() -> Starts:
    """Starts of all fits of a model made with them."""
    return []


def plus(amount: float) -> list[float]:
    return [value + amount for value in INITIAL]


def test_hyperparameters_are_fitted_when_there_are_two_percent_more_results(
    fits: Starts,
) -> None:
    model = new(fits)

    for count in (100, 101, 102, 103, 104):
        updated(model, count)

    assert len(fits) == 2


def test_fit_starts_afresh_as_well_while_results_are_few(fits: Starts) -> None:
    for counts in ((39, 40), (40, 41)):
        model = new(fits)
        for count in counts:
            updated(model, count)

    few, many = fits[:2], fits[2:]
    assert few == [[INITIAL], [plus(1), INITIAL]]
    assert many == [[INITIAL], [plus(1)]]


def test_posterior_has_the_hyperparameters_that_were_fitted(
    fits: Starts,
) -> None:
    model = new(fits)

    fitted = updated(model, 5)

    expected = np.exp(plus(1))
    assert fitted.posterior.lengthscales == pytest.approx(expected[:2])
    assert model.lengthscales() == pytest.approx(expected[:2])
    assert model.noise_variance() == pytest.approx(expected[2])


def test_running_trials_join_the_results_at_their_prediction() -> None:
    model = new()
    fitted = updated(model, 6)

    pending = model.with_pending(fitted, AT)

    mean, _ = fitted.posterior.predict(AT)
    gaussian = pending.gaussian
    targets = np.linalg.solve(gaussian.precision, gaussian.weights)
    assert targets == pytest.approx([*fitted.targets, mean[0]], abs=1e-5)
    assert pending.lengthscales.tolist() == fitted.posterior.lengthscales.tolist()


def test_nothing_running_changes_nothing() -> None:
    model = new()
    fitted = updated(model, 15)

    assert model.with_pending(fitted, np.empty((0, 2))) is fitted.posterior


def test_reset_model_is_fitted_from_the_beginning(fits: Starts) -> None:
    model = new(fits)
    updated(model, 5)

    model.reset()
    updated(model, 5)

    assert fits == [[INITIAL]] * 2


def test_state_holds_hyperparameters_and_the_number_of_results(
    fits: Starts,
) -> None:
    model, other = new(fits), new(fits)
    updated(model, 100)

    other.load_state(json.loads(json.dumps(model.state())))

    assert updated(other, 101).posterior.lengthscales == pytest.approx(np.exp(plus(1)[:2]))
    assert len(fits) == 1


def test_hyperparameters_of_another_kernel_are_fitted_again(fits: Starts) -> None:
    model = new(fits)

    model.load_state([[0.1, 0.2, -9.0], 40])
    updated(model, 40)

    assert fits == [[INITIAL]]


def test_best_target_is_the_least() -> None:
    fitted = updated(new(), 9)

    assert fitted.best_target == fitted.targets.min()


def test_state_of_another_kernel_replaces_what_was_fitted(fits: Starts) -> None:
    model = new(fits)
    updated(model, 40)

    model.load_state([[0.1, 0.2, -9.0], 40])

    assert model.state() == [None, 0]
    updated(model, 40)
    assert fits == [[INITIAL]] * 2


def test_state_before_the_first_fit_is_empty() -> None:
    model = new()
    model.load_state(model.state())

    assert model.state() == [None, 0]


@pytest.mark.parametrize(("count", "due"), [(100, False), (102, False), (103, True)])
def test_fit_is_due_at_more_than_two_percent_more_results(count: int, due: bool) -> None:
    model = new([])
    updated(model, 100)

    assert model.refit_due(count) is due


@pytest.mark.parametrize(("count", "fitted"), [(150, 150), (151, 150)])
def test_fit_has_twelve_evaluations_and_a_hundred_and_fifty_results_at_most(
    count: int, fitted: int
) -> None:
    seen: list[tuple[int, int, int]] = []

    def fit(
        inputs: Floats, targets: Floats, kernel: Kernel, starts: list[Floats], *, evaluations: int
    ) -> Floats:
        seen.append((len(inputs), len(targets), evaluations))
        return starts[0]

    updated(GPModel(Kernel(np.arange(2), Matern.of(2.5)), fit), count)

    assert seen == [(fitted, fitted, 12)]
