"""Neural network whose last layer is a Bayesian linear regression.

Shapes: n observations, f inputs, h hidden units, m predictions.

Source: Snoek et al., Scalable Bayesian Optimization Using Deep Neural Networks, ICML 2015, section
3; the evidence is maximised as in Bishop, Pattern Recognition and Machine Learning, 2006, section
3.5.2; the optimiser is Adam (Kingma and Ba, ICLR 2015).

Departures: the regression's two precisions are set to their most plausible values instead of being
sampled; an epoch uses a bounded number of observations.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints

_UNITS: Final = 50
_LAYERS: Final = 3
_RATE: Final = 0.01
_DECAY: Final = 1e-4
"""Weight of the squared weights in the loss that training minimises."""
_BATCH: Final = 100
"""Observations per epoch, at most, so that training costs the same however many there are."""
_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8  # Adam: decay of the two moments, guard of the division
_EVIDENCE_ROUNDS: Final = 20
_PRECISION_BOUNDS: Final = (1e-3, 1e6)


@dataclass(frozen=True, slots=True)
class Network:
    """Feed-forward network for one target: weights per layer, hyperbolic tangents."""

    weights: tuple[Floats, ...]
    """Per layer `(inputs + 1, h)`; the last row is the bias. The last layer returns the target."""

    def features(self, inputs: Floats) -> Floats:
        """Return `(m, h + 1)` outputs of the last hidden layer and a constant 1, for `(m, f)`."""
        return _with_one(self._hidden(inputs)[-1])

    def _hidden(self, inputs: Floats) -> list[Floats]:
        outputs = [2.0 * inputs - 1.0]
        for weights in self.weights[:-1]:
            outputs.append(np.tanh(_with_one(outputs[-1]) @ weights))
        return outputs

    def gradients(self, inputs: Floats, targets: Floats) -> list[Floats]:
        """Return the gradients of half the mean squared error, of the shapes of `weights`."""
        outputs = self._hidden(inputs)
        top = _with_one(outputs[-1])
        error = (top @ self.weights[-1][:, 0] - targets)[:, None] / len(targets)
        gradients = [top.T @ error]
        back = error @ self.weights[-1][:-1].T
        for layer in range(len(self.weights) - 2, -1, -1):
            back *= 1.0 - outputs[layer + 1] ** 2
            gradients.append(_with_one(outputs[layer]).T @ back)
            back = back @ self.weights[layer][:-1].T
        return gradients[::-1]


def trained_network(
    inputs: Floats, targets: Floats, epochs: int, rng: np.random.Generator
) -> Network:
    """Train a network with random first weights on observations by Adam, and return it.

    Args:
        inputs: `(n, f)` in [0, 1].
        targets: `(n,)`, mean 0 and variance 1.
        epochs: >= 1.
        rng: of the initial weights and of the observations of each epoch.
    """
    sizes = [inputs.shape[1], *[_UNITS] * _LAYERS, 1]
    weights = [
        np.vstack([rng.standard_normal((size, units)) / np.sqrt(size), np.zeros((1, units))])
        for size, units in pairwise(sizes)
    ]
    first = [np.zeros_like(layer) for layer in weights]
    second = [np.zeros_like(layer) for layer in weights]
    network = Network(tuple(weights))
    for epoch in range(1, epochs + 1):
        batch = _batch(len(inputs), rng)
        gradients = network.gradients(inputs[batch], targets[batch])
        rate = _RATE * (1.0 - (epoch - 1) / epochs)
        rate *= np.sqrt(1.0 - _SECOND**epoch) / (1.0 - _FIRST**epoch)
        for layer, gradient in enumerate(gradients):
            full = gradient + _DECAY * weights[layer]
            first[layer] += (1.0 - _FIRST) * (full - first[layer])
            second[layer] += (1.0 - _SECOND) * (full * full - second[layer])
            weights[layer] -= rate * first[layer] / (np.sqrt(second[layer]) + _SMALL)
    return network


def _batch(count: int, rng: np.random.Generator) -> Ints:
    """Return the positions of one epoch's observations: all, or 100 at random."""
    return np.arange(count) if count <= _BATCH else rng.choice(count, _BATCH, replace=False)


def _with_one(rows: Floats) -> Floats:
    return np.hstack([rows, np.ones((len(rows), 1))])


@dataclass(frozen=True, slots=True)
class LinearPosterior:
    """Posterior of the weights of a Bayesian linear regression."""

    mean: Floats
    """`(h,)`"""
    covariance: Floats
    """`(h, h)`"""
    noise: float
    """Noise variance of a measurement."""

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(m,)` of the function for `(m, h)` features."""
        variance = np.einsum("mh,hk,mk->m", features, self.covariance, features, optimize=True)
        return features @ self.mean, np.sqrt(np.maximum(variance, 1e-12))


def linear_posterior(features: Floats, targets: Floats) -> LinearPosterior:
    """Return a linear posterior of `(n,)` targets on `(n, h)` features, at maximum evidence.

    The precisions of weights and noise are those of the greatest evidence.
    """
    gram, moments = features.T @ features, features.T @ targets
    spectrum, basis = np.linalg.eigh(gram)
    spectrum = np.maximum(spectrum, 0.0)
    turned = basis.T @ moments
    prior, noise = 1.0, 100.0  # precisions of the weights and of a measurement
    for _ in range(_EVIDENCE_ROUNDS):
        precision = prior + noise * spectrum
        mean = noise * turned / precision
        effective = float((noise * spectrum / precision).sum())
        residual = targets - features @ (basis @ mean)
        prior = _bounded(effective / (float(mean @ mean) + 1e-12))
        noise = _bounded((len(targets) - effective) / (float(residual @ residual) + 1e-12))
    precision = prior + noise * spectrum
    covariance = (basis / precision) @ basis.T
    return LinearPosterior(basis @ (noise * turned / precision), covariance, 1.0 / noise)


def _bounded(precision: float) -> float:
    return min(max(precision, _PRECISION_BOUNDS[0]), _PRECISION_BOUNDS[1])
