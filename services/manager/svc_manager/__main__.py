"""Process entry point of the manager."""

import sys
from collections.abc import Mapping

from svc_common.lifecycle import Service, run_process
from svc_manager import app
from svc_manager.settings import from_environment


async def _build(service: Service) -> Mapping[str, str]:
    return await app.build(service, from_environment())


if __name__ == "__main__":
    sys.exit(run_process("manager", _build))
