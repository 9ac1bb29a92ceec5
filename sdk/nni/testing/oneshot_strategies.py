"""Conformance suite of one-shot strategies; a subclass builds the strategy under test.

Import it from this module: `nni.testing` itself does not load torch.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from nni.mutable import Sample
from nni.nas.evaluator.pytorch import DataLoader, Lightning, LightningModule, Trainer
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.nn.pytorch import InputChoice, LayerChoice, ModelSpace, Repeat
from nni.nas.oneshot.pytorch.supernet import is_supernet
from nni.nas.space import RawFormatModelSpace
from nni.nas.strategy.oneshot import OneShotStrategy

_BATCH = 8
_SAMPLES = 32


class ZeroLayer(nn.Module):
    """Layer that returns zeros, which fit nothing."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return zeros of the shape of the output of a linear layer."""
        return inputs[:, :1] * 0


class BranchSpace(ModelSpace):
    """Space of two branches, of which `line` fits the data and `zero` cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = LayerChoice({"zero": ZeroLayer(), "line": nn.Linear(2, 1)}, label="branch")

    def forward(self, inputs: Tensor) -> Any:  # noqa: ANN401 - modules return anything
        """Return the output of the branch."""
        return self.branch(inputs)


class ChainSpace(ModelSpace):
    """Space with a choice of layers, of inputs and of a depth."""

    def __init__(self) -> None:
        super().__init__()
        self.first = LayerChoice([nn.Linear(2, 4), nn.Linear(2, 4, bias=False)], label="first")
        self.blocks = Repeat(lambda _: nn.Linear(4, 4), (1, 2), label="depth")
        self.skip = InputChoice(2, 1, label="skip")
        self.last = nn.Linear(4, 1)

    def forward(self, inputs: Tensor) -> Any:  # noqa: ANN401 - modules return anything
        """Return the output of the last layer."""
        first = self.first(inputs)
        return self.last(self.skip([first, self.blocks(first)]))


class LineModule(LightningModule):
    """Lightning module of a regression by SGD, whose metric `default` is the negative loss."""

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:  # noqa: ANN401 - of Lightning
        """Return the loss of a batch."""
        del batch_idx
        return nn.functional.mse_loss(self.model(batch[0]), batch[1])

    def validation_step(self, batch: Any, batch_idx: int) -> None:  # noqa: ANN401 - of Lightning
        """Log the metric of a batch."""
        self.log("default", -self.training_step(batch, batch_idx))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer of the network."""
        return torch.optim.SGD(self.parameters(), 0.1)


class OneShotStrategyConformance(ABC):
    """Tests that every `OneShotStrategy` must pass; subclass it in a test module.

    Examples:
        >>> from nni.nas.strategy.oneshot import DARTS
        >>> class TestMyStrategy(OneShotStrategyConformance):
        ...     def make(self):
        ...         return DARTS(arc_learning_rate=0.1)
        >>> TestMyStrategy().test_space_becomes_a_supernet_in_place()
    """

    epochs: ClassVar[int] = 20
    """Epochs in which the strategy must find the better branch."""
    prefers: ClassVar[bool] = True
    """Whether the strategy exports an architecture that it has found to be better."""
    seeds: ClassVar[tuple[int, ...]] = (0, 1, 2)
    """Seeds with which it must find the better branch."""

    @abstractmethod
    def make(self) -> OneShotStrategy:
        """Return a new strategy, with learning rates for a few hundred small steps."""

    def evaluator(self, epochs: int, **trainer: Any) -> Lightning:  # noqa: ANN401 - of the trainer
        """Return a quiet evaluator on the CPU that fits a line.

        Args:
            epochs: epochs of the training.
            **trainer: further arguments of the trainer.
        """
        quiet: dict[str, Any] = {
            "accelerator": "cpu",
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
        }
        return Lightning(
            LineModule(),
            Trainer(max_epochs=epochs, **{**quiet, **trainer}),
            _line_data(0),
            _line_data(1),
        )

    def searched(
        self,
        space: ModelSpace,
        epochs: int,
        seed: int = 0,
        **trainer: Any,  # noqa: ANN401 - of the trainer
    ) -> OneShotStrategy:
        """Search a space from random initial weights; return the strategy.

        Args:
            space: new space.
            epochs: epochs of the training.
            seed: of torch.
            **trainer: further arguments of the trainer.
        """
        with torch.random.fork_rng(devices=[]), quiet_lightning():
            torch.manual_seed(seed)
            for value in space.parameters():
                nn.init.uniform_(value, -0.5, 0.5)
            strategy = self.make()
            executable = RawFormatModelSpace(space, self.evaluator(epochs, **trainer))
            strategy(executable, SequentialExecutionEngine())
        return strategy

    def exported(self, strategy: OneShotStrategy) -> Sample:
        """Return the sample of the model that a strategy lists.

        Args:
            strategy: strategy that has run.
        """
        with quiet_lightning():
            (model,) = strategy.list_models(limit=1)
        assert model.sample is not None
        return model.sample

    def test_space_becomes_a_supernet_in_place(self) -> None:
        """The conversion returns the space itself, marked as a supernet."""
        space = ChainSpace()

        mutated = self.make().mutate_model(space)

        assert mutated is space
        assert is_supernet(space)

    def test_exported_sample_is_contained_in_the_space(self) -> None:
        """A new space contains the exported sample."""
        strategy = self.searched(ChainSpace(), 1)

        assert ChainSpace().contains(self.exported(strategy))

    def test_search_repeats_with_the_seed(self) -> None:
        """Two searches with one seed end with equal weights."""
        first, second = (self.searched(ChainSpace(), 2) for _ in range(2))

        ours, theirs = (one.supernet.state_dict() for one in (first, second))
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)

    def test_frozen_network_keeps_the_weights(self) -> None:
        """A network frozen from the supernet has its weights, bit by bit."""
        strategy = self.searched(BranchSpace(), 1)
        line = strategy.supernet.branch["line"]

        frozen = strategy.supernet.freeze({"branch": "line"})

        assert torch.equal(frozen.branch.weight, line.weight)
        inputs = torch.ones(1, 2)
        assert torch.equal(frozen(inputs), line(inputs))

    def test_weights_are_trained(self) -> None:
        """The search trains the branch that can be trained."""
        strategy = self.searched(BranchSpace(), 5)

        frozen = strategy.supernet.freeze({"branch": "line"})

        (inputs, targets) = next(iter(_line_data(1)))
        # The line is y = a + b; before the training the loss is about 2.
        assert nn.functional.mse_loss(frozen(inputs), targets).item() < 1.0

    def test_better_branch_is_exported(self) -> None:
        """The branch that fits the data is exported for each seed."""
        if self.prefers:
            for seed in self.seeds:
                strategy = self.searched(BranchSpace(), self.epochs, seed)
                assert self.exported(strategy) == {"branch": "line"}

    def test_search_continues_from_the_checkpoint_of_the_state(self, tmp_path: Path) -> None:
        """The state names a checkpoint from which a new strategy continues."""
        arguments: dict[str, Any] = {
            "enable_checkpointing": True,
            "default_root_dir": str(tmp_path),
        }
        state = self.searched(BranchSpace(), 1, **arguments).state_dict()
        strategy = self.make()

        with torch.random.fork_rng(devices=[]), quiet_lightning():
            executable = RawFormatModelSpace(BranchSpace(), self.evaluator(2))
            strategy.initialize(executable, SequentialExecutionEngine())
            strategy.load_state_dict(state)
            strategy.run()

        assert Path(state["ckpt_path"]).is_file()
        assert strategy.oneshot_module.current_epoch == 2  # noqa: PLR2004 - the first was not repeated

    def test_second_conversion_is_refused(self) -> None:
        """A supernet is not converted again."""
        space = BranchSpace()
        self.make().mutate_model(space)

        refusal = ""
        try:
            self.make().mutate_model(space)
        except RuntimeError as error:
            refusal = str(error)

        assert "supernet already" in refusal


def _line_data(seed: int) -> Any:  # noqa: ANN401 - traced loader
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(_SAMPLES, 2, generator=generator)
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=_BATCH)


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Ignore all warnings in the block: Lightning's hints on loaders and loggers are some.

    Yields:
        Once.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
