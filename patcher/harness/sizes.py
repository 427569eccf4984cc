"""The probes vary-batch and vary-sequence: what other sizes cost, and whether marks on dimensions help."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo
import torch._dynamo.decorators
import torch.utils.weak

from .failures import CaseError, UnsuitedError
from .leaves import leaves
from .running_case import Case, run_step, sizes_that_work
from .trials import Json, Lab, Trial, compiles_itself, difference

Mark = Callable[[Any, int], None]


class Attended:
    """The compiled callable; something is done to its arguments, eagerly, before each call."""

    def __init__(self, runner: Any, before: Callable[[dict[str, Any]], None]) -> None:
        self._runner, self._before = runner, before

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        self._before(_named_tensors(_signature(self._runner), args, kwargs))
        return self._runner(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)


def _signature(runner: Any) -> inspect.Signature | None:
    model = getattr(runner, "_orig_mod", runner)
    try:
        return inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model)
    except (TypeError, ValueError):
        return None


def _named_tensors(
    signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The tensors among the arguments, by parameter and path: ``images[0]``, ``cache['key']``."""
    named: dict[str, Any] = {"args": args, **kwargs}
    if signature is not None:
        with contextlib.suppress(TypeError):
            named = signature.bind(*args, **kwargs).arguments
            for name in [n for n, p in signature.parameters.items() if p.kind is p.VAR_KEYWORD and n in named]:
                named.update(named.pop(name))
    found = (leaf for name, value in named.items() for leaf in leaves(value, name))
    return {name: leaf for name, leaf in found if torch.is_tensor(leaf)}


Shapes = list[dict[str, tuple[int, ...]]]  # of the tensors in each call of the model, by path


def vary(dimension: str, lab: Lab) -> Json:
    """The case's calls in several sizes: as they are, with the varying dimensions marked, and with ``dynamic=True``."""
    model = lab.case.build()
    chosen = _chosen(lab.case, model, dimension)
    steps, shapes, marks = chosen.steps, chosen.shapes, chosen.marks
    backend = lab.counting_backend()
    plain, dynamic = lab.options(backend), {**lab.options(backend), "dynamic": True}
    settings: list[tuple[str, Json, Mark | None]] = [("automatic", plain, None)]
    if marks:
        settings.append(("marked", plain, torch._dynamo.maybe_mark_dynamic))
    settings.append(("dynamic", dynamic, None))
    unbacked = getattr(torch._dynamo.decorators, "mark_unbacked", None)
    if unbacked is not None and any(1 in sizes for sizes in _sizes(shapes, marks)):
        settings.append(("unbacked", plain, unbacked))
    rows = [
        lab.attempt(name, functools.partial(_varied, lab, steps, options, mark, marks))
        for name, options, mark in settings
    ]
    sizes = [[step.size] if step.size else _first_sizes(own, marks) for step, own in zip(steps, shapes, strict=True)]
    return {
        "dimension": dimension,
        "chosen": steps[0].size is not None,
        "steps": [{"call": step.call, "sizes": own} for step, own in zip(steps, sizes, strict=True)],
        "backend": backend,
        "own_compile": compiles_itself(lab.case),
        "marks": [{"path": path, "dims": dims} for path, dims in marks.items()],
        "also": [{"path": path, "dims": dims} for path, dims in chosen.also.items()],
        "model": type(model).__name__,
        "settings": rows,
    }


@dataclasses.dataclass(frozen=True)
class Step:
    """A call of the case, by number, made afresh by ``make``; ``size``: None where it was not chosen."""

    call: int
    size: int | None
    make: Callable[[], Any]


Marks = dict[str, list[int]]


@dataclasses.dataclass(frozen=True)
class Chosen:
    """What is run one after the other, and the shapes that the model is called with; ``marks``: what is to be marked.

    ``also``: what differs between the calls besides; a tensor that not all calls have has no dimensions there.
    """

    steps: list[Step]
    shapes: list[Shapes]
    marks: Marks
    also: Marks = dataclasses.field(default_factory=dict)


def _chosen(case: Case, model: Any, dimension: str) -> Chosen:
    """What suits best, so that the counts are those of that dimension.

    In this order: the sizes that ``calls()`` takes; the case's calls as they are, when they differ in that dimension
    and in nothing else; the first call, resized; the case's calls, whatever they differ in besides.
    """
    if dimension in inspect.signature(case.module.calls).parameters:
        return _resized(case, model, dimension)
    own = _own(case, model, dimension)
    if own.marks and not own.also:
        return own
    if not own.marks:
        if all(map(callable, dataclasses.replace(case, vary=None, sizes=None).calls())):
            raise UnsuitedError(
                f"the calls are functions of the model, all with one {dimension} size; "
                f"let calls() take a parameter {dimension!r}, a whole number with a default"
            )
        return _resized(case, model, dimension)
    try:
        resized = _resized(case, model, dimension)
    except UnsuitedError:
        return own
    return resized if resized.marks else own


def _own(case: Case, model: Any, dimension: str) -> Chosen:
    """The case's calls as they are."""
    plain = dataclasses.replace(case, vary=None, sizes=None)
    steps = [Step(n + 1, None, functools.partial(_nth, plain, n)) for n in range(len(plain.calls()))]
    shapes = [_shapes_of(case, model, step) for step in steps]
    calls = [call for step in shapes for call in step]
    found = varying([calls])
    marks = {p: asked for p, dims in found.items() if (asked := [d for d in dims if _is_of(dimension, d)])}
    also = {p: others for p, dims in found.items() if (others := [d for d in dims if not _is_of(dimension, d)])}
    also |= {path: [] for path in _sometimes(calls)}
    return Chosen(*(_ones_last(steps, shapes, marks) if marks else (steps, shapes)), marks, also)


def _is_of(dimension: str, dim: int) -> bool:
    return (dim == 0) == (dimension == "batch")


def _sometimes(calls: list[dict[str, tuple[int, ...]]]) -> list[str]:
    """The tensors that only some calls have, or not with the same rank."""
    paths = dict.fromkeys(path for call in calls for path in call)
    return [path for path in paths if len({len(call[path]) if path in call else None for call in calls}) > 1]


def _resized(case: Case, model: Any, dimension: str) -> Chosen:
    """The first call in several sizes."""
    sized = dataclasses.replace(case, vary=dimension, sizes=None)
    try:
        sizes = sorted(sizes_that_work(sized), key=lambda size: size == 1)
    except CaseError as error:
        raise UnsuitedError(str(error)) from error
    steps = [Step(1, n, functools.partial(_nth, dataclasses.replace(sized, sizes=[n]), 0)) for n in sizes]
    shapes = [_shapes_of(case, model, step) for step in steps]
    return Chosen(steps, shapes, varying(shapes))


def _ones_last(steps: list[Step], shapes: list[Shapes], marks: Marks) -> tuple[list[Step], list[Shapes]]:
    """A size of 1 is compiled for itself, marked or not: what comes first should be able to tell more than that."""
    both = list(zip(steps, shapes, strict=True))
    both.sort(key=lambda pair: _first_sizes(pair[1], marks) == [1])
    return [step for step, _ in both], [own for _, own in both]


def _nth(case: Case, number: int) -> Any:
    return case.calls()[number]


def _shapes_of(case: Case, model: Any, step: Step) -> Shapes:
    """The shapes that the model itself is called with, from an eager call."""
    shapes: Shapes = []

    def note(named: dict[str, Any]) -> None:
        shapes.append({name: tuple(tensor.shape) for name, tensor in named.items() if not tensor.is_nested})

    run_step(case, model, Attended(model, note), step.make(), None)
    return shapes


def varying(steps: list[Shapes]) -> Marks:
    """The dimensions, by the tensor's path, whose size is not the same in all steps.

    Where each step calls the model as often as the others, first calls are compared with first calls, and so on: what
    changes within a step is not what is varied.
    """
    if len(steps) > 1 and len({len(step) for step in steps}) == 1:
        alike = [[step[number] for step in steps] for number in range(len(steps[0]))]
    else:
        alike = [[call for step in steps for call in step]]
    found: dict[str, set[int]] = {}
    for calls in alike:
        for path in dict.fromkeys(path for call in calls for path in call):
            met = {call[path] for call in calls if path in call}
            for rank in {len(shape) for shape in met}:
                of_rank = [shape for shape in met if len(shape) == rank]
                found.setdefault(path, set()).update(d for d in range(rank) if len({s[d] for s in of_rank}) > 1)
    return {path: sorted(dims) for path, dims in found.items() if dims}


def _sizes(shapes: list[Shapes], marks: Marks) -> Iterator[set[int]]:
    """The sizes that each marked dimension had."""
    for path, dims in marks.items():
        met = [call[path] for step in shapes for call in step if path in call]
        yield from ({shape[d] for shape in met if d < len(shape)} for d in dims)


def _first_sizes(shapes: Shapes, marks: Marks) -> list[int]:
    """The sizes that the first of the marked dimensions has within a step, in order."""
    path, dims = next(iter(marks.items()))
    return list(dict.fromkeys(call[path][dims[0]] for call in shapes if dims[0] < len(call.get(path, ()))))


def _varied(lab: Lab, steps: list[Step], options: Json, mark: Mark | None, marks: Marks) -> Json:
    """All steps twice, under one setting: each step's counts the first time, and those of the second round."""
    marking = Marking(mark, marks)
    trial = Trial(lab, lambda model: lab.case.compile(model, options))
    runner = Attended(trial.runner, marking.attach)
    since = len(lab.listener.recompiles)
    try:
        rows = [trial.step(lab.case, step.make(), runner)[0] for step in steps]
        reasons = lab.reasons(since)
        before = lab.listener.counts()
        for step in steps:
            trial.step(lab.case, step.make(), runner)
    finally:
        marking.undo()
    return {"steps": rows, "again": difference(before, lab.listener.counts()), "reasons": reasons}


class Marking:
    """Marks dimensions of arguments, and takes the marks back: a case may give the same tensor in each setting."""

    def __init__(self, mark: Mark | None, marks: Marks) -> None:
        self._mark, self._marks = mark, marks
        self._marked = torch.utils.weak.WeakTensorKeyDictionary()  # with the attributes that were there before

    def attach(self, named: dict[str, Any]) -> None:
        """Mark what is named; dimensions that a tensor does not have are passed over."""
        if self._mark is None:
            return
        for path, dims in self._marks.items():
            for dim in dims:
                if path in named and dim < named[path].dim():
                    self._marked.setdefault(named[path], set(vars(named[path])))
                    self._mark(named[path], dim)

    def undo(self) -> None:
        """As if nothing had been marked."""
        for tensor, before in list(self._marked.items()):
            for name in set(vars(tensor)) - before:
                delattr(tensor, name)
        self._marked.clear()
