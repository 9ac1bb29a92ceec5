"""Conformance suite of quantizers; a subclass builds the quantizer under test.

Import it from this module: `nni.testing` itself does not load torch.
"""

import copy
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nni.compression.base.target_quantizer import TargetQuantizer
from nni.compression.quantization.quantizer import Quantizer

Entry = dict[str, object]

_SEED = 0


class QuantizerConformance(ABC):
    """Tests that every `nni.compression.base.Quantizer` must pass; subclass it in a test module.

    The model is a small convolutional network for `(n, 3, 8, 8)`; `make` may use another one by
    overriding `make_model` and `make_input`.

    Examples:
        >>> from nni.compression.quantization import QATQuantizer
        >>> class TestMyQuantizer(QuantizerConformance):
        ...     def make(self, model, config_list):
        ...         return QATQuantizer(model, config_list)
        >>> TestMyQuantizer().test_eval_mode_changes_nothing()
    """

    op_types: ClassVar[tuple[str, ...]] = ("Conv2d", "Linear")
    """Types of modules that the quantizer quantizes."""
    target_names: ClassVar[tuple[str, ...]] = ("_input_", "weight", "_output_")
    """Targets that it quantizes."""
    quant_dtype: ClassVar[str] = "int4"
    """Integer type that is asked for."""

    @abstractmethod
    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        """Return a new quantizer of a model, with an evaluator if it needs one.

        Args:
            model: what `make_model` returns.
            config_list: the configuration.
        """

    def compress(self, quantizer: Quantizer) -> None:
        """Run the model once, then `compress` if the quantizer has it; override for other steps.

        Args:
            quantizer: what `make` returns.
        """
        quantizer.bound_model(self.make_input())
        compress: Any = getattr(quantizer, "compress", None)
        if compress is not None:
            compress()

    def calibration_of(self, quantizer: Quantizer) -> Mapping[str, Mapping[str, object]]:
        """Return the calibration that `export_model` is to save; default: `get_calibration_config`.

        Args:
            quantizer: one that has run.
        """
        return quantizer.get_calibration_config()

    def make_model(self) -> nn.Module:
        """Return a new model, always with the same parameters."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            return nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1),
                nn.BatchNorm2d(8),
                nn.ReLU(),
                nn.Conv2d(8, 12, 3, bias=False),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(12 * 36, 10),
            )

    def make_input(self) -> Tensor:
        """Return a batch of inputs, always the same."""
        generator = torch.Generator().manual_seed(_SEED)
        return torch.randn(4, 3, 8, 8, generator=generator)

    def config_list(self) -> list[Entry]:
        """Return the configuration: the targets of the types that the quantizer quantizes."""
        return [
            {
                "op_types": list(self.op_types),
                "target_names": list(self.target_names),
                "quant_dtype": self.quant_dtype,
            }
        ]

    def test_targets_take_no_more_values_than_their_bits_allow(self) -> None:
        """Each quantized tensor holds at most `2 ** bits` values."""
        quantizer = self._compressed()
        seen: dict[str, Tensor] = {}
        for place, one in quantizer.target_quantizers():
            if one.settings.apply_method != "bypass":
                one.register_forward_hook(_keep(seen, place.where))

        quantizer.bound_model(self.make_input())

        assert seen
        for place, one in quantizer.target_quantizers():
            if place.where in seen and one.scale.dim() == 0:
                assert len(set(seen[place.where].flatten().tolist())) <= 2**one.settings.bits

    def test_gradients_reach_the_parameters(self) -> None:
        """All gradients are finite, and some of each quantized weight are not zero."""
        quantizer = self._compressed()
        quantizer.bound_model.train()

        quantizer.bound_model(self.make_input()).square().sum().backward()

        for wrapper in quantizer.get_modules_wrapper().values():
            if "weight" in wrapper.quantizers:
                gradient = wrapper.parameter("weight").grad
                assert gradient is not None
                assert gradient.any()
        gradients = [one.grad for one in quantizer.bound_model.parameters()]
        assert all(one is None or bool(one.isfinite().all()) for one in gradients)

    def test_the_same_model_and_seed_give_the_same_output(self) -> None:
        """Two runs with the same seed agree in every element."""
        one, other = self._compressed(), self._compressed()

        assert torch.equal(self._output(one.bound_model), self._output(other.bound_model))

    def test_wrapping_and_unwrapping_leaves_the_model(self) -> None:
        """Modules, parameters and buffers are the same objects, bit for bit."""
        model = self.make_model().eval()
        before = copy.deepcopy(model.state_dict())
        modules, parameters = list(model.named_modules()), list(model.parameters())

        quantizer = self.make(model, self.config_list())
        quantizer.wrap_model()
        quantizer.unwrap_model()

        assert list(model.named_modules()) == modules
        assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
        after = model.state_dict()
        assert list(after) == list(before)
        assert all(torch.equal(after[key], value) for key, value in before.items())

    def test_the_configuration_is_not_changed(self) -> None:
        """The list of the caller stays as it was."""
        config_list = self.config_list()

        self.make(self.make_model().eval(), config_list)

        assert config_list == self.config_list()

    def test_eval_mode_changes_nothing(self) -> None:
        """A run in eval mode leaves parameters, scales and statistics as they are."""
        model = self._compressed().bound_model.eval()
        before = copy.deepcopy(model.state_dict())

        model(self.make_input() * 3)

        assert all(torch.equal(model.state_dict()[key], one) for key, one in before.items())

    def test_the_state_survives_saving_and_loading(self) -> None:
        """The state dict of the wrapped model restores the output in a new quantizer."""
        model = self._compressed().bound_model
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)

        other = self._compressed().bound_model
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.mul_(2)
        other.load_state_dict(torch.load(file, weights_only=True))

        assert torch.equal(self._output(other), self._output(model))

    def test_a_copy_of_the_model_computes_the_same(self) -> None:
        """A deep copy of the wrapped model has the same output."""
        model = self._compressed().bound_model

        assert torch.equal(self._output(copy.deepcopy(model)), self._output(model))

    def test_a_replica_changes_the_state_of_the_model(self) -> None:
        """Statistics change in place: what a replica of `DataParallel` observes is not lost."""
        quantizer = self._compressed()
        quantizer.bound_model.train()
        with torch.no_grad():
            quantizer.bound_model(self.make_input())

            for _, one in quantizer.target_quantizers():
                alone = copy.deepcopy(one)
                value = torch.linspace(-9, 9, 24, device=one.scale.device).reshape(2, 3, 2, 2)
                if one.scale.dim() == 0:
                    alone(value)
                    _replica(one)(value)
                assert all(map(torch.equal, one.buffers(), alone.buffers()))

    def test_the_calibration_names_every_target_in_numbers(self) -> None:
        """The calibration survives JSON, and has the configured bits of each target."""
        quantizer = self._compressed()

        calibration = quantizer.get_calibration_config()

        assert json.loads(json.dumps(calibration)) == calibration
        for place, one in quantizer.target_quantizers():
            if one.settings.apply_method != "bypass":
                found = calibration[place.module_name][place.target]
                assert found["quant_bits"] == one.settings.bits

    def test_the_export_is_a_float_model(self, tmp_path: Path) -> None:
        """The saved state dict has the keys of the original model and loads into it."""
        quantizer = self._compressed()
        quantizer.export_model(tmp_path / "model.pth", tmp_path / "calibration.pth")

        saved = torch.load(tmp_path / "model.pth", weights_only=True)
        calibration = torch.load(tmp_path / "calibration.pth", weights_only=True)

        assert list(saved) == list(self.make_model().state_dict())
        assert calibration == self.calibration_of(quantizer)
        assert not quantizer.is_wrapped

    def _compressed(self) -> Quantizer:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            quantizer = self.make(self.make_model().eval(), self.config_list())
            quantizer.bound_model.train(self.trains)
            self.compress(quantizer)
        return quantizer

    trains: ClassVar[bool] = True
    """Whether the model is in training mode when it is compressed."""

    def _output(self, model: nn.Module) -> Tensor:
        found: Tensor = model.eval()(self.make_input())
        return found


def _keep(seen: dict[str, Tensor], name: str) -> Any:  # noqa: ANN401 - a hook of torch
    def hook(_module: object, _args: object, output: Tensor) -> None:
        seen[name] = output.detach()

    return hook


def _replica(quantizer: TargetQuantizer) -> nn.Module:
    """Return a replica of a quantizer as `DataParallel` makes it for the first device."""
    replica: nn.Module = quantizer._replicate_for_data_parallel()  # type: ignore[no-untyped-call]  # noqa: SLF001 - torch offers no public way on a CPU
    for name, parameter in quantizer.named_parameters(recurse=False):
        object.__setattr__(replica, name, parameter)
    return replica
