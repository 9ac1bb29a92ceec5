"""Names of folders below the home of an installation that client and services both know."""

from typing import Final

ANNOTATED_CODE_FOLDER: Final = "annotation"
"""Each experiment with annotated code has a folder in it: the converted copy that it runs."""
