"""Task of Hydra whose settings are swept by NNI: fit a polynomial with ridge regression."""

import hydra
import numpy as np


@hydra.main(version_base="1.3", config_path=".", config_name="config")
def train(config):
    generator = np.random.default_rng(0)
    inputs = np.sort(generator.uniform(-1, 1, 60))
    targets = np.sin(4 * inputs) + generator.normal(0, 0.1, 60)
    powers = inputs[:, None] ** np.arange(config.degree + 1)
    training, test = slice(0, None, 2), slice(1, None, 2)
    matrix = powers[training].T @ powers[training] + config.ridge * np.eye(config.degree + 1)
    weights = np.linalg.solve(matrix, powers[training].T @ targets[training])
    loss = float(np.mean((powers[test] @ weights - targets[test]) ** 2))
    print(f"degree {config.degree}, ridge {config.ridge:.2g}: {loss:.4f}")
    return loss


if __name__ == "__main__":
    train()
