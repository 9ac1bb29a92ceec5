"""A bowl whose lowest point is x = 1, y = -2, with the sign that is right."""

import nni

parameters = {"x": 0.0, "y": 0.0, "sign": 1} | nni.get_next_parameter()
distance = (parameters["x"] - 1) ** 2 + (parameters["y"] + 2) ** 2
nni.report_final_result(distance + (0 if parameters["sign"] == 1 else 3))
