"""Checks of the arguments of ASHA and MOASHA, which depend on each other."""

import inspect
from typing import ClassVar

from nni.hpo.advisors.asha import ASHA, AsynchronousHalving
from nni.hpo.advisors.moasha import MOASHA
from nni.hpo.registry.validation import ClassArgsValidator


class ASHAArguments(ClassArgsValidator):
    """Refuses what the constructor of ASHA refuses; to build one costs nothing."""

    advisor: ClassVar[type[AsynchronousHalving]] = ASHA

    def validate_class_args(self, **kwargs: object) -> None:
        """See the base.

        Raises:
            ValueError: an argument is unknown or wrong.
        """
        name = self.advisor.algorithm
        known = inspect.signature(self.advisor).parameters
        unknown = kwargs.keys() - known.keys()
        if unknown:
            raise ValueError(
                f"classArgs of {name}: unknown argument {min(unknown)!r}; known: {', '.join(known)}"
            )
        try:
            self.advisor(**kwargs)  # type: ignore[arg-type] # the constructor checks them
        except ValueError as error:
            raise ValueError(f"classArgs of {name}: {error}") from error


class MOASHAArguments(ASHAArguments):
    """The same for MOASHA."""

    advisor = MOASHA
