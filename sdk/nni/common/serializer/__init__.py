"""Records of calls and their documents: `nni.trace`, `nni.dump` and `nni.load`.

`trace` makes objects that carry the class or function that made them, and its arguments. `dump`
writes such a call instead of the object; `load` makes the call again, in another process.
"""

from nni.common.serializer.documents import dump, dump_bytes, load
from nni.common.serializer.payload_size import PayloadTooLarge
from nni.common.serializer.record import (
    Traceable,
    Translatable,
    is_traceable,
    is_wrapped_with_trace,
)
from nni.common.serializer.tracing import SerializableObject, trace

__all__ = [
    "PayloadTooLarge",
    "SerializableObject",
    "Traceable",
    "Translatable",
    "dump",
    "dump_bytes",
    "is_traceable",
    "is_wrapped_with_trace",
    "load",
    "trace",
]
