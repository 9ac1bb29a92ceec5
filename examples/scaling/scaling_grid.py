"""Grid search that proposes only what a rule allows."""

from nni.hpo import GridSearchTuner


class ScalingGrid(GridSearchTuner):
    """Grid of depth, width and resolution factors whose cost is near a multiple of the base.

    The cost of a network grows with depth, with the square of its width and with the square of
    the image's side: alpha x beta^2 x gamma^2.

    Args:
        cost: wanted multiple of the cost of the base network.
        tolerance: largest difference from it.
    """

    def __init__(self, cost=2.0, tolerance=0.1):
        super().__init__()
        self._cost = cost
        self._tolerance = tolerance

    def generate_parameters(self, parameter_id, **kwargs):
        """Return the next point of the grid that the rule allows; raise if none is left."""
        while True:
            point = super().generate_parameters(parameter_id, **kwargs)
            cost = point["alpha"] * point["beta"] ** 2 * point["gamma"] ** 2
            if abs(cost - self._cost) <= self._tolerance:
                return point
