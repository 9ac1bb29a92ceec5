"""Search a cell by DARTS, and train the network that it exports beside random ones."""

import argparse
import logging
import random
import warnings

import torch
from space import DigitsSpace
from training import BATCH, accuracy, digits, train

from nni.nas.evaluator.pytorch import Classification, DataLoader
from nni.nas.experiment import NasExperiment
from nni.nas.space import model_context
from nni.nas.strategy import DARTS

SEED = 0


def search(weights, architecture, epochs, folder):
    """Return the sample that DARTS exports."""
    evaluator = Classification(
        learning_rate=5e-3,
        num_classes=10,
        train_dataloaders=DataLoader(weights, batch_size=BATCH, shuffle=True),
        val_dataloaders=DataLoader(architecture, batch_size=BATCH, shuffle=True),
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        default_root_dir=folder,  # checkpoints of the supernet
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    experiment = NasExperiment(DigitsSpace(), evaluator, DARTS(arc_learning_rate=0.02))
    experiment.config.experiment_working_directory = folder
    experiment.run()
    experiment.stop()
    return experiment.export_top_models(formatter="dict")[0]


def trained(sample, data, test, epochs):
    """Return the accuracy of the network of a sample, trained from scratch."""
    torch.manual_seed(SEED)
    with model_context(sample):
        network = DigitsSpace()
    train(network, data, epochs)
    return accuracy(network, test)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15, help="epochs of the search")
    parser.add_argument("--retrain-epochs", type=int, default=10, help="epochs of each network")
    parser.add_argument("--random", type=int, default=5, help="random networks beside it")
    parser.add_argument("--folder", default="search", help="folder for checkpoints and the log")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", module="pytorch_lightning")  # advice on loaders
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.set_num_threads(1)  # the networks are too small for more
    torch.manual_seed(SEED)
    weights, architecture, test = digits()
    sample = search(weights, architecture, arguments.epochs, arguments.folder)
    print("exported:", sample)

    draws = random.Random(SEED)
    samples = [DigitsSpace().random_sample(random_state=draws) for _ in range(arguments.random)]
    found = trained(sample, weights, test, arguments.retrain_epochs)
    others = [trained(one, weights, test, arguments.retrain_epochs) for one in samples]
    print(f"accuracy of the exported network: {found:.2f} %")
    print("accuracy of random networks:", ", ".join(f"{one:.2f} %" for one in sorted(others)))


if __name__ == "__main__":
    main()
