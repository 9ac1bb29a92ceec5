"""Finds the minimum of (x - 1)^4 + (x - 1)^2; a trial gets its configuration as an object."""

import sys

from space import Newton, Training

import nni
from nni.hpo import configuration


def minimum(training):
    x, speed = training.start, 0.0
    for _ in range(training.steps):
        slope = 4 * (x - 1) ** 3 + 2 * (x - 1)
        match training.method:
            case Newton(damping):
                x -= damping * slope / (12 * (x - 1) ** 2 + 2)
            case descent:
                # A step is cut off at 1, or the steepness far out would throw it away.
                speed = descent.momentum * speed - descent.rate * slope
                x += max(-1.0, min(1.0, speed))
    return (x - 1) ** 4 + (x - 1) ** 2


if __name__ == "__main__":
    training = configuration(Training, nni.get_next_parameter(), sys.argv[1:])
    print(training)
    # What is sought is precision for little work.
    nni.report_final_result(minimum(training) + 0.001 * training.steps)
