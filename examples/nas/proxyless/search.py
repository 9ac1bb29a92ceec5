"""Search a network by ProxylessNAS, with and without a penalty on the latency of this machine."""

import argparse
import logging
import warnings
from pathlib import Path

import torch
from space import DigitsSpace
from training import BATCH, accuracy, digits, train

from nni.nas.evaluator.pytorch import Classification, DataLoader
from nni.nas.experiment import NasExperiment
from nni.nas.profiler.pytorch import LatencyProfiler, LatencyTable
from nni.nas.space import model_context
from nni.nas.strategy import Proxyless

SEED = 0
SLOWEST = dict.fromkeys(("place0", "place1", "place2"), "conv7")


def measured(images, path):
    """Return a profiler whose table of latencies was measured here, now or in an earlier run."""
    table = LatencyTable.load(path) if path.is_file() else LatencyTable(repeats=20)
    profiler = LatencyProfiler(DigitsSpace(), images, table)
    table.save(path)
    return profiler


def search(penalty, train_data, validation, epochs, folder):
    """Return the sample that ProxylessNAS exports."""
    torch.manual_seed(SEED)
    evaluator = Classification(
        learning_rate=5e-3,
        num_classes=10,
        train_dataloaders=DataLoader(train_data, batch_size=BATCH, shuffle=True),
        val_dataloaders=DataLoader(validation, batch_size=BATCH, shuffle=True),
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        default_root_dir=folder,  # checkpoints of the supernet
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    strategy = Proxyless(arc_learning_rate=0.03, penalty=penalty)
    experiment = NasExperiment(DigitsSpace(), evaluator, strategy)
    experiment.config.experiment_working_directory = folder
    experiment.run()
    experiment.stop()
    return experiment.export_top_models(formatter="dict")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10, help="epochs of each search")
    parser.add_argument("--retrain-epochs", type=int, default=5, help="epochs of each network")
    parser.add_argument("--scale", type=float, default=0.1, help="weight of the penalty")
    parser.add_argument("--folder", default="search", help="folder for checkpoints and logs")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", module="pytorch_lightning")  # advice on loaders
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.set_num_threads(1)  # the networks are too small for more
    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    train_data, validation, test = digits()
    latency = measured(train_data.tensors[0][:1], folder / "latency.json")
    print(f"slowest network: {latency.profile(SLOWEST):.3f} ms for one image")

    # The penalty is scale * (latency / baseline - 1), in expectation over the probabilities.
    baseline = latency.profile(SLOWEST) / 2
    penalty = {"profiler": latency, "baseline": baseline, "scale": arguments.scale}
    print(f"{'penalty':<9}{'ms':>7}{'trained %':>11}  sample")
    for name, given in (("none", None), ("latency", penalty)):
        sample = search(given, train_data, validation, arguments.epochs, arguments.folder)
        torch.manual_seed(SEED)
        with model_context(sample):
            network = DigitsSpace()
        train(network, train_data, arguments.retrain_epochs)
        result = accuracy(network, test)
        print(f"{name:<9}{latency.profile(sample):>7.3f}{result:>11.2f}  {sample}")


if __name__ == "__main__":
    main()
