"""Execution of the Python blocks in docstrings of the library, against real services.

Examples that need no services are written with `>>>`, and run in
`tests/unit/docs/test_docstring_examples.py`.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from tests.support.local_shape import LocalShape
from tests.support.markdown import ROOT, code_blocks
from tests.support.ports import free_port

TRIAL = "import nni\nnni.report_final_result(nni.get_next_parameter()['x'])\n"
"""Script that the examples run as `trial.py`."""
MODULES = [
    path
    for folder in ("sdk", "sdk-benchmark")
    for path in sorted((ROOT / folder).glob("nni*/**/*.py"))
    if any(block.language == "python" for block in code_blocks(path))
]

LIBRARIES = {
    "keras": "keras",
    "mlflow": "mlflow",
    "ray_tune": "ray",
    "wandb": "wandb",
    "tensorboard": "tensorboardX",
    "tracking": "tensorboardX",
}
"""Libraries that the blocks of modules need and no package of the development tools has."""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("module", MODULES, ids=[path.stem for path in MODULES])
def test_python_blocks_of_docstrings_run(
    module: Path, tmp_path: Path, local_shape: LocalShape
) -> None:
    if module.parent.name == "integrations" and module.stem in LIBRARIES:
        pytest.importorskip(LIBRARIES[module.stem], reason="run by .ci/integrations")
    blocks = [block for block in code_blocks(module) if block.language == "python"]
    source = "\n".join(inspect.cleandoc(block.text) for block in blocks)
    (tmp_path / "trial.py").write_text(TRIAL, "utf-8")
    (tmp_path / "blocks.py").write_text(source.replace("8080", str(free_port())), "utf-8")

    ran = local_shape.run(["bash", "-c", f"cd '{tmp_path}' && {sys.executable} blocks.py"])

    assert blocks
    assert ran.returncode == 0
