"""Platform `shell`: one machine, behind a command that runs a line of the shell there."""

from nni_wire.own_platforms import PlatformEntry

entry = PlatformEntry(
    config="shell_platform.config:ShellConfig", adapter="shell_platform.adapter:ShellAdapter"
)
