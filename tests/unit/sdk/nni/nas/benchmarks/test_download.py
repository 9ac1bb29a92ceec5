"""The command line by its second spelling."""

from nni.nas.benchmark import download as home
from nni.nas.benchmarks import download


def test_the_spelling_is_the_command_of_its_home() -> None:
    assert download.main is home.main
