"""`TrialIds` from the system's randomness."""

import secrets
import string
from typing import Final

_EXPERIMENT_LETTERS: Final = string.ascii_lowercase + string.digits
_TRIAL_LETTERS: Final = string.ascii_letters + string.digits
_EXPERIMENT_LENGTH: Final = 8
_TRIAL_LENGTH: Final = 5
_SEED_LIMIT: Final = 2**31


class RandomIds:
    """See `svc_manager.ports.TrialIds`."""

    def experiment_id(self) -> str:
        """See `TrialIds.experiment_id`."""
        return "".join(secrets.choice(_EXPERIMENT_LETTERS) for _ in range(_EXPERIMENT_LENGTH))

    def trial_id(self) -> str:
        """See `TrialIds.trial_id`."""
        number = secrets.randbits(64)
        letters = []
        for _ in range(_TRIAL_LENGTH):
            number, index = divmod(number, len(_TRIAL_LETTERS))
            letters.append(_TRIAL_LETTERS[index])
        return "".join(letters)

    def seed(self) -> int:
        """See `TrialIds.seed`."""
        return secrets.randbelow(_SEED_LIMIT)
