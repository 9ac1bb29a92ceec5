"""Train a small network on two half-moons, with nothing but the standard library.

Every epoch ends with a checkpoint, so that an attempt elsewhere goes on where the last one was.
"""

import argparse
import json
import math
import random
import socket
import time

import nni

ALONE = {"hidden": 8, "learning_rate": 0.1, "momentum": 0.5}
"""Defaults without an experiment."""
NOISE = 0.2
WIDTH = 4
"""Weights of a hidden unit: of both coordinates, its bias, and that of its output."""


def half_moons(count, seed):
    """Return points as (horizontal, vertical, label); the labels are 0 and 1 in turn."""
    generator = random.Random(seed)
    points = []
    for index in range(count):
        label = index % 2
        angle = generator.uniform(0, math.pi)
        horizontal = 1 - math.cos(angle) if label else math.cos(angle)
        vertical = 0.5 - math.sin(angle) if label else math.sin(angle)
        points.append(
            (horizontal + generator.gauss(0, NOISE), vertical + generator.gauss(0, NOISE), label)
        )
    return points


def fresh(hidden):
    """Return the state before the first epoch; the last unit is the bias of the output."""
    generator = random.Random(0)
    units = [[generator.gauss(0, 1) for _ in range(WIDTH)] for _ in range(hidden)]
    units.append([0.0] * WIDTH)
    return {"epoch": 0, "units": units, "velocities": [[0.0] * WIDTH for _ in units]}


def outputs(units, horizontal, vertical):
    """Return the outputs of the hidden units, and the probability of label 1."""
    hidden = [math.tanh(u[0] * horizontal + u[1] * vertical + u[2]) for u in units[:-1]]
    total = units[-1][3] + sum(u[3] * value for u, value in zip(units, hidden, strict=False))
    return hidden, 1 / (1 + math.exp(-max(-50.0, min(50.0, total))))


def train(state, points, learning_rate, momentum):
    """Go once over the points, in an order that depends on the epoch only."""
    units = state["units"]
    order = random.Random(state["epoch"]).sample(points, len(points))
    for horizontal, vertical, label in order:
        hidden, probability = outputs(units, horizontal, vertical)
        error = probability - label
        gradients = []
        for unit, value in zip(units, hidden, strict=False):
            inner = error * unit[3] * (1 - value * value)
            gradients.append([inner * horizontal, inner * vertical, inner, error * value])
        gradients.append([0.0, 0.0, 0.0, error])
        for unit, velocity, gradient in zip(units, state["velocities"], gradients, strict=True):
            for place in range(WIDTH):
                velocity[place] = momentum * velocity[place] - learning_rate * gradient[place]
                unit[place] += velocity[place]
    state["epoch"] += 1


def accuracy(state, points):
    """Return the share of points whose label is found."""
    found = sum((outputs(state["units"], h, v)[1] > 0.5) == bool(label) for h, v, label in points)
    return found / len(points)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0, help="seconds after each epoch")
    arguments = parser.parse_args()
    parameters = ALONE | nni.get_next_parameter()
    training, test = half_moons(200, seed=1), half_moons(500, seed=2)

    file = nni.checkpoint_directory() / "state.json"
    state = json.loads(file.read_text()) if file.exists() else fresh(parameters["hidden"])
    print(
        f"on {socket.gethostname()} from epoch {state['epoch']} to {arguments.epochs}", flush=True
    )
    while state["epoch"] < arguments.epochs:
        train(state, training, parameters["learning_rate"], parameters["momentum"])
        nni.report_intermediate_result(accuracy(state, test))
        file.write_text(json.dumps(state))
        nni.save_checkpoint(step=state["epoch"])
        time.sleep(arguments.pause)
    nni.report_final_result(accuracy(state, test))


if __name__ == "__main__":
    main()
