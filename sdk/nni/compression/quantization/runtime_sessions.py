"""Sessions of ONNX Runtime that compute integers of 8 bits exactly on every processor."""

import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, SessionOptions

_logger = logging.getLogger(__name__)

_CPUINFO: Final = Path("/proc/cpuinfo")
_EXACT: Final = frozenset({"avx512_vnni", "avx_vnni"})
"""Flags of the instructions that add products of 8 bits to sums of 32 bits."""
_EXACT_KERNELS: Final = "session.x64quantprecision"
"""Option: weights become unsigned, for which there are kernels with wide sums."""
_FLOATING: Final = "session.disable_quant_qdq"
"""Option: pairs of QuantizeLinear and DequantizeLinear are executed as they stand."""
_FATAL: Final = 4
"""Highest severity in the log of ONNX Runtime."""


def open_session(
    model: str | Path | bytes,
    *,
    options: "SessionOptions | None" = None,
    cpuinfo: str | None = None,
) -> "InferenceSession":
    """Open an ONNX file on the CPU with exact integer sums; warn where only floats are exact.

    Processors of x86 without VNNI add pairs of products of 8 bits in 16 bits, which the kernels for
    unsigned inputs and signed weights of ONNX Runtime cut off: results are wrong by up to half of
    their size. There the session uses slower, exact kernels. ONNX Runtime cannot convert a weight
    to them that several layers share: such a file is computed in floating point, with a
    `UserWarning`.

    Args:
        model: the file, or its content.
        options: further options, such as the number of threads; those of exact kernels are added.
        cpuinfo: text in the form of `/proc/cpuinfo` of the processor; None: of this machine.

    Returns:
        The session.

    Raises:
        ImportError: onnxruntime is missing.

    Examples:
        >>> import tempfile
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization import NaiveQuantizer, export_onnx, open_session
        >>> model = nn.Sequential(nn.Linear(3, 2))
        >>> quantizer = NaiveQuantizer(model)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_onnx(model, quantizer, torch.zeros(1, 3), f"{folder}/model.onnx")
        ...     session = open_session(f"{folder}/model.onnx")
        >>> [one.shape for one in session.get_outputs()]
        [[1, 2]]
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError("open_session needs onnxruntime; run: pip install 'nni[onnx]'") from error
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail

    options = onnxruntime.SessionOptions() if options is None else options
    providers = ["CPUExecutionProvider"]
    if not sums_saturate(_own_cpuinfo() if cpuinfo is None else cpuinfo):
        return onnxruntime.InferenceSession(model, options, providers=providers)
    options.add_session_config_entry(_EXACT_KERNELS, "1")
    severity = options.log_severity_level
    options.log_severity_level = _FATAL  # a weight that is shared is no error of the user
    try:
        return onnxruntime.InferenceSession(model, options, providers=providers)
    except Fail as error:
        _logger.debug("no exact kernels: %s", error)
    finally:
        options.log_severity_level = severity
    options.add_session_config_entry(_FLOATING, "1")
    session = onnxruntime.InferenceSession(model, options, providers=providers)
    warnings.warn(
        "layers of this file share a quantized weight, for which ONNX Runtime has no exact kernels "
        "on a processor without VNNI; the file is computed in floating point, without the speed of "
        "integers. Give each layer a weight of its own, or use a processor with VNNI",
        stacklevel=2,
    )
    return session


def sums_saturate(cpuinfo: str) -> bool:
    """Return whether a processor adds 8-bit products in 16 bits: x86 without VNNI, or unknown.

    Args:
        cpuinfo: text in the form of `/proc/cpuinfo`; without any processor, the answer is true,
            which costs speed and no accuracy.

    Returns:
        True for processors of x86 without VNNI.

    Examples:
        >>> sums_saturate("flags : fpu avx2"), sums_saturate("flags : fpu avx2 avx_vnni")
        (True, False)
    """
    lines = [line.partition(":") for line in cpuinfo.splitlines()]
    values = {key.strip(): value.split() for key, _, value in lines}
    if "flags" not in values:
        return "Features" not in values  # of processors of ARM, which have no such kernels
    return not _EXACT & set(values["flags"])


def _own_cpuinfo() -> str:
    """Return the description of the processors of this machine; empty if the system has none."""
    return _CPUINFO.read_text("utf-8", "replace") if _CPUINFO.is_file() else ""
