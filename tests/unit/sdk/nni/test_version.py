from importlib.metadata import version

import nni


def test_version_is_that_of_the_distribution() -> None:
    assert nni.__version__ == version("nni")
