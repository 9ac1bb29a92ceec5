"""Model spaces that are ready to search; the selected framework's can be imported from here."""

from nni.common.framework import shortcut

__getattr__ = shortcut("nni.nas.hub")
