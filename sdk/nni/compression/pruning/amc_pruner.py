"""Pruner whose agent learns how many input channels of each layer stay: AMC."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn

from nni.compression.base.arguments import check_count
from nni.compression.base.model_runs import eval_mode
from nni.compression.config.settings import ConfigListError
from nni.compression.pruning.amc.agent import Agent, AgentSettings, Transition
from nni.compression.pruning.amc.calibration import InputSamples, is_pointwise, refitted
from nni.compression.pruning.amc.channels import channel_sets, layer_costs
from nni.compression.pruning.amc.environment import STATE_SIZE, Environment, Limits
from nni.compression.pruning.amc.search_files import Episode, SearchFiles
from nni.compression.pruning.search_pruner import SearchPruner
from nni.compression.speedup.counter import count_flops_params
from nni.compression.speedup.groups import find_dependencies
from nni.compression.speedup.slots import Flags, Ids

_logger = logging.getLogger(__name__)

Reward = Literal["acc_reward", "acc_flops_reward"]

_SELECTION: Final = {
    "op_types",
    "op_names",
    "op_names_re",
    "op_partial_names",
    "exclude",
    "exclude_op_names",
    "exclude_op_names_re",
    "exclude_op_types",
}
_EPSILON: Final = 50000
_SEEDS: Final = 2**31
"""Number of seeds that are drawn from torch's generator."""


class AMCPruner(SearchPruner):
    """Pruner whose agent learns how many input channels of each layer stay.

    In an episode the agent decides layer by layer; the channels that are read with the smallest
    weights are masked, weights of Linear and 1x1 convolutions are fitted again by least squares,
    and the evaluator measures the model. Layers that read the same channels are decided together;
    depthwise convolutions follow. The best episode's masks and weights stay. The operations of the
    model never exceed `flops_ratio` of the original.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: Conv2d and Linear by `op_types`, `op_names` and the like, without ratios.
        evaluator: `(val_loader, model)`; returns the accuracy in percent.
        val_loader: iterable of batches: inputs, or a tuple that begins with them.
        suffix: end of the name of the output folder; None for `runN`, the next number.
        model_type: part of the name of the output folder.
        dataset: part of the name of the output folder.
        flops_ratio: part of the operations that stays at most, in (lbound, 1].
        lbound: smallest part of the channels of a layer that stays, in (0, 1).
        rbound: largest part of the channels of a layer that stays, in [lbound, 1].
        reward: `acc_reward`: the accuracy; `acc_flops_reward`: operations count as well.
        n_calibration_batches: batches that weights are fitted with, >= 1.
        n_points_per_layer: places of each sample that weights are fitted with, >= 1.
        channel_round: numbers of channels are rounded up to multiples of it, >= 1.
        hidden1: width of the first hidden layer of the agent's networks.
        hidden2: width of the second hidden layer.
        lr_c: learning rate of the critic.
        lr_a: learning rate of the actor.
        warmup: episodes of random actions.
        discount: weight of the value of the next state, in (0, 1].
        bsize: transitions of an update.
        rmsize: episodes that are remembered, >= 1.
        window_length: states that the agent sees at once; 1 is the only choice.
        tau: part of the networks that moves into their targets in an update, in (0, 1].
        init_delta: standard deviation of the noise after the warm-up.
        delta_decay: factor of it for each episode, in (0, 1].
        max_episode_length: largest number of decisions in an episode; not below the number of
            sets of layers that share channels, since an episode decides about each of them.
        output_dir: folder of the output folder; None for no files.
        debug: log every episode.
        train_episode: number of episodes, >= 1.
        epsilon: 50000 is the only choice; `delta_decay` sets how fast the exploration decays.
        seed: seed of the agent; None to draw one from torch's generator.

    Attributes:
        history: result of each episode.

    Raises:
        ConfigListError: the configuration breaks a rule, or has ratios.
        TypeError: `model` is no module or holds wrappers already, or `evaluator` is no function.
        ValueError: an argument is out of range.

    Source: He et al., AMC: AutoML for Model Compression and Acceleration on Mobile Devices, 2018.

    Departures: layers that share channels are found in the data flow, not from `model_type`. No
        events for TensorBoard are written; `history.jsonl` has the episodes.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import AMCPruner
        >>> _ = torch.manual_seed(0)
        >>> model = nn.Sequential(nn.Conv2d(1, 16, 1), nn.ReLU(), nn.Conv2d(16, 2, 1))
        >>> batches = [torch.rand(2, 1, 4, 4)]
        >>> def evaluator(val_loader, model):
        ...     return 100 - float(model(val_loader[0]).detach().abs().mean())
        >>> pruner = AMCPruner(
        ...     model,
        ...     [{"op_types": ["Conv2d"]}],
        ...     evaluator,
        ...     batches,
        ...     flops_ratio=0.5,
        ...     channel_round=2,
        ...     warmup=2,
        ...     train_episode=3,
        ...     output_dir=None,
        ... )
        >>> _, masks = pruner.compress()
        >>> int(masks["2"]["weight"][0].sum()) <= 8
        True
    """

    op_types = frozenset({"Conv2d", "Linear"})

    def __init__(  # noqa: PLR0913 - the signature of NNI 1.x
        self,
        model: nn.Module,
        config_list: Sequence[Mapping[str, object]],
        evaluator: Callable[[Any, nn.Module], float],
        val_loader: Iterable[Any],
        suffix: str | None = None,
        model_type: str = "mobilenet",
        dataset: str = "cifar10",
        flops_ratio: float = 0.5,
        lbound: float = 0.2,
        rbound: float = 1.0,
        reward: Reward = "acc_reward",
        n_calibration_batches: int = 60,
        n_points_per_layer: int = 10,
        channel_round: int = 8,
        hidden1: int = 300,
        hidden2: int = 300,
        lr_c: float = 1e-3,
        lr_a: float = 1e-4,
        warmup: int = 100,
        discount: float = 1.0,
        bsize: int = 64,
        rmsize: int = 100,
        window_length: int = 1,
        tau: float = 0.01,
        init_delta: float = 0.5,
        delta_decay: float = 0.99,
        max_episode_length: float = 1e9,
        output_dir: str | Path | None = "./logs",
        debug: bool = False,  # noqa: FBT001, FBT002 - as in NNI 1.x
        train_episode: int = 800,
        epsilon: float = _EPSILON,
        seed: int | None = None,
    ) -> None:
        """Check the arguments and wrap the modules."""
        if not callable(evaluator):
            raise TypeError(f"evaluator must be a function of loader and model, got {evaluator!r}")
        _check_bounds(flops_ratio, lbound, rbound)
        if reward not in {"acc_reward", "acc_flops_reward"}:
            raise ValueError(f"reward must be 'acc_reward' or 'acc_flops_reward', got {reward!r}")
        if window_length != 1:
            raise ValueError(f"window_length must be 1, got {window_length}")
        if epsilon != _EPSILON:
            raise ValueError(
                f"epsilon must be {_EPSILON}, got {epsilon}: the exploration decays by delta_decay "
                "after each episode; leave epsilon out and set delta_decay"
            )
        if not max_episode_length >= 1:
            raise ValueError(f"max_episode_length must be >= 1, got {max_episode_length}")
        for name, value in (
            ("n_calibration_batches", n_calibration_batches),
            ("n_points_per_layer", n_points_per_layer),
            ("channel_round", channel_round),
            ("rmsize", rmsize),
            ("train_episode", train_episode),
        ):
            check_count(name, value)
        self._agent_settings = AgentSettings(
            hidden1, hidden2, lr_c, lr_a, warmup, discount, bsize, tau, init_delta, delta_decay
        )
        self._limits = Limits(flops_ratio, lbound, rbound, channel_round)
        self._evaluate = evaluator
        self._batches = val_loader
        self._name = f"{model_type}_{dataset}_r{flops_ratio}_search", suffix
        self._reward_kind = reward
        self._calibration = n_calibration_batches, n_points_per_layer
        self._memory = rmsize
        self._directory = None if output_dir is None else Path(output_dir)
        self._level = logging.INFO if debug else logging.DEBUG
        self._episodes = train_episode
        self._longest_episode = max_episode_length
        self._seed = seed
        self.history: list[Episode] = []
        self._files: SearchFiles | None = None
        super().__init__(model, _with_ratio(config_list), granularity="in_channel")

    @property
    def output_folder(self) -> Path | None:
        """Return the folder of the files; None if none are written.

        Returns:
            None without `output_dir`, and before `compress`.
        """
        return None if self._files is None else self._files.folder

    def search(self) -> None:
        """Run all episodes; set masks and weights of the best one; write the files."""
        generator = torch.Generator().manual_seed(self._drawn_seed())
        environment, inputs = self._environment()
        self._check_length(len(environment.sets))
        samples = self._samples(generator)
        agent = Agent(
            STATE_SIZE,
            self._memory * len(environment.sets),
            self._limits.lower,
            self._limits.upper,
            self._agent_settings,
            generator,
        )
        self._files = None if self._directory is None else SearchFiles(self._directory, *self._name)
        self.history = []
        start = self.snapshot()
        best, best_state = -math.inf, start
        for number in range(self._episodes):
            self.restore(start)
            transitions = _decide(environment, agent, number)
            result = self._measured(environment, inputs, samples)
            agent.remember([replace(one, reward=result.reward) for one in transitions])
            if number >= self._agent_settings.warmup:
                for _ in transitions:
                    agent.learn()
            self._record(number, result)
            if result.reward > best:
                best, best_state = result.reward, self.snapshot()
        self.restore(best_state)
        self._write_best(agent)

    def _environment(self) -> tuple[Environment, dict[str, Ids]]:
        """Return the environment, and the units of the input channels of each layer."""
        try:
            return self._traced_environment(self.unwrap_model())
        finally:  # a model that cannot be traced is wrapped, too
            self.wrap_model()

    def _traced_environment(self, model: nn.Module) -> tuple[Environment, dict[str, Ids]]:
        batch = self._first_batch()
        dependencies = find_dependencies(model, batch)
        _, _, counted = count_flops_params(model, batch, verbose=False)
        flops = {one["name"]: int(one["flops"]) for one in counted}
        layers = layer_costs(model, dependencies, flops)
        weights = {name: one.parameter("weight") for name, one in self._wrappers.items()}
        sets = channel_sets(layers, set(self._wrappers), dependencies.frozen, weights)
        modules = {name: one.module for name, one in self._wrappers.items()}
        environment = Environment(modules, layers, sets, len(dependencies.frozen), self._limits)
        decided = {name for one in sets for name in one.layers}
        inputs = {
            one.channels.name: one.channels.input_units
            for one in layers
            if one.channels.name in decided
        }
        return environment, inputs

    def _check_length(self, decisions: int) -> None:
        if self._longest_episode < decisions:
            raise ValueError(
                f"max_episode_length must be at least {decisions}, the number of decisions about "
                f"this model, got {self._longest_episode}: raise it, leave it out, or configure "
                "fewer layers"
            )

    def _samples(self, generator: torch.Generator) -> InputSamples:
        """Run some batches in eval mode; return sampled inputs of 1x1 and Linear layers."""
        batches, points = self._calibration
        modules = {
            name: one.module for name, one in self._wrappers.items() if is_pointwise(one.module)
        }
        model = self.bound_model
        samples = InputSamples(modules, points, generator)
        with eval_mode(model):
            samples.collect(islice(self._batches, batches), lambda one: model(self._inputs_of(one)))
        return samples

    def _measured(
        self, environment: Environment, inputs: Mapping[str, Ids], samples: InputSamples
    ) -> Episode:
        """Prune the model as decided and evaluate it; return decisions, accuracy and reward."""
        kept = environment.kept()
        for name, units in inputs.items():
            self._prune(name, _flags(units, kept), samples.of(name))
        found = float(self._evaluate(self._batches, self.bound_model))
        accuracy = found if math.isfinite(found) else 0.0  # a model that diverged is worth nothing
        flops = environment.flops()
        if self._reward_kind == "acc_reward":
            reward = accuracy * 0.01
        else:
            reward = -(100 - accuracy) * 0.01 * math.log(flops)
        return Episode(tuple(environment.actions), accuracy, environment.flops_ratio(), reward)

    def _prune(self, name: str, kept: Tensor, points: Tensor | None) -> None:
        """Mask input channels of a layer, and fit what is left of its weight."""
        wrapper = self._wrappers[name]
        weight = wrapper.parameter("weight")
        shape = (1, -1, *(1,) * (weight.dim() - 2))
        before = wrapper.mask("weight")
        assert before is not None  # parameters have a mask from the start
        wrapper.set_mask("weight", before * kept.to(weight).reshape(shape))
        if points is not None and not bool(kept.all()):
            with torch.no_grad():
                weight.copy_(refitted(weight.flatten(1), points, kept).reshape(weight.shape))

    def _first_batch(self) -> Any:  # noqa: ANN401 - of the user
        for batch in self._batches:
            return self._inputs_of(batch)
        raise ValueError("val_loader must have a batch, got none")

    def _inputs_of(self, batch: object) -> Any:  # noqa: ANN401 - of the user
        inputs = batch[0] if isinstance(batch, tuple | list) else batch
        device = next(self.bound_model.parameters()).device
        return inputs.to(device) if isinstance(inputs, Tensor) else inputs

    def _drawn_seed(self) -> int:
        return int(torch.randint(_SEEDS, ())) if self._seed is None else self._seed

    def _record(self, number: int, result: Episode) -> None:
        self.history.append(result)
        _logger.log(self._level, "%s", result.text(number))
        if self._files is not None:
            self._files.add(number, result)

    def _write_best(self, agent: Agent) -> None:
        if self._files is not None:
            self._files.save_agent(agent)
            folder = self._files.folder
            self.export_model(folder / "best_model.pth", folder / "best_mask.pth")


def _decide(environment: Environment, agent: Agent, episode: int) -> list[Transition]:
    """Decide about all sets of channels, and return the steps without their reward."""
    state = environment.reset()
    found = []
    done = False
    while not done:
        wanted = agent.act(state.tolist(), episode)
        following, action, done = environment.step(wanted)
        found.append(Transition(state.tolist(), action, following.tolist(), 0.0, done))
        state = following
    return found


def _flags(units: Ids, kept: Flags) -> Tensor:
    """Return by input channel whether it stays."""
    return torch.tensor([bool(kept[unit]) if unit >= 0 else True for unit in units.tolist()])


def _check_bounds(flops_ratio: float, lbound: float, rbound: float) -> None:
    if not 0 < lbound < 1:
        raise ValueError(f"lbound must be in (0, 1), got {lbound}")
    if not lbound <= rbound <= 1:
        raise ValueError(f"rbound must be in [lbound, 1], got {rbound}")
    if not lbound < flops_ratio <= 1:
        raise ValueError(f"flops_ratio must be in (lbound, 1], got {flops_ratio}")


def _with_ratio(config_list: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return entries with a ratio of 0; raise ConfigListError for settings in them."""
    legacy = any({"exclude", "op_partial_names"} & set(entry) for entry in config_list)
    found = []
    for index, entry in enumerate(config_list):
        other = set(entry) - _SELECTION
        if other:
            raise ConfigListError(
                f"config_list[{index}]", f"has {min(other)}; the agent decides it: leave it out"
            )
        ratio = {} if entry.get("exclude") else {"sparsity" if legacy else "sparse_ratio": 0.0}
        found.append({**entry, **ratio})
    return found
