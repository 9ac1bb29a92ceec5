"""Catalog of the registered algorithms, from the library's registry."""

from collections.abc import Mapping
from typing import Any, Final, cast

from nni.hpo.registry import factory
from svc_dispatcher.ports import NamedAlgorithm

_SOURCES: Final = {"nni": "nni", "user": "User"}


class RegistryCatalog:
    """`AlgorithmCatalog` of `nni.hpo.registry.factory`."""

    def algorithms(self) -> list[NamedAlgorithm]:
        """See `AlgorithmCatalog.algorithms`."""
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
        """See `AlgorithmCatalog.validate`."""
        factory.validate(
            _kind(kind), name, class_args, search_space, several_outcomes=several_outcomes
        )

    def check_replaceable(self, kind: str, name: str, class_args: dict[str, object]) -> None:
        """See `AlgorithmCatalog.check_replaceable`."""
        factory.check_replaceable(_kind(kind), name, class_args)

    def takes_assessor(self, tuner: str) -> bool:
        """See `AlgorithmCatalog.takes_assessor`."""
        return factory.takes_assessor(tuner)

    def optimize_mode(self, kind: str, name: str, class_args: dict[str, object]) -> str:
        """See `AlgorithmCatalog.optimize_mode`."""
        defaults: Mapping[str, Any] = factory.find(_kind(kind), name).defaults
        return str(class_args.get("optimize_mode") or defaults.get("optimize_mode", ""))


def _kind(kind: str) -> factory.Kind:
    return cast("factory.Kind", kind)
