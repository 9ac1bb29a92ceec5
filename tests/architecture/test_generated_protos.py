"""The generated code of the contracts is that of their sources."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in {".py", ".pyi"}
    }


@pytest.mark.timeout(120)
def test_generated_code_agrees_with_its_source(tmp_path: Path) -> None:
    subprocess.run([ROOT / "dev", "proto", str(tmp_path)], check=True, capture_output=True)

    committed = contents(ROOT / "proto/gen/nni_proto")
    generated = contents(tmp_path / "nni_proto")

    assert committed.keys() == generated.keys()
    assert [name for name, text in generated.items() if committed[name] != text] == []
