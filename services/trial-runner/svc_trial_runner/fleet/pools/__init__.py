"""Use cases of the fleet: control of each pool, and the registry of pools."""
