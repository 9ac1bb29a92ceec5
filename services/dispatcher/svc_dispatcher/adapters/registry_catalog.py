"""Catalog of the registered algorithms, from the library's registry."""

from collections.abc import Mapping
from typing import Any, Final, cast

from nni.hpo.registry import factory
from svc_dispatcher.ports import NamedAlgorithm

_SOURCES: Final = {"nni": "nni", "user": "User"}


class RegistryCatalog:
    """`AlgorithmCatalog` of NNI's built-in and registered algorithms."""

    def algorithms(self) -> list[NamedAlgorithm]:
        """Return all algorithms of NNI's registry: class, source, space types and lookahead."""
        return [
            NamedAlgorithm(
                name=entry.name,
                kind=entry.kind,
                class_name=entry.documented_path,
                source=_SOURCES[entry.source],
                space_types=entry.types if entry.kind == "tuner" else (),
                lookahead=entry.lookahead,
            )
            for entry in factory.algorithms()
        ]

    def validate(
        self,
        kind: str,
        name: str,
        class_args: dict[str, object],
        search_space: object,
        *,
        several_outcomes: bool = False,
    ) -> None:
        """Check an algorithm's arguments and search space by NNI's registry; raise ValueError."""
        factory.validate(
            _kind(kind), name, class_args, search_space, several_outcomes=several_outcomes
        )

    def check_replaceable(self, kind: str, name: str, class_args: dict[str, object]) -> None:
        """Raise ValueError unless the algorithm allows another search space while it runs."""
        factory.check_replaceable(_kind(kind), name, class_args)

    def check_hand_over(self, present: str, successor: str) -> None:
        """Raise ValueError if a tuner cannot take over another's trials, by NNI's registry."""
        factory.check_hand_over(present, successor)

    def takes_assessor(self, tuner: str) -> bool:
        """Return whether an assessor may stop the tuner's trials; true for an unknown name."""
        return factory.takes_assessor(tuner)

    def optimize_mode(self, kind: str, name: str, class_args: dict[str, object]) -> str:
        """Return `optimize_mode` of the arguments, else the algorithm's default, else empty."""
        defaults: Mapping[str, Any] = factory.find(_kind(kind), name).defaults
        return str(class_args.get("optimize_mode") or defaults.get("optimize_mode", ""))


def _kind(kind: str) -> factory.Kind:
    return cast("factory.Kind", kind)
