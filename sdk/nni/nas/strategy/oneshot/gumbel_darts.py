"""DARTS with noise that makes each mixture close to one sampled choice.

Source: Jang, Gu, Poole, Categorical Reparameterization with Gumbel-Softmax, 2017; Wu et al.,
FBNet: Hardware-Aware Efficient ConvNet Design via Differentiable Neural Architecture Search, 2019.
"""

from __future__ import annotations

from typing import Any

from nni.nas.oneshot.pytorch.architecture import GumbelWeights
from nni.nas.oneshot.pytorch.temperature import temperature_schedule
from nni.nas.strategy.oneshot.darts import DARTS


class GumbelDARTS(DARTS):
    """`DARTS` whose mixtures are draws of a Gumbel-Softmax with falling temperature.

    With a penalty on latency or operations it is the search of FBNet.

    Args:
        temperature: number, pair of first and last value, dict with `init` and `min`, or an object
            with a method `at(epoch, total)`.
        **kwargs: arguments of `DARTS`.

    Raises:
        ValueError: `temperature` is none of these.

    Examples:
        >>> GumbelDARTS(temperature=(1.0, 0.5)).status.value
        'empty'
    """

    def __init__(self, *, temperature: object = (1.0, 0.33), **kwargs: Any) -> None:  # noqa: ANN401 - those of DARTS
        super().__init__(**kwargs)
        self._temperature = temperature_schedule(temperature)

    def new_architecture(self) -> GumbelWeights:
        """Return new logits without labels, whose weights are drawn by Gumbel-Softmax."""
        return GumbelWeights()
