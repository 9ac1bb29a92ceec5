import subprocess
import sys

import pytest

from nni.nas import strategy


def test_strategies_need_no_torch() -> None:
    code = (
        "import sys\n"
        "from nni.nas.strategy import Chain, GridSearch, Random, RegularizedEvolution\n"
        "print({'torch', 'numpy', 'grpc'} & set(sys.modules))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert ran.stdout == "set()\n"


@pytest.mark.parametrize("name", strategy.__all__)
def test_public_names_are_importable(name: str) -> None:
    assert getattr(strategy, name) is not None
    assert name in dir(strategy)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = strategy.nothing


def test_misspelled_name_gets_the_closest_ones() -> None:
    with pytest.raises(AttributeError, match=r"'gridsearch'; did you mean GridSearch\?"):
        _ = strategy.gridsearch
    assert strategy.closest("RegularisedEvolution") == "; did you mean RegularizedEvolution?"
