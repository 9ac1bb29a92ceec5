"""Names of the package."""

from nni.nas import profiler
from nni.nas.profiler import pytorch
from nni.nas.profiler.pytorch import flops, nn_meter


def test_documented_names_are_at_their_documented_places() -> None:
    documented = (
        *("FlopsParamsProfiler", "FlopsProfiler", "NumParamsProfiler"),
        *("FlopsParamsCounterConfig", "count_flops_params", "register_flops_formula"),
    )

    assert [name for name in documented if not hasattr(flops, name)] == []
    assert nn_meter.NnMeterProfiler is pytorch.NnMeterProfiler
    assert set(profiler.__all__) == {"ExpressionProfiler", "LatencyFilter", "Profiler"}
