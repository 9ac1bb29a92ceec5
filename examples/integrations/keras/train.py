"""Trial: train a small network for handwritten digits with Keras on torch, and report every epoch.

Alone it trains with the defaults below; `nnictl create --config config.yml` tunes them.
"""

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported

import keras
from sklearn.datasets import load_digits

import nni
from nni.integrations import KerasCallback


def main(epochs=8):
    parameters = {"width": 32, "rate": 0.003, **nni.get_next_parameter()}
    keras.utils.set_random_seed(0)
    table = load_digits()
    images, labels = table.data.astype("float32") / 16, table.target
    model = keras.Sequential(
        [keras.layers.Dense(parameters["width"], activation="relu"), keras.layers.Dense(10)]
    )
    model.compile(
        keras.optimizers.Adam(parameters["rate"]),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    callback = KerasCallback("val_accuracy", checkpoints=True)
    model.fit(
        images[:1200],
        labels[:1200],
        validation_data=(images[1200:], labels[1200:]),
        epochs=epochs,
        # A trial whose machine is taken away goes on from its last epoch.
        initial_epoch=callback.initial_epoch,
        callbacks=[callback],
        verbose=0,
    )
    print(f"accuracy after {epochs} epochs: {callback.result:.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
