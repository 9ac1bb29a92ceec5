"""Adaptation of modules whose own code holds sizes.

Integer attributes that equal a size which has changed, such as `num_heads`, get the new size. Where
that is not enough, the sizes in single calls of the forward are replaced (`SizeAdapter`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from nni.compression.speedup.following import changed_sizes
from nni.compression.speedup.groups import Dependencies
from nni.compression.speedup.removal import Undo
from nni.compression.speedup.size_arguments import Change, SizeAdapter, SizedCall
from nni.compression.speedup.slots import Flags


@dataclass
class Adaptation:
    """Reversible changes to attributes and calls of modules in one attempt of a removal."""

    model: nn.Module
    dependencies: Dependencies
    removed: Flags
    stages: dict[str, int] = field(default_factory=dict)
    """By module: 1 after its attributes were set, 2 after its calls were adapted."""
    _undo: dict[str, Undo] = field(default_factory=dict)
    _handles: dict[str, list[Any]] = field(default_factory=dict)
    _adapters: dict[str, SizeAdapter] = field(default_factory=dict)

    def advance(self, path: str) -> bool:
        """Adapt attributes, or next calls, of a module and its class; return whether it changed.

        Args:
            path: Path of the module that does not run.

        Returns:
            Whether anything was changed for this module.
        """
        stage = self.stages.get(path, 0)
        kind = type(self.model.get_submodule(path))
        peers = [
            name
            for name, module in self.model.named_modules()
            if type(module) is kind and self.stages.get(name, 0) == stage
        ]
        changed = False
        while not changed and stage <= 1:
            for name in peers:
                self.restore(name)
                self.stages[name] = stage + 1
                done = self._set_attributes(name) if stage == 0 else self._adapt_calls(name)
                changed = changed or (done and name == path)
            stage += 1
        return changed

    def escalate(self) -> bool:
        """Adapt more where the smaller model runs but is another function; return whether any was.

        Calls are adapted instead of attributes; without any, modules whose calls have new sizes are
        adapted although they run, as `(4, -1)` fits any multiple of four.

        Returns:
            Whether there was anything to adapt.
        """
        paths = [path for path, stage in self.stages.items() if stage == 1 and path in self._undo]
        found = False
        for path in paths:
            if self.stages[path] == 1:  # advancing one module advances others of its class
                found = self.advance(path) or found
        if found:
            return True
        for path in self._resized_modules():
            if self.stages.get(path, 0) == 0:
                found = self.advance(path) or found
        return found

    def _resized_modules(self) -> list[str]:
        """Return the modules with calls whose outputs shrink."""
        return list(
            dict.fromkeys(
                call.modules[-1] if call.modules else ""
                for call in self.dependencies.graph.calls
                for output in call.outputs
                if changed_sizes(self.dependencies, self.removed, output)
            )
        )

    def changes(self, undo: Undo) -> dict[str, dict[str, Any]]:
        """Return the attributes, other than tensors, that this adaptation and a removal changed.

        Args:
            undo: Record of the removal.

        Returns:
            JSON values by path of the module.
        """
        attributes = list(undo.attributes)
        for own in self._undo.values():
            attributes += own.attributes
        return module_changes(self.model, attributes, self._adapters)

    def restore(self, path: str) -> None:
        """Reverse the changes to a module."""
        if path in self._undo:
            self._undo.pop(path).restore()
        self._adapters.pop(path, None)
        for handle in self._handles.pop(path, []):
            handle.remove()

    def restore_all(self) -> None:
        """Reverse all changes."""
        for path in [*self._undo, *self._handles]:
            self.restore(path)

    def _set_attributes(self, path: str) -> bool:
        """Set integer attributes that equal an old size to the new one; return whether any."""
        module = self.model.get_submodule(path)
        sizes = self._size_changes(path)
        undo = Undo()
        for name, value in list(vars(module).items()):
            whole = isinstance(value, int) and not isinstance(value, bool)
            if whole and not name.startswith("_") and value in sizes:
                undo.assign(module, name, sizes[value])
        if undo.attributes:
            self._undo[path] = undo
        return bool(undo.attributes)

    def _size_changes(self, path: str) -> dict[int, int]:
        """Return the new size by old size in the operations of a module, without ambiguous ones."""
        pairs: dict[int, set[int]] = {}
        graph = self.dependencies.graph
        for node in graph.nodes:
            if node.module != path:
                continue
            for value in [*node.inputs(), *node.outputs]:
                shape = graph.values[value].shape
                new = changed_sizes(self.dependencies, self.removed, value)
                for axis, size in enumerate(shape):
                    if axis in new:
                        pairs.setdefault(size, set()).add(new[axis])
        return {old: min(new) for old, new in pairs.items() if len(new) == 1}

    def _adapt_calls(self, path: str) -> bool:
        """Replace the sizes in a module's calls, if all its runs agree; return whether replaced."""
        graph = self.dependencies.graph
        calls = [one for one in graph.calls if path in one.modules]
        count, rest = divmod(len(calls), max(graph.runs.get(path, 0), 1))
        if rest:
            return False
        runs = [
            self._call_changes(path, calls[first : first + count])
            for first in range(0, len(calls), max(count, 1))
        ]
        if not runs or not runs[0] or any(one != runs[0] for one in runs):
            return False
        adapter = SizeAdapter(runs[0])
        self._adapters[path] = adapter
        self._handles[path] = adapter.attach(self.model.get_submodule(path))
        return True

    def _call_changes(
        self, path: str, calls: Sequence[SizedCall]
    ) -> dict[int, list[dict[int, Change]]]:
        """Return the new sizes of the calls of one run, by their place."""
        changes = {}
        for place, call in enumerate(calls):
            shapes = self._shape_changes(call)
            if call.modules[-1] == path and any(shapes):
                changes[place] = shapes
        return changes

    def _shape_changes(self, call: SizedCall) -> list[dict[int, Change]]:
        """Return the new sizes of the outputs of a call, or the new bounds of its slices."""
        if call.source is None:
            return [
                dict(changed_sizes(self.dependencies, self.removed, one)) for one in call.outputs
            ]
        found: dict[int, Change] = {}
        for block in self.dependencies.value_blocks.get(call.source, []):
            kept = ~self.removed[self.dependencies.roots[block.flat()]]
            one = call.slices[block.axis] if call.slices else slice(None)
            if kept.all() or one == slice(None) or one.step not in {None, 1}:
                continue
            start, end, _ = one.indices(kept.shape[1])
            bounds = [start, max(start, end)]
            rows = {tuple(int(row[:bound].sum()) for bound in bounds) for row in kept}
            if len(rows) == 1:
                found[block.axis] = list(*rows)
        return [found]


def module_changes(
    model: nn.Module, attributes: list[tuple[nn.Module, str, Any]], calls: Mapping[str, SizeAdapter]
) -> dict[str, dict[str, Any]]:
    """Return the attributes, other than tensors, that a removal changed: JSON by module path."""
    paths = {id(module): name for name, module in model.named_modules()}
    found: dict[str, dict[str, Any]] = {}
    for module, name, _ in attributes:
        value = getattr(module, name)
        entry = found.setdefault(paths[id(module)], {})
        if name == "__class__":
            entry["class"] = value.__name__
        elif not isinstance(value, Tensor):
            entry.setdefault("attributes", {})[name] = value
    for path, adapter in calls.items():
        found.setdefault(path, {})["calls"] = {
            str(place): [{str(axis): size for axis, size in one.items()} for one in shapes]
            for place, shapes in adapter.changes.items()
        }
    return found
