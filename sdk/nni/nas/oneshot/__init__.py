"""One-shot search: one network whose weights all architectures share.

The names of the selected framework can be imported from here.
"""

from nni.common.framework import shortcut

__getattr__ = shortcut("nni.nas.oneshot")
