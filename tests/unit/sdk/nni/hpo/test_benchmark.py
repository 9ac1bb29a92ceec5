"""Documented spelling of the benchmark."""

import subprocess
import sys

import nni.hpo.benchmark
import nni_benchmark


def test_spelling_gives_every_public_name_of_the_distribution() -> None:
    assert nni.hpo.benchmark.__all__ == nni_benchmark.__all__
    for name in nni_benchmark.__all__:
        assert getattr(nni.hpo.benchmark, name) is getattr(nni_benchmark, name)


def test_missing_distribution_is_named_with_the_command_that_installs_it() -> None:
    program = "import sys\nsys.modules['nni_benchmark'] = None\nimport nni.hpo.benchmark"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert "pip install 'nni[benchmark]'" in done.stderr.splitlines()[-1]
