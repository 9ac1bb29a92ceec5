"""Signatures by which a search recognises the trials that it has added to an experiment."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from typing import Any, Final

_SIGNATURE: Final = "signature"
_KEY_BYTES: Final = 32


class TrialSigner:
    """Maker and verifier of the signatures of one search's trials.

    Reading a model from the parameters of a trial runs code that they name, and every caller with
    the role `user` may add trials to an experiment. So a search reads the models of those trials
    only whose parameters it has signed itself.

    Args:
        secret: key of the signatures, in hexadecimal digits; None: a new random one.

    Attributes:
        secret: that key.

    Examples:
        >>> signer = TrialSigner()
        >>> signed = signer.sign("trial-0", {"x": 1})
        >>> signer.is_signed("trial-0", signed), signer.is_signed("trial-1", signed)
        (True, False)
    """

    def __init__(self, secret: str | None = None) -> None:
        self.secret = secrets.token_hex(_KEY_BYTES) if secret is None else secret

    def sign(self, key: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a trial with their signature.

        Args:
            key: key of the trial; a signature is valid for one trial only.
            parameters: values that JSON can express.
        """
        return {**parameters, _SIGNATURE: self._signature(key, parameters)}

    def is_signed(self, key: str, parameters: Mapping[str, Any]) -> bool:
        """Return whether these are the parameters that were signed for a trial, unchanged.

        Args:
            key: key of the trial.
            parameters: read from the log of the experiment; others may have written them.
        """
        found = parameters.get(_SIGNATURE)
        if not isinstance(found, str):
            return False
        others = {name: value for name, value in parameters.items() if name != _SIGNATURE}
        return hmac.compare_digest(found.encode(), self._signature(key, others).encode())

    def _signature(self, key: str, parameters: Mapping[str, Any]) -> str:
        text = json.dumps([key, parameters], sort_keys=True)
        return hmac.new(bytes.fromhex(self.secret), text.encode(), hashlib.sha256).hexdigest()
