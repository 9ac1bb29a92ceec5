"""Documents of objects: `nni.dump`, `nni.load`, and their form in bytes."""

import gzip
import json
from typing import IO, Any

from nni.common.serializer.decoding import decode
from nni.common.serializer.encoding import DEFAULT_LIMIT_BYTES, Encoder

_COMPRESSION = ("compression", "force_flush")
_OPTIONS = ("ensure_ascii", "indent", "separators", "sort_keys")
_GZIP_MAGIC = b"\x1f\x8b"
_DEFAULT_LEVEL = 6


def dump(
    obj: object,
    fp: IO[str] | None = None,
    *,
    use_trace: bool = True,
    pickle_size_limit: int = DEFAULT_LIMIT_BYTES,
    allow_nan: bool = True,
    **json_options: Any,  # noqa: ANN401 - those of the standard library
) -> str:
    """Return an object as a JSON document for `nni.load`; write it to a file if one is given.

    Objects made by `nni.trace` are written as calls. Numbers, texts, lists and dicts are plain
    JSON; a tuple becomes a list and keys of dicts become texts. Paths, dates, sets, decimals,
    fractions, complex numbers, bytes, enums, arrays of numpy and tables of pandas have forms of
    their own, those of json-tricks. A class or function is written by its importable name, or as
    a pickle if it has none. Anything else is a pickle.

    Args:
        obj: any object.
        fp: text file that the document is written to, too.
        use_trace: write traced objects as calls; otherwise as pickles.
        pickle_size_limit: largest pickle of one object, in bytes; 0 or less for no limit.
        allow_nan: write NaN and infinities, which are an extension of JSON.
        **json_options: `indent`, `sort_keys`, `separators` and `ensure_ascii` of `json.dumps`.

    Returns:
        The document.

    Raises:
        ValueError: an option for compression is given, which `dump_bytes` has; a number is NaN
            without `allow_nan`; an object contains itself; or two keys of a dict have one text.
        PayloadTooLarge: an object that was not traced is too large; the error names it.
        TypeError: an option is unknown, or an object cannot be pickled.

    Examples:
        >>> import nni
        >>> from fractions import Fraction
        >>> nni.dump({"one": {1, 2}, "two": 1 + 2j})
        '{"one": {"__set__": [1, 2]}, "two": {"__complex__": [1.0, 2.0]}}'
        >>> nni.dump(nni.trace(Fraction)(3))
        '{"__symbol__": "path:fractions.Fraction", "__kwargs__": {"numerator": 3}}'
    """
    given = [name for name in _COMPRESSION if json_options.get(name)]
    if given:
        raise ValueError(
            f"nni.dump writes text and takes no {given[0]}; use nni.common.serializer.dump_bytes"
        )
    unknown = sorted(set(json_options) - {*_OPTIONS, *_COMPRESSION})
    if unknown:
        raise TypeError(f"nni.dump has no option {unknown[0]!r}; options: {', '.join(_OPTIONS)}")
    encoder = Encoder(use_trace=use_trace, pickle_size_limit=pickle_size_limit)
    return written(encoder, obj, fp, allow_nan=allow_nan, **json_options)


def written(
    encoder: Encoder,
    obj: object,
    fp: IO[str] | None = None,
    *,
    allow_nan: bool = True,
    **json_options: Any,  # noqa: ANN401 - those of the standard library
) -> str:
    """Return an object's document by a given encoder; write it to a file if one is given.

    Args:
        encoder: encoder.
        obj: any object.
        fp: text file that the document is written to, too.
        allow_nan: write NaN and infinities.
        **json_options: those of `json.dumps`.
    """
    options = {name: value for name, value in json_options.items() if name in _OPTIONS}
    text = json.dumps(encoder.encode(obj), allow_nan=allow_nan, **options)
    if fp is not None:
        fp.write(text)
    return text


def dump_bytes(
    obj: object,
    fp: IO[bytes] | None = None,
    *,
    compression: bool | int = False,
    **options: Any,  # noqa: ANN401 - those of `dump`
) -> bytes:
    """Return the document of an object in bytes, compressed on request; write it to `fp`, too.

    Args:
        obj: any object.
        fp: binary file that the document is written to, too.
        compression: compress by gzip; a number from 1 to 9 is the level.
        **options: those of `nni.dump`.

    Returns:
        UTF-8, or gzip; `nni.load` reads both.

    Raises:
        ValueError: `compression` is out of its range, or see `nni.dump`.

    Examples:
        >>> import nni
        >>> dump_bytes([1, 2])
        b'[1, 2]'
        >>> nni.load(dump_bytes([1, 2], compression=True))
        [1, 2]
    """
    level = _DEFAULT_LEVEL if compression is True else int(compression)
    if not 0 <= level <= 9:  # noqa: PLR2004 - the levels of gzip
        raise ValueError(f"compression must be a bool or a level from 1 to 9, got {compression!r}")
    data = dump(obj, **options).encode("utf-8")
    if level:
        data = gzip.compress(data, level, mtime=0)
    if fp is not None:
        fp.write(data)
    return data


def load(
    string: str | bytes | None = None,
    *,
    fp: IO[str] | IO[bytes] | None = None,
    preserve_order: bool = False,
    ignore_comments: bool = True,
) -> Any:  # noqa: ANN401 - any object
    """Return the object of a trusted `nni.dump` document, text or file; its code and pickles run.

    Loading runs code: it imports modules, calls the classes and functions that the document names
    and opens the pickles that it holds. Load only documents that you trust as you trust a program.

    Args:
        string: the document, in text or bytes, compressed or not.
        fp: file to read the document from, instead.
        preserve_order: return `collections.OrderedDict` for plain objects.
        ignore_comments: allow comments after `#` and `//`, and between `/*` and `*/`.

    Returns:
        The object; one that was traced is traced again.

    Raises:
        AssertionError: not exactly one of `string` and `fp` is given.
        TypeError: `string` is a file.
        ValueError: the document is no JSON.
        ImportError: a class or function cannot be imported here.

    Examples:
        >>> import nni
        >>> sorted(nni.load('{"__set__": [2, 1]}'))
        [1, 2]
    """
    if hasattr(string, "read"):
        raise TypeError("string must be a document, got a file; pass it as nni.load(fp=...)")
    if (string is None) == (fp is None):
        raise AssertionError("nni.load needs exactly one of string and fp")
    content = fp.read() if fp is not None else string
    if isinstance(content, bytes | bytearray):
        data = gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
        content = data.decode("utf-8")
    if not isinstance(content, str):
        raise TypeError(f"string must be text or bytes, got {type(content).__name__}")
    return decode(content, preserve_order=preserve_order, ignore_comments=ignore_comments)
