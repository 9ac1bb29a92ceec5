"""Logistic regression on two clouds of points, in plain Python; run it with or without NNI."""

import math
import random


def points(count, seed):
    generator = random.Random(seed)
    for _ in range(count):
        label = generator.randrange(2)
        yield [generator.gauss(2 * label, 1.2), generator.gauss(-label, 1.0)], label


def squared(weights):
    return sum(weight * weight for weight in weights)


def absolute(weights):
    return sum(abs(weight) for weight in weights)


def probability(weights, features):
    score = weights[0] + sum(w * x for w, x in zip(weights[1:], features, strict=True))
    return 1 / (1 + math.exp(-score))


def main():
    train, test = list(points(300, seed=1)), list(points(200, seed=2))
    """@nni.variable(nni.loguniform(0.001, 1.0), name=learning_rate)"""
    learning_rate = 0.01
    """@nni.variable(nni.choice(0, 0.01, 0.1), name=decay)"""
    decay = 0
    weights = [0.0, 0.0, 0.0]
    for _epoch in range(5):
        for features, label in train:
            error = probability(weights, features) - label
            steps = [error, *(error * x for x in features)]
            weights = [
                w - learning_rate * (step + decay * w)
                for w, step in zip(weights, steps, strict=True)
            ]
        right = sum((probability(weights, x) > 0.5) == bool(label) for x, label in test)
        accuracy = right / len(test)
        """@nni.report_intermediate_result(accuracy)"""
    """@nni.function_choice(squared(weights), absolute(weights), name=squared)"""
    size = squared(weights)
    print(f"accuracy {accuracy:.3f}, size of the weights {size:.3f}")
    """@nni.report_final_result({"default": accuracy, "size": size})"""


if __name__ == "__main__":
    main()
