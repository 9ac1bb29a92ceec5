"""Every tutorial runs as it is written, against real services."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.local_shape import LocalShape
from tests.support.markdown import ROOT, CodeBlock, code_blocks
from tests.support.ports import free_port

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def run_console(block: CodeBlock, folder: Path, shape: LocalShape, port: int) -> None:
    for command in block.commands():
        line = command.replace("8080", str(port))
        shape.run(["bash", "-c", f"cd '{folder}' && {line}"], timeout_s=240)


@pytest.mark.timeout(480)
@pytest.mark.parametrize("page", TUTORIALS, ids=[page.stem for page in TUTORIALS])
def test_tutorial_runs_as_written(page: Path, tmp_path: Path, local_shape: LocalShape) -> None:
    port = free_port()
    blocks = code_blocks(page)
    script = "\n".join(
        block.text for block in blocks if block.language == "python" and not block.title
    )
    for block in blocks:
        if block.title:
            (tmp_path / block.title).write_text(block.text, "utf-8")
    (tmp_path / "python_blocks.py").write_text(script, "utf-8")

    for block in blocks:
        if block.language == "console":
            run_console(block, tmp_path, local_shape, port)
    command = f"cd '{tmp_path}' && {sys.executable} python_blocks.py"
    ran = local_shape.run(["bash", "-c", command], timeout_s=400)

    assert blocks
    assert ran.returncode == 0
