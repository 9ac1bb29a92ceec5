"""Search for learning rate, batch size and width of a tiny network that a Trainer trains."""

import sys

import torch
from transformers import Trainer, TrainingArguments

from nni.hpo import Choice, LogUniform, MedianstopAssessor
from nni.integrations import search_trainer

SPACE = {
    "learning_rate": LogUniform(1e-4, 0.1),
    "per_device_train_batch_size": Choice(8, 32),
    "width": Choice(4, 16),
}


class Rows(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        random = torch.Generator().manual_seed(seed)
        self.inputs = torch.randn(count, 4, generator=random)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        row = self.inputs[index]
        return {"inputs": row, "labels": (row[0] * row[1])[None]}


class Network(torch.nn.Module):
    def __init__(self, parameters):
        super().__init__()
        width = parameters["width"] if parameters else 4
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
        )

    def forward(self, inputs, labels):
        outputs = self.layers(inputs)
        return {"loss": torch.nn.functional.mse_loss(outputs, labels), "outputs": outputs}


def model_init(parameters):
    return Network(parameters)


def main(trials=8, epochs=5):
    arguments = TrainingArguments(
        "output",
        num_train_epochs=int(epochs),
        eval_strategy="epoch",
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(
        args=arguments,
        model_init=model_init,
        train_dataset=Rows(256, seed=0),
        eval_dataset=Rows(128, seed=1),
    )
    best = search_trainer(
        trainer,
        SPACE,
        n_trials=int(trials),
        assessor=MedianstopAssessor("minimize", start_step=2),
        tuner="TPE",
        seed=0,
    )
    for one in best.run_summary.trials:
        print(f"{one.id}: {one.status} after {len(one.intermediate)} epochs")
    print(f"best loss {best.objective:.3f} with {best.hyperparameters}")


if __name__ == "__main__":
    main(*sys.argv[1:])
