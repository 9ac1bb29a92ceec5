import subprocess
import sys

import pytest

from nni.compression import experiment


def test_the_search_space_needs_neither_torch_nor_a_client() -> None:
    code = (
        "import sys\n"
        "from nni.compression.experiment import AbstractAutoCompressionModule\n"
        "from nni.compression.experiment import AutoCompressionSearchSpaceGenerator\n"
        "print({'torch', 'grpc'} & set(sys.modules))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert ran.stdout == "set()\n"


def test_public_names_are_listed_and_importable() -> None:
    assert set(experiment.__all__) <= set(dir(experiment))
    assert experiment.compress_and_measure.__module__.endswith("compression_trial")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = experiment.nothing
