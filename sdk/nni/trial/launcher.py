"""Generator of the ``nni-trial`` script that an agent puts on the PATH of its trials.

The script starts an interpreter that looks at no environment variable, user folder or
site-packages, which is what keeps it below 30 ms: ``python -m nni.trial.launcher FOLDER``.
"""

import sys
from pathlib import Path

NAME = "nni-trial"
MAX_SHEBANG_BYTES = 126
"""Bytes that Linux before 5.1 reads of a first line, less the line's end."""
_OWNER_MAY_ALL_OTHERS_RUN = 0o755


def launcher_text(python: str, folder: str) -> str:
    """Return the text of the `nni-trial` script for an interpreter and a folder of `nni`.

    Args:
        python: absolute path of the interpreter.
        folder: where the package `nni` lies.
    """
    shebang = f"#!{python} -ISs"
    if " " in python or len(shebang.encode()) > MAX_SHEBANG_BYTES:
        # The shell runs the second line; to Python it is the first half of a string.
        quoted = "'\"'\"'".join(python.split("'"))
        shebang = f"#!/bin/sh\n'''exec' '{quoted}' -ISs \"$0\" \"$@\"\n'''"
    return (
        f"{shebang}\n"
        "import sys\n"
        f"sys.path.append({folder!r})\n"
        "from nni.trial.command import run\n"
        "run()\n"
    )


def write_launcher(folder: Path, python: str = sys.executable) -> Path:
    """Write the executable `nni-trial` into a folder, replacing it at once; return its path.

    Raises:
        OSError: the folder cannot be written.
    """
    path = folder / NAME
    draft = folder / f".{NAME}.new"
    draft.write_text(launcher_text(python, str(Path(__file__).resolve().parents[2])))
    draft.chmod(_OWNER_MAY_ALL_OTHERS_RUN)
    draft.replace(path)
    return path


if __name__ == "__main__":
    write_launcher(Path(sys.argv[1]))
