"""Trial of the example: a parabola."""

import nni

parameters = nni.get_next_parameter()
nni.report_final_result((parameters["x"] - 3) ** 2)
