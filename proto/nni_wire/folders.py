"""Folders below the home of an installation that clients and services share, and their room."""

from typing import Final

ANNOTATED_CODE_FOLDER: Final = "annotation"
"""Folder of the converted copies of annotated code, one for each experiment."""
BUS_FOLDER: Final = "jetstream"
"""Folder of the data of the bus."""
BUS_START_BYTES: Final = 1024 * 1024
"""Free space with which the bus starts, the first time and later. An empty store with all streams
has 48 kB: the bus reserves nothing, since its limit is set (`max_file_store`)."""
BUS_ROOM_BYTES: Final = 64 * 1024 * 1024
"""Free space at which a bus that had none is restarted."""
AGENTS_ACCESS_FILE: Final = "agents.access.json"
"""Access file of the manager with the callers that are agents of the fleet."""
