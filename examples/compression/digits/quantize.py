"""Prune the network, quantize the rest to 8 bits, and run it in onnxruntime."""

import argparse
from pathlib import Path

import torch
from network import Digits, accuracy, loss_of, make_network, train
from prune import compress

from nni.compression import TorchEvaluator
from nni.compression.quantization import PtqQuantizer, export_onnx, open_session
from nni.compression.quantization.presets import config_list_for

CALIBRATION = 128
"""Images of the training that the quantizer observes."""


def quantize(model, images):
    """Return the quantized model and its quantizer; the ranges are those of some images."""

    def evaluate(model):
        with torch.no_grad():
            return float(model(images).mean())

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # part of an evaluator; not used here
    evaluator = TorchEvaluator(train, optimizer, loss_of, evaluating_func=evaluate)
    config_list = config_list_for("onnxruntime", model, (images,))
    quantizer = PtqQuantizer(model, config_list, evaluator, dummy_input=images)
    quantized, _ = quantizer.compress()
    return quantized, quantizer


def runtime_accuracy(path, digits):
    """Return the accuracy of a file in onnxruntime, in percent."""
    session = open_session(path)
    images, labels = digits.test
    (logits,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})
    return 100 * (torch.tensor(logits).argmax(1) == labels).float().mean().item()


def row(name, percent, size_bytes):
    return f"{name:<24}{percent:>10.2f}{size_bytes / 1024:>12.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15, help="of training the dense network")
    parser.add_argument("--tuning-epochs", type=int, default=5, help="of fine-tuning")
    parser.add_argument("--sparsity", type=float, default=0.5, help="part of the channels to go")
    parser.add_argument("--output", type=Path, default=Path("digits.onnx"), help="file in ONNX")
    options = parser.parse_args()

    torch.set_num_threads(1)
    digits = Digits()
    dense = make_network()
    train(dense, digits, options.epochs)
    smaller, _ = compress("one-shot L1", dense, digits, options.sparsity, options.tuning_epochs)

    print(f"{'':<24}{'accuracy %':>10}{'size in KiB':>12}")
    for name, model in {"dense": dense, "pruned": smaller}.items():
        size_bytes = 4 * sum(one.numel() for one in model.parameters())
        print(row(name, accuracy(model, digits), size_bytes))
    quantized, quantizer = quantize(smaller.eval(), digits.train[0][:CALIBRATION])
    size_bytes = sum(one.numel() for one in smaller.parameters())
    print(row("pruned, int8, simulated", accuracy(quantized, digits), size_bytes))
    example = digits.test[0][:1]
    export_onnx(quantized, quantizer, example, options.output, dynamic_batch=True)
    size_bytes = options.output.stat().st_size
    print(row("the same in onnxruntime", runtime_accuracy(options.output, digits), size_bytes))


if __name__ == "__main__":
    main()
