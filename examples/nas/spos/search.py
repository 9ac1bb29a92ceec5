"""Train a supernet with random paths, search it by evolution, and train the best network."""

import argparse
import logging
import warnings

import torch
from space import DigitsSpace
from training import BATCH, accuracy, digits, train

import nni
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.evaluator.pytorch import Classification, DataLoader
from nni.nas.experiment import NasExperiment
from nni.nas.oneshot.pytorch import recalibrate_batch_norm
from nni.nas.space import model_context
from nni.nas.strategy import RandomOneShot, RegularizedEvolution

SEED = 0


def trained_supernet(train_data, validation, epochs, folder):
    """Return a space whose weights were trained with a random path in each step."""
    evaluator = Classification(
        learning_rate=5e-3,
        num_classes=10,
        train_dataloaders=DataLoader(train_data, batch_size=BATCH, shuffle=True),
        val_dataloaders=DataLoader(validation, batch_size=BATCH),
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        default_root_dir=folder,  # checkpoints of the supernet
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    space = DigitsSpace()
    run(NasExperiment(space, evaluator, RandomOneShot()), folder)
    return space


def evolved(space, train_data, validation, models, folder):
    """Return the models that evolution has measured with inherited weights, the best first."""

    def evaluate(network):
        recalibrate_batch_norm(network, [train_data.tensors[0]])
        nni.report_final_result(accuracy(network, validation))

    strategy = RegularizedEvolution(
        population_size=20, sample_size=5, mutation_prob=0.25, seed=SEED
    )
    experiment = NasExperiment(space, FunctionalEvaluator(evaluate), strategy)
    experiment.config.execution_engine.max_model_count = models
    run(experiment, folder)
    return experiment.export_top_models(models)


def run(experiment, folder):
    experiment.config.experiment_working_directory = folder
    experiment.run()
    experiment.stop()


def retrained(sample, data, test, epochs):
    """Return the accuracy of the network of a sample, trained from scratch."""
    torch.manual_seed(SEED)
    with model_context(sample):
        network = DigitsSpace()
    train(network, data, epochs)
    return accuracy(network, test)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20, help="epochs of the supernet")
    parser.add_argument("--models", type=int, default=60, help="networks that evolution measures")
    parser.add_argument("--retrain-epochs", type=int, default=5, help="epochs of the last training")
    parser.add_argument("--folder", default="search", help="folder for checkpoints and logs")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", module="pytorch_lightning")  # advice on loaders
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.set_num_threads(1)  # the networks are too small for more
    torch.manual_seed(SEED)
    train_data, validation, test = digits()
    space = trained_supernet(train_data, validation, arguments.epochs, arguments.folder)
    models = evolved(space, train_data, validation, arguments.models, arguments.folder)
    print(f"{'network':<8}{'inherited %':>12}{'trained %':>11}  sample")
    for name, model in (("best", models[0]), ("worst", models[-1])):
        result = retrained(model.sample, train_data, test, arguments.retrain_epochs)
        print(f"{name:<8}{model.metric:>12.2f}{result:>11.2f}  {dict(model.sample)}")


if __name__ == "__main__":
    main()
