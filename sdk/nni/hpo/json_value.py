"""The type of what a user's JSON holds."""

from typing import Any, TypeAlias

JsonValue: TypeAlias = Any
"""None, bool, int, float, str, or a list or dict of these.

Left open to the type checker so that an algorithm may declare the narrower form it works with;
whoever receives one narrows it in the same function.
"""
