"""Plan of a distillation: the settings of every compared output, from a configuration list."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from nni.compression.config.distillation_settings import (
    AUTO,
    DISTILLATION_KEYS,
    DistillationSettings,
    check_distillation_settings,
    distillation_settings,
)
from nni.compression.config.entries import check_entry, check_list, shortcuts
from nni.compression.config.selection import ModuleInfo, select
from nni.compression.config.settings import ConfigListError

_logger = logging.getLogger(__name__)

Entry = Mapping[str, object]
DistillationPlan = dict[str, dict[str, DistillationSettings]]
"""Settings by module name of the student and target name; links name modules of the teacher."""

_OUTPUT: Final = "_output_"


def distillation_plan(
    config_list: Sequence[Entry],
    student: Mapping[str, ModuleInfo],
    teacher: Mapping[str, ModuleInfo],
) -> DistillationPlan:
    """Return the settings of selected outputs by student module; of two entries the first wins.

    An output is configured by the first entry that selects it.

    Args:
        config_list: entries; not changed.
        student: modules of the student by dotted name, without the root, in the model's order.
        teacher: modules of the teacher by dotted name, without the root.

    Returns:
        Settings by module name and target name, in the order of the student, with links resolved;
        empty, with a warning in the log, if nothing is selected.

    Raises:
        ConfigListError: the list breaks a rule, or a link names no module of the teacher.

    Examples:
        >>> modules = {"fc": ModuleInfo("Linear", frozenset())}
        >>> distillation_plan([{"op_names": ["fc"], "lambda": 0.5}], modules, modules)
        {'fc': {'_output_': DistillationSettings(weight=0.5, link=('fc',), apply_method='mse')}}
    """
    check_list(config_list)
    found: DistillationPlan = {}
    for index, entry in enumerate(config_list):
        where = f"config_list[{index}]"
        check_entry(entry, where, DISTILLATION_KEYS, check_distillation_settings)
        for name in select(entry, student, where):
            targets = found.setdefault(name, {})
            for target, settings in _targets(entry, where):
                link = _resolved(settings.link, name, teacher, where)
                targets.setdefault(target, replace(settings, link=link))
    if not found:
        _logger.warning("config_list selects no module of the student")
    return {name: found[name] for name in student if name in found}


def _targets(entry: Entry, where: str) -> Iterator[tuple[str, DistillationSettings]]:
    per_target = cast("Mapping[str, Entry]", entry.get("target_settings") or {})
    names = cast("Sequence[str]", entry.get("target_names") or tuple(per_target) or (_OUTPUT,))
    for target in dict.fromkeys(names):
        if not target.startswith(_OUTPUT):
            raise ConfigListError(
                where, f"has the target {target!r}; a distillation compares outputs: use _output_"
            )
        values = {**shortcuts(entry, DISTILLATION_KEYS), **per_target.get(target, {})}
        yield _named(target), distillation_settings(values)


def _named(target: str) -> str:
    """Return a target's canonical name: `_output_` for `_output_0`, any other unchanged."""
    return _OUTPUT if target == f"{_OUTPUT}0" else target


def _resolved(
    link: Sequence[str], name: str, teacher: Mapping[str, ModuleInfo], where: str
) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(name if one == AUTO else one for one in link))
    for one in found:
        if one not in teacher:
            raise ConfigListError(
                f"{where}.link",
                f"links {name} of the student to {one!r}, which the teacher lacks; give the name "
                "of a module of the teacher",
            )
    return found
