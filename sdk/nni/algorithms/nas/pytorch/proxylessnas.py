"""Documented import path for `nni.retiarii.oneshot.pytorch.proxyless_nas_trainer`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.retiarii.oneshot.pytorch.proxyless_nas_trainer import ProxylessNasTrainer

__all__ = ["ProxylessNasTrainer"]
