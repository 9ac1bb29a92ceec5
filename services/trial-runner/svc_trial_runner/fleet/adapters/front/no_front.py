"""Front of an installation that has none."""

from svc_trial_runner.fleet.ports import FrontEndpoint, PlatformError


class NoFront:
    """`Front` that cannot be opened."""

    async def open(self) -> FrontEndpoint:
        """Raise PlatformError."""
        raise PlatformError(
            "this installation has no TLS front for agents of other machines",
            "run `nnictl` on a machine with the local shape of NNI's services",
            permanent=True,
        )
