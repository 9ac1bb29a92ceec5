"""Primitives of model spaces; the names of the selected framework can be imported from here."""

from nni.common.framework import shortcut

__getattr__ = shortcut("nni.nas.nn")
