"""Structured pruning made real: channels that masks made useless are removed from the model."""

from nni.compression.speedup.depth import DepthReport, block_influences, drop_blocks
from nni.compression.speedup.groups import ChannelGroup, Dependencies, find_dependencies
from nni.compression.speedup.model_speedup import ModelSpeedup
from nni.compression.speedup.removal import EmptyLayerError
from nni.compression.speedup.report import KeptChannels, SpeedupReport
from nni.compression.speedup.storage import load_smaller, save_smaller

__all__ = [
    "ChannelGroup",
    "Dependencies",
    "DepthReport",
    "EmptyLayerError",
    "KeptChannels",
    "ModelSpeedup",
    "SpeedupReport",
    "block_influences",
    "drop_blocks",
    "find_dependencies",
    "load_smaller",
    "save_smaller",
]
