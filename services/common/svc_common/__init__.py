"""Infrastructure that two or more services share: RPC, messaging, storage, access, telemetry.

Nothing here knows the rules of experiments.
"""
