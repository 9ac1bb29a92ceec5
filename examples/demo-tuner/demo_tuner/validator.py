"""Validation of the tuner's arguments, before an experiment starts."""

from typing import Any

from nni import ClassArgsValidator


class MyClassArgsValidator(ClassArgsValidator):
    """Validator of the only argument."""

    def validate_class_args(self, **kwargs: Any) -> None:
        """Raise ValueError for an argument that is unknown or wrong."""
        for key, value in kwargs.items():
            if key != "optimize_mode":
                raise ValueError(f"unknown argument {key!r}; known: optimize_mode")
            self.choices(key, "maximize", "minimize")(value)
