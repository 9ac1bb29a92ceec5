"""`TrialIds` from the system's randomness, or from the hash of a request id."""

import hashlib
import secrets
import string
from typing import Final

_EXPERIMENT_LETTERS: Final = string.ascii_lowercase + string.digits
_TRIAL_LETTERS: Final = string.ascii_letters + string.digits
_EXPERIMENT_LENGTH: Final = 8
_TRIAL_LENGTH: Final = 5
_SEED_LIMIT: Final = 2**31


class RandomIds:
    """Generator of experiment ids (random, or derived from a request id), trial ids and seeds."""

    def experiment_id(self, request_id: str = "", draw: int = 0) -> str:
        """Return 8 characters of [a-z0-9], random or derived from request id and draw."""
        if not request_id:
            return "".join(secrets.choice(_EXPERIMENT_LETTERS) for _ in range(_EXPERIMENT_LENGTH))
        digest = hashlib.blake2b(f"{draw} {request_id}".encode("utf-8", "surrogatepass")).digest()
        number = int.from_bytes(digest)
        letters = []
        for _ in range(_EXPERIMENT_LENGTH):
            number, index = divmod(number, len(_EXPERIMENT_LETTERS))
            letters.append(_EXPERIMENT_LETTERS[index])
        return "".join(letters)

    def trial_id(self) -> str:
        """Return 5 random characters of [A-Za-z0-9] as a trial id; the caller checks uniqueness."""
        number = secrets.randbits(64)
        letters = []
        for _ in range(_TRIAL_LENGTH):
            number, index = divmod(number, len(_TRIAL_LETTERS))
            letters.append(_TRIAL_LETTERS[index])
        return "".join(letters)

    def seed(self) -> int:
        """Return a random integer from 0 to 2**31 - 1, from the system's random source."""
        return secrets.randbelow(_SEED_LIMIT)
