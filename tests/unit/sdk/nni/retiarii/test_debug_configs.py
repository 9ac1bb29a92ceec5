"""Framework of NNI 2.x."""

from nni.retiarii import debug_configs


def test_framework_is_the_only_one() -> None:
    assert debug_configs.framework == "pytorch"
