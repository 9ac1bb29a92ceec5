"""Objective that ends its process for one configuration, in a module that processes import."""

from __future__ import annotations

import os
from typing import Any


def end_process_at_zero(parameters: dict[str, Any]) -> float:
    """Return the parameter `x`; end the process if it is 0."""
    if parameters["x"] == 0:
        os._exit(9)
    return float(parameters["x"])
