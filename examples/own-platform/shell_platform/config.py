"""Section `shell` of a configuration."""

from typing import Literal

from nni.experiment.config import TrainingServiceConfig


class ShellConfig(TrainingServiceConfig):
    """A machine behind a command, such as `docker exec -i box sh -c`."""

    platform: Literal["shell"] = "shell"
    command: list[str]
    """Program and arguments; the line of the shell is added, and its stdin is passed on."""
    folder: str = "~/.nni"
    """Folder of NNI there."""
    shares_network: bool = False
    """True if the machine has the loopback interface of NNI's services."""
    slots: int = 1
    """Trials at once."""
