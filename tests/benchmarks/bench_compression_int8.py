"""How fast and how exact are quantized models in runtimes, beside the runtimes' own quantization?

ResNet-50 and BERT-base with random weights are quantized after training by the presets of
`nni.compression`, exported to ONNX and executed by onnxruntime and OpenVINO on one thread with a
batch of 1. Peers are `onnxruntime.quantization.quantize_static` and `nncf.quantize` with the same
inputs; all take turns in one process. Times are CPU seconds of the process, which other programs on
the machine disturb less. Signal-to-noise ratios are those of the outputs, beside the float model.
`resnet50 pruned` has half of its channels removed as well, beside the dense float model.
For `torch.compile` the integers of `compile_pt2e` stand beside the compiled float model.

`--only NAME` picks models by name, `--runs N` sets the number of turns.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import importlib.util
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import torch
from torch import Tensor, nn

from nni.compression import TorchEvaluator, prune
from nni.compression.base.onnx_export import export_onnx as export_float
from nni.compression.quantization import (
    PtqQuantizer,
    compile_pt2e,
    export_onnx,
    export_pt2e,
    open_session,
)
from nni.compression.quantization.presets import Runtime, config_list_for
from tests.benchmarks.compression_models import Subject
from tests.benchmarks.figures import Figure, at_least, at_most, print_figures
from tests.benchmarks.measure import print_header

REMEDY: Final = "pip install --no-deps torchvision==0.28.0; pip install openvino==2026.4.1 nncf"
CALIBRATION: Final = 8
EVALUATED: Final = 4
TOKENS: Final = 128
WARM_UP: Final = 3
"""Turns that do not count: the first ones allocate."""
RATIO: Final = 0.5
SLOWER: Final = 1.05
"""Times of the peer's latency that are allowed."""
NOISIER_DB: Final = 1.0
TIMES_AS_FAST: Final = 7.0
LEAST_DB: Final = 20.0
"""Without a peer: noise of a tenth of the signal."""

Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays], np.ndarray]


class Bert(nn.Module):
    """BERT-base without its pooler."""

    def __init__(self) -> None:
        super().__init__()
        Subject("resnet18", 224).build()  # names operations that transformers imports, too
        transformers: Any = importlib.import_module("transformers")
        self.bert = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        found: Tensor = self.bert(input_ids=input_ids, attention_mask=attention_mask)[0]
        return found


def images(seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {"x": torch.randn(1, 3, 224, 224, generator=generator)}


def sentences(seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 30522, (1, TOKENS), generator=generator)
    return {"input_ids": ids, "attention_mask": torch.ones(1, TOKENS, dtype=torch.long)}


def resnet50() -> nn.Module:
    return Subject("resnet50", 224).build()


def pruned_resnet50() -> nn.Module:
    smaller, _ = prune(resnet50(), images(0)["x"], RATIO)
    return smaller


def bert() -> nn.Module:
    torch.manual_seed(0)
    return Bert().eval()


SUBJECTS: Final[
    Mapping[str, tuple[Callable[[], nn.Module], Callable[[int], dict[str, Tensor]]]]
] = {
    "resnet50": (resnet50, images),
    "bert_base": (bert, sentences),
    "resnet50 pruned": (pruned_resnet50, images),
}


def calibrated(
    model: nn.Module, inputs: Sequence[dict[str, Tensor]], runtime: Runtime
) -> PtqQuantizer:
    def evaluate(one: nn.Module) -> float:
        with torch.no_grad():
            return sum(float(one(*value.values()).sum()) for value in inputs)

    example = tuple(inputs[0].values())
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    evaluator = TorchEvaluator(print, sgd, print, evaluating_func=evaluate)
    config_list = config_list_for(runtime, model, example)
    quantizer = PtqQuantizer(model, config_list, evaluator, dummy_input=example)
    quantizer.compress()
    return quantizer


def onnxruntime_run(path: Path) -> Run:
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = open_session(path, options=options)
    names = [one.name for one in session.get_inputs()]

    def run(inputs: Arrays) -> np.ndarray:
        feed = dict(zip(names, inputs.values(), strict=True))
        return cast("np.ndarray", session.run(None, feed)[0])

    return run


def openvino_run(model: Any) -> Run:
    openvino: Any = importlib.import_module("openvino")
    options = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(model, "CPU", options).create_infer_request()

    def run(inputs: Arrays) -> np.ndarray:
        found = request.infer(list(inputs.values()))
        return np.array(next(iter(found.values())))

    return run


def read_openvino(path: Path) -> Any:
    openvino: Any = importlib.import_module("openvino")
    return openvino.Core().read_model(path)


class Reader:
    """Calibration inputs as onnxruntime reads them."""

    def __init__(self, inputs: Sequence[Arrays]) -> None:
        self._waiting = iter(inputs)

    def get_next(self) -> Arrays | None:
        """Return the next inputs; None after the last ones."""
        return next(self._waiting, None)


def quantized_by_onnxruntime(dense: Path, inputs: Sequence[Arrays]) -> Path:
    library: Any = importlib.import_module("onnxruntime.quantization")
    shapes: Any = importlib.import_module("onnxruntime.quantization.shape_inference")
    prepared, path = dense.with_suffix(".prepared.onnx"), dense.with_suffix(".static.onnx")
    shapes.quant_pre_process(dense, prepared)
    library.quantize_static(
        *(prepared, path, Reader(inputs)),
        quant_format=library.QuantFormat.QDQ,
        per_channel=True,
        activation_type=library.QuantType.QUInt8,
        weight_type=library.QuantType.QInt8,
    )
    return path


def quantized_by_nncf(dense: Path, name: str, inputs: Sequence[Arrays]) -> Any:
    nncf: Any = importlib.import_module("nncf")
    kind = nncf.ModelType.TRANSFORMER if name.startswith("bert") else None
    return nncf.quantize(
        *(read_openvino(dense), nncf.Dataset(list(inputs))),
        subset_size=len(inputs),
        model_type=kind,
    )


def cpu_times_ms(runs: Sequence[Run], inputs: Arrays, turns: int) -> list[list[float]]:
    """Return the CPU times of each turn in ms, by run; runs take turns."""
    found: list[list[float]] = [[] for _ in runs]
    for turn in range(turns + WARM_UP):
        for run, times in zip(runs, found, strict=True):
            start = time.process_time()
            run(inputs)
            if turn >= WARM_UP:
                times.append(1000 * (time.process_time() - start))
    return found


def signal_to_noise_db(run: Run, reference: Run, inputs: Sequence[Arrays]) -> float:
    signal = noise = 0.0
    for one in inputs:
        wanted = reference(one).astype(np.float64)
        signal += float(np.square(wanted).sum())
        noise += float(np.square(run(one) - wanted).sum())
    return float(10 * np.log10(signal / noise))


def figures_of(name: str, turns: int, folder: Path) -> list[Figure]:
    build, make = SUBJECTS[name]
    tensors = [make(seed) for seed in range(CALIBRATION + EVALUATED)]
    arrays = [{key: one.numpy() for key, one in value.items()} for value in tensors]
    model = build()
    dense = folder / "dense.onnx"
    export_float(model, tuple(tensors[0].values()), dense)
    baseline = dense
    if name.endswith("pruned"):
        baseline = folder / "baseline.onnx"
        export_float(resnet50(), tuple(tensors[0].values()), baseline)
    static = quantized_by_onnxruntime(dense, arrays[:CALIBRATION])
    peers: dict[Runtime, tuple[str, Callable[[], Run], Callable[[Path], Run]]] = {
        "onnxruntime": ("quantize_static", partial(onnxruntime_run, static), onnxruntime_run),
        "openvino": (
            "nncf.quantize",
            lambda: openvino_run(quantized_by_nncf(dense, name, arrays[:CALIBRATION])),
            lambda path: openvino_run(read_openvino(path)),
        ),
    }
    figures = []
    for runtime, (peer_name, make_peer, make_run) in peers.items():
        quantizer = calibrated(copy.deepcopy(model), tensors[:CALIBRATION], runtime)
        path = folder / f"{runtime}.onnx"
        example = tuple(tensors[0].values())
        export_onnx(quantizer.bound_model, quantizer, example, path, runtime=runtime)
        ours, peer, exact = make_run(path), make_peer(), make_run(baseline)
        reference = make_run(dense) if name.endswith("pruned") else exact
        times = cpu_times_ms((ours, peer, exact), arrays[-1], turns)
        ratio = statistics.median(a / b for a, b in zip(times[0], times[1], strict=True))
        faster = statistics.median(b / a for a, b in zip(times[0], times[2], strict=True))
        middle = [statistics.median(one) for one in times]
        evaluated = arrays[CALIBRATION:]
        db = [signal_to_noise_db(one, reference, evaluated) for one in (ours, peer)]
        what = f"{name}, {runtime}"
        note = f"{middle[0]:.1f} beside {middle[1]:.1f} ms of {peer_name}, float {middle[2]:.1f}"
        figures += [
            at_most(f"{what}: times the peer's latency", ratio, SLOWER, note=note),
            at_least(f"{what}: signal to noise, dB", db[0], db[1] - NOISIER_DB),
            at_least(
                f"{what}: times as fast as float",
                faster,
                TIMES_AS_FAST if name.endswith("pruned") else 1.0,
            ),
        ]
    return figures


def compiled_run(function: Callable[..., Any]) -> Run:
    def run(inputs: Arrays) -> np.ndarray:
        with torch.no_grad():
            found = function(*(torch.from_numpy(one) for one in inputs.values()))
        return cast("np.ndarray", found.numpy())

    return run


def compiled_figures_of(name: str, turns: int) -> list[Figure]:
    """Return the figures of `torch.compile`: integers beside floats."""
    build, make = SUBJECTS[name]
    tensors = [make(seed) for seed in range(CALIBRATION + EVALUATED)]
    arrays = [{key: one.numpy() for key, one in value.items()} for value in tensors]
    model = build()
    dense = resnet50() if name.endswith("pruned") else model
    quantizer = calibrated(copy.deepcopy(model), tensors[:CALIBRATION], "onnxruntime")
    program = export_pt2e(quantizer.bound_model, quantizer, tuple(tensors[0].values()))
    freezing: dict[str, Any] = {"freezing": True}
    exact = compiled_run(torch.compile(dense, options=freezing))
    reference = compiled_run(torch.compile(model, options=freezing))
    ours = compiled_run(compile_pt2e(program))
    times = cpu_times_ms((ours, exact), arrays[-1], turns)
    faster = statistics.median(b / a for a, b in zip(*times, strict=True))
    middle = [statistics.median(one) for one in times]
    note = f"{middle[0]:.1f} ms, float {middle[1]:.1f}"
    what = f"{name}, torch.compile"
    decibels = signal_to_noise_db(ours, reference, arrays[CALIBRATION:])
    return [
        at_least(f"{what}: times as fast as float", faster, 1.0, note=note),
        at_least(f"{what}: signal to noise, dB", decibels, LEAST_DB),
    ]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of the models")
    parser.add_argument("--runs", type=int, default=40, help="number of turns")
    chosen = parser.parse_args(words)
    print_header("Quantized models in runtimes, beside their own quantization", packages=["torch"])
    needed = ("torchvision", "openvino", "nncf")
    missing = {one for one in needed if importlib.util.find_spec(one) is None}
    if missing:
        print(f"   skipped {'all' if 'torchvision' in missing else 'the runtimes'}: {REMEDY}")
    if "torchvision" in missing:
        return
    torch.set_num_threads(1)
    logging.getLogger("nncf").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    for name in SUBJECTS:
        if chosen.only not in name:
            continue
        print_figures(compiled_figures_of(name, chosen.runs))
        if not missing:
            with tempfile.TemporaryDirectory() as folder:
                print_figures(figures_of(name, chosen.runs, Path(folder)))


if __name__ == "__main__":
    main()
