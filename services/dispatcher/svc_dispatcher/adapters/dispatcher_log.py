"""`dispatcher.log` of one experiment: the host's output, and a few lines of the dispatcher."""

from pathlib import Path
from typing import Final

from svc_common.process_log import ProcessLog

LOG_NAME: Final = "dispatcher.log"


class DispatcherLog(ProcessLog):
    """File `dispatcher.log` of an experiment, which its algorithm host also appends to.

    Args:
        directory: the `log` folder of the experiment, which exists.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, LOG_NAME, "svc_dispatcher")
