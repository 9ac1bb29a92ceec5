"""Limit on the size of one pickle inside a document."""

from nni.errors import NniError


class PayloadTooLarge(NniError, ValueError):
    """Error of an object without a record whose pickle is larger than the limit allows.

    Args:
        path: where the object stands.
        type_name: its type.
        size_bytes: length of its pickle.
        limit_bytes: largest length that is allowed.
        remedy: how to raise the limit.

    Attributes:
        path: attributes and indices that lead to the object, such as `trainer.callbacks[0]`.
        type_name: its type.
        size_bytes: length of its pickle.
        limit_bytes: largest length that is allowed.

    Examples:
        >>> import nni
        >>> try:
        ...     nni.dump({"table": bytearray(5000)})
        ... except PayloadTooLarge as error:
        ...     error.path, error.type_name, error.size_bytes > error.limit_bytes
        ('table', 'bytearray', True)
    """

    def __init__(
        self,
        path: str,
        type_name: str,
        size_bytes: int,
        limit_bytes: int,
        remedy: str = "raise the limit by the argument pickle_size_limit",
    ) -> None:
        super().__init__(
            f"{path or 'the object'} ({type_name}) takes {size_bytes:,} bytes as a pickle, more "
            f"than the limit of {limit_bytes:,}: make it by nni.trace({type_name})(...), so that "
            f"its arguments are written instead, or {remedy}"
        )
        self.path = path
        self.type_name = type_name
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to copy the error: the message comes from the facts."""
        return _restored, (str(self), self.path, self.type_name, self.size_bytes, self.limit_bytes)


def _restored(message: str, *facts: object) -> PayloadTooLarge:
    error = PayloadTooLarge(*facts)  # type: ignore[arg-type]  # those of the original
    error.args = (message,)
    return error


def check_size(data: bytes, limit_bytes: int, path: str, value: object) -> None:
    """Raise PayloadTooLarge if a pickle is longer than a limit.

    Args:
        data: the pickle.
        limit_bytes: largest length that is allowed; 0 or less for no limit.
        path: where the object stands.
        value: the object.
    """
    if 0 < limit_bytes < len(data):
        described = value if hasattr(value, "__qualname__") else type(value)
        name = str(getattr(described, "__qualname__", described))
        raise PayloadTooLarge(path, name, len(data), limit_bytes)
