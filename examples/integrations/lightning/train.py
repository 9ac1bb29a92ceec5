"""Trial: train a small network for handwritten digits with Lightning, and report every epoch.

Alone it trains with the defaults below; `nnictl create --config config.yml` tunes them.
"""

import sys

import pytorch_lightning
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import nni
from nni.integrations import LightningCallback


class Digits(pytorch_lightning.LightningModule):
    def __init__(self, width, rate):
        super().__init__()
        self.rate = rate
        self.network = torch.nn.Sequential(
            torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)
        )

    def training_step(self, batch):
        return torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])

    def validation_step(self, batch):
        right = self.network(batch[0]).argmax(1) == batch[1]
        self.log("val_accuracy", right.float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.rate)


def loaders():
    table = load_digits()
    images = torch.tensor(table.data / 16, dtype=torch.float32)
    labels = torch.tensor(table.target)
    training = TensorDataset(images[:1200], labels[:1200])
    validation = TensorDataset(images[1200:], labels[1200:])
    return DataLoader(training, 64, shuffle=True), DataLoader(validation, 1000)


def main(epochs=8):
    parameters = {"width": 32, "rate": 0.003, **nni.get_next_parameter()}
    pytorch_lightning.seed_everything(0, verbose=False)
    callback = LightningCallback("val_accuracy", checkpoints=True)
    trainer = pytorch_lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        callbacks=[callback],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module = Digits(parameters["width"], parameters["rate"])
    # A trial whose machine is taken away goes on from its last epoch.
    trainer.fit(module, *loaders(), ckpt_path=callback.checkpoint_path)
    print(f"accuracy after {trainer.current_epoch} epochs: {callback.result:.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
