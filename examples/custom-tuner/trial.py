"""Ten steps of a noisy descent; its end depends on rate and momentum."""

import random

import nni

parameters = {"rate": 0.1, "momentum": 0.5} | nni.get_next_parameter()
noise = random.Random(nni.get_sequence_id())
position, speed = 4.0, 0.0
for _step in range(10):
    slope = 2 * position + noise.gauss(0, 0.1)
    speed = parameters["momentum"] * speed - parameters["rate"] * slope
    position += speed
    nni.report_intermediate_result(abs(position))
nni.report_final_result(abs(position))
