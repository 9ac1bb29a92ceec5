import subprocess
import sys

import pytest

from nni.nas import experiment


def test_configurations_need_neither_torch_nor_grpc() -> None:
    code = (
        "import sys\n"
        "from nni.nas.experiment import NasExperimentConfig\n"
        "print({'torch', 'grpc'} & set(sys.modules))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert ran.stdout == "set()\n"


def test_public_names_are_listed_and_importable() -> None:
    assert set(experiment.__all__) <= set(dir(experiment))
    assert experiment.NasExperiment.__name__ == "NasExperiment"


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = experiment.nothing
