"""Loss that a search has to beat, and expected losses."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.gp_model import FittedGP
from nni.hpo.models.gp_regression import GPPosterior, Kernel, gp_posterior, initial_hyperparameters
from nni.hpo.models.matern import Matern
from nni.hpo.models.targets import standardised
from nni.hpo.tuners.bayesian.incumbent import believed_losses, expected_losses, loss_to_beat
from nni.hpo.tuners.bayesian.search_modes import SearchMode

KERNEL = Kernel(np.arange(1), Matern.of(2.5))
INPUTS = np.linspace(0, 1, 11)[:, None]
NONE = np.empty((0, 1))


def to_beat(
    losses: Floats,
    pending: Floats = NONE,
    mode: SearchMode = "global",
    *,
    noise: float = 1e-6,
    noisy: bool = False,
) -> float:
    targets = standardised(losses)
    parameters = initial_hyperparameters(1)
    parameters[1] = np.log(noise)
    posterior = gp_posterior(INPUTS, targets, KERNEL, parameters)
    fitted = FittedGP(posterior, INPUTS, targets, np.arange(len(targets)))
    return loss_to_beat(fitted, posterior, pending, mode, noisy=noisy)


BOWL = (INPUTS[:, 0] - 0.45) ** 2


def test_without_noise_it_is_the_least_loss() -> None:
    assert to_beat(BOWL) == standardised(BOWL).min()


def test_under_noise_it_is_the_least_predicted_mean() -> None:
    lucky = np.where(np.arange(11) == 9, -1.0, BOWL)

    assert to_beat(lucky, noise=0.5, noisy=True) > standardised(lucky).min() + 0.5


def test_running_trials_count_as_predicted() -> None:
    assert to_beat(BOWL, np.array([[0.45]])) < standardised(BOWL).min()


def test_running_trial_between_results_counts_by_the_mean_predicted_there() -> None:
    # The bowl is 0 at 0.45, and 0.0025 at the two results beside it.
    lowest = -BOWL.mean() / BOWL.std()

    assert to_beat(BOWL, np.array([[0.45]])) == pytest.approx(lowest, abs=0.005)
    assert to_beat(BOWL) > lowest + 0.02


@pytest.mark.parametrize("mode", ["explore", "option"])
def test_exploring_asks_for_a_marked_improvement(mode: SearchMode) -> None:
    assert to_beat(BOWL, mode=mode) < to_beat(BOWL) - 0.02


def test_expected_losses_are_near_the_losses_without_noise() -> None:
    found = expected_losses(KERNEL, INPUTS, BOWL, INPUTS)

    assert found == pytest.approx(BOWL.tolist(), abs=1e-3)


def test_losses_near_the_greatest_floats_have_no_expectation() -> None:
    greatest = np.where(np.arange(11) % 2 == 0, 1.7e308, -1.7e308)

    assert expected_losses(KERNEL, INPUTS, greatest, INPUTS) is None


def test_results_are_ranked_as_measured_or_by_their_means_under_noise() -> None:
    targets = standardised(np.where(np.arange(11) == 9, -1.0, BOWL))
    parameters = initial_hyperparameters(1)
    parameters[1] = np.log(0.5)
    fitted = FittedGP(
        gp_posterior(INPUTS, targets, KERNEL, parameters), INPUTS, targets, np.arange(11)
    )

    assert believed_losses(fitted, noisy=False) is targets
    means = believed_losses(fitted, noisy=True)
    assert means[9] > targets[9] + 0.5
    assert means == pytest.approx(fitted.posterior.predict(INPUTS)[0])


def fitted_posterior(losses: Floats, noise: float) -> GPPosterior:
    parameters = initial_hyperparameters(1)
    parameters[1] = np.log(noise)
    return gp_posterior(INPUTS, standardised(losses), KERNEL, parameters)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("pending", [NONE, np.array([[0.45], [0.9]]), np.array([[0.9]])])
@pytest.mark.parametrize("mode", ["global", "local", "explore", "option"])
def test_loss_to_beat_lowers_the_best_one_by_the_margins(
    mode: SearchMode, pending: Floats, noisy: bool
) -> None:
    losses = np.where(np.arange(11) == 9, -0.02, BOWL)
    targets, posterior = standardised(losses), fitted_posterior(losses, 0.3)
    best, median = targets.min(), np.median(targets)
    if noisy:
        best = posterior.predict(INPUTS)[0].min()
    if len(pending):
        best = min(best, posterior.predict(pending)[0].min())
        best -= 0.001 * (median - best)
    if mode in {"explore", "option"}:
        best -= 0.05 * (median - best)

    found = to_beat(losses, pending, mode, noise=0.3, noisy=noisy)

    assert found == pytest.approx(float(best), abs=1e-12)
