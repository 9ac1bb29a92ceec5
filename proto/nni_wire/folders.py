"""Names of folders below the home of an installation that clients and services share."""

from typing import Final

ANNOTATED_CODE_FOLDER: Final = "annotation"
"""Folder of the converted copies of annotated code, one for each experiment."""
