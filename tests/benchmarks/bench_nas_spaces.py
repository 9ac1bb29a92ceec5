"""What does one candidate of an architecture search cost before its training begins?

The space is MobileNetV3 of the hub, the largest that is usual. Targets: a sample within 2 ms;
freeze and construction of the network within 60 ms, weights included, on one thread. The last
figure is what torch spends on the initial weights of such a network.
"""

import random
import time
from collections.abc import Callable
from typing import Final

import torch
from torch import nn

from nni.common.serializer import dump, load
from nni.nas.hub.pytorch import MobileNetV3Space
from nni.nas.space import RawFormatModelSpace, SimplifiedModelSpace
from tests.benchmarks.measure import print_figure, print_header

ROUNDS: Final = 30
SEED: Final = 0


def time_ms(function: Callable[[], object]) -> list[float]:
    """Return the time of each of several calls, after one that is not counted."""
    function()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        function()
        times.append((time.perf_counter() - start) * 1000)
    return times


def initial_weights_of(network: nn.Module) -> Callable[[], None]:
    layers = [one for one in network.modules() if isinstance(one, nn.Conv2d | nn.Linear)]

    def draw() -> None:
        for layer in layers:
            layer.reset_parameters()

    return draw


def main() -> None:
    print_header(str(__doc__), seed=SEED, packages=["torch"])
    torch.set_num_threads(1)
    state = random.Random(SEED)
    print_figure("construct the space", time_ms(MobileNetV3Space), "ms")
    space = MobileNetV3Space()
    formats = {
        "raw": RawFormatModelSpace.from_model(space),
        "simplified": SimplifiedModelSpace.from_model(space),
    }
    for name, executable in formats.items():
        drawn = time_ms(lambda executable=executable: executable.random(random_state=state))  # type: ignore[misc]
        print_figure(f"{name}: draw a sample, freeze", drawn, "ms", target="<= 2 ms")
        models = iter([executable.random(random_state=state) for _ in range(ROUNDS + 1)])
        built = time_ms(lambda models=models: next(models).build_model())  # type: ignore[misc]
        print_figure(f"{name}: construct the network", built, "ms", target="<= 60 ms")
    model = formats["simplified"].random(random_state=state)
    text = dump(model)
    print_figure("dump and load of a candidate", time_ms(lambda: load(dump(model))), "ms")
    print_figure("size of a candidate", [len(text) / 1000], "kB")
    network = model.build_model()
    million = sum(one.numel() for one in network.parameters()) / 1e6
    print_figure(f"initial weights, {million:.1f} M", time_ms(initial_weights_of(network)), "ms")


if __name__ == "__main__":
    main()
