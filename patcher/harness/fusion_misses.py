"""Which node differs where a pattern almost matches: its graph is laid over another, from one operator outwards.

Runs in the process of ``fusions.py``. PyTorch's matcher says yes or no; this says how far it would have come, and what
was in the way. Standard library and torch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from patcher.harness import fusion_form
else:
    import fusion_form

aten = torch.ops.aten
Node = torch.fx.Node

ENOUGH = 0.5  # of a pattern's operators: less is another thing, and no near miss
SMALL = 3  # operators of a pattern of which all have to be there
_EITHER_WAY = (aten.mul.Tensor, aten.add.Tensor)
_OVER_DIMENSIONS = (aten.mean.dim, aten.var.correction, aten.sum.dim_IntList)
_CAST = aten._to_copy.default


@dataclass(frozen=True)
class Miss:
    """How far a pattern went: ``matched`` of its ``of`` operators. ``differs``: what was in the way, nearest first."""

    anchor: Any
    matched: int
    of: int
    differs: tuple[str, ...]
    nodes: tuple[Any, ...]

    @property
    def rank(self) -> tuple[float, int]:
        """By this the best of several is found."""
        return self.matched / self.of - 0.01 * len(self.differs), self.matched


def laid_over(pattern: Any, anchor: Any, node: Any, scalars: Any, place: Callable[[Any], str]) -> Miss | None:
    """A pattern's graph over the one that ``node`` is in, its ``anchor`` on ``node``; None where it is no near miss."""
    own = next((one for one in pattern.nodes if one.op == "call_function" and one.target is anchor), None)
    if own is None or _numbers_differ(own, node, scalars):
        return None
    over = _Overlay(pattern, frozenset(scalars.values()), place)
    over.lay(own, node)
    operators = [one for one in pattern.nodes if one.op == "call_function"]
    matched = len(over.pairs.keys() & set(operators)) - over.strangers
    least = len(operators) if len(operators) <= SMALL else max(SMALL, ENOUGH * len(operators))
    if matched < least:
        return None
    nodes = tuple(over.pairs[one] for one in operators if one in over.pairs)
    return Miss(node, matched, len(operators), tuple(dict.fromkeys(over.differs)), nodes)


def _numbers_differ(own: Any, node: Any, scalars: Any) -> bool:
    for wanted, found in zip(own.args, node.args, strict=False):
        if fusion_form.number(wanted) and wanted not in scalars.values() and wanted != found:
            return True
    return False


def _alike(wanted: Any, found: Any, free: frozenset[float]) -> bool:
    """Whether two arguments that are no tensors say the same; ``free``: numbers that stand for any."""
    if fusion_form.number(wanted) and wanted in free:
        return fusion_form.number(found)
    if fusion_form.number(wanted) and fusion_form.number(found):
        return bool(wanted == found)
    if isinstance(wanted, (list, tuple)) and isinstance(found, (list, tuple)):
        return len(wanted) == len(found)  # sizes: those of the pattern's examples are nobody's
    return type(wanted) is not type(found) or wanted == found


@dataclass
class _Overlay:
    """What lies over what. ``strangers``: operators that got another tensor than the pattern's one."""

    pattern: Any
    free: frozenset[float]
    place: Callable[[Any], str]
    pairs: dict[Any, Any] = field(default_factory=dict)
    differs: list[str] = field(default_factory=list)
    strangers: int = 0
    _unfollowed: set[Any] = field(default_factory=set)
    _passed: set[Any] = field(default_factory=set)  # of the graph, that stand in between

    def lay(self, own: Any, node: Any) -> None:
        """From one operator outwards, to what it is made of and to what is made of it."""
        todo = deque([(own, node)])
        while todo:
            own, node = todo.popleft()
            if own in self.pairs:
                continue
            self.pairs[own] = node
            todo.extend(self._sources(own, node))
            todo.extend(self._users(own, node))
        self._second_users()

    def _sources(self, own: Any, node: Any) -> Iterator[tuple[Any, Any]]:
        for wanted, found in self._arguments(own, node):
            inner = [(wanted, found)]
            if isinstance(wanted, (list, tuple)) and any(isinstance(one, Node) for one in wanted):
                inner = list(zip(wanted, found, strict=False)) if isinstance(found, (list, tuple)) else []
            for want, got in inner:
                if not isinstance(want, Node):
                    dims = own.target in _OVER_DIMENSIONS and isinstance(want, (list, tuple)) and want != got
                    if dims or not _alike(want, got, self.free):
                        self._note(f"{_said(node)} has {_value(got)} where {_value(want)} is expected", node)
                elif not isinstance(got, Node):
                    self._note(f"{_said(node)} has the number {_value(got)} where a tensor is expected", node)
                elif want.op == "placeholder":
                    self._bound(want, got, node)
                elif pair := self._met(want, got, node):
                    yield pair
        for key in own.kwargs.keys() & node.kwargs.keys():
            if key != "dtype" and not _alike(own.kwargs[key], node.kwargs[key], self.free):
                told = f"{_said(node)} has {key}={_value(node.kwargs[key])}, {_value(own.kwargs[key])} is expected"
                self._note(told, node)

    def _arguments(self, own: Any, node: Any) -> list[tuple[Any, Any]]:
        """Argument by argument; two that may change places, in the order in which they fit."""
        straight = list(zip(own.args, node.args, strict=False))
        two = len(own.args) == len(node.args) == 2 and all(isinstance(a, Node) for a in (*own.args, *node.args))
        if own.target in _EITHER_WAY and two:
            turned = [(own.args[0], node.args[1]), (own.args[1], node.args[0])]
            return max((straight, turned), key=lambda pairs: sum(self._fits(*pair) for pair in pairs))
        return straight

    def _fits(self, want: Any, got: Any) -> float:
        if want in self.pairs:
            return 2.0 if self.pairs[want] is got else -1.0
        if want.op == "placeholder":
            return 0.5
        if want.target is got.target:
            return 1.0
        return 0.7 if got.op == "call_function" and self._between(want, got) else 0.0

    def _bound(self, want: Any, got: Any, node: Any) -> None:
        """A tensor that the pattern is given: it is the same one wherever it is used."""
        known = self.pairs.setdefault(want, got)
        if known is got:
            return
        if got in known.all_input_nodes and _is_small(known):
            self.pairs[want] = got
            self._note(f"{_step(known)} stands between the tensor and its other use", known)
        elif known in got.all_input_nodes and _is_small(got):
            self._note(f"{_step(got)} stands between the tensor and {_said(node)}", got)
        else:
            self.strangers += 1
            self._note(f"{_said(node)} takes another tensor than the rest: {_said(got)}, not {_said(known)}", node)

    def _met(self, want: Any, got: Any, node: Any) -> tuple[Any, Any] | None:
        """Where to go on: at what is expected, or behind one node that is in between, or is not there."""
        if want in self.pairs:
            if self.pairs[want] is not got and got not in self._passed:
                self.strangers += 1
                self._note(f"{_said(got)} is used where {_said(self.pairs[want])} is expected", got)
            return None
        if got.op == "call_function" and want.target is got.target:
            return want, got
        if got.op == "call_function" and (inner := self._between(want, got)):
            self._passed.add(got)
            self._note(f"{_step(got)} stands between {_said(inner)} and {_said(node)}", got)
            return want, inner
        for source in want.all_input_nodes:
            if source.op == "call_function" and source.target is got.target:
                self._note(f"no {_step(want, self.free)} behind {_said(got)}", got)
                return source, got
            given = source.op == "placeholder" and (want.target is _CAST or source in self.pairs)
            if given and self.pairs.setdefault(source, got) is got:
                self._note(f"no {_step(want, self.free)} in front of {_said(node)}", node)
                return None
        self._note(f"{_said(got)} stands where {_step(want, self.free)} is expected", got)
        return None

    def _between(self, want: Any, got: Any) -> Any:
        """What ``got`` is made of, where that is what is expected."""
        return next((one for one in got.all_input_nodes if one.op != "placeholder" and one.target is want.target), None)

    def _users(self, own: Any, node: Any) -> Iterator[tuple[Any, Any]]:
        if own.op != "call_function":
            return
        for user in own.users:
            if user.op == "output" or user in self.pairs:
                continue
            taken = set(self.pairs.values())
            fitting = [one for one in node.users if one.target is user.target and one not in taken]
            if fitting:
                yield user, max(fitting, key=lambda one: self._fit_of_user(user, one))
            elif pair := self._behind(user, node):
                yield pair
            else:
                self._unfollowed.add(node)
                others = [_said(one) for one in node.users if one not in taken and one.op != "output"]
                instead = f", but {' and '.join(others[:2])}" if others else ""
                self._note(f"no {_step(user, self.free)} follows {_said(node)}{instead}", node)

    def _fit_of_user(self, user: Any, one: Any) -> float:
        return sum(self._fits(*pair) for pair in self._arguments(user, one) if all(isinstance(p, Node) for p in pair))

    def _behind(self, user: Any, node: Any) -> tuple[Any, Any] | None:
        """The user that is expected, one node further on; or its own user, where it is not there itself."""
        for one in node.users:
            found = next((later for later in one.users if later.target is user.target), None)
            if found is not None and one.op == "call_function":
                self._passed.add(one)
                self._note(f"{_step(one)} stands between {_said(node)} and {_said(found)}", one)
                return user, found
        for later in [one for one in user.users if one.op != "output"]:
            found = next((one for one in node.users if one.target is later.target), None)
            if found is not None:
                self._note(f"no {_step(user, self.free)} behind {_said(node)}", node)
                return later, found
            for one in node.users:
                found = next((behind for behind in one.users if behind.target is later.target), None)
                if found is not None and one.op == "call_function":
                    self._passed.add(one)
                    self._note(f"{_step(one)} stands where {_step(user, self.free)} is expected", one)
                    return later, found
        return None

    def _second_users(self) -> None:
        """What else an intermediate is used for: it would have to be computed all the same."""
        laid = {*self.pairs.values(), *self._passed}
        for own, node in list(self.pairs.items()):
            last = any(user.op == "output" for user in own.users)
            if own.op == "call_function" and not last and node not in self._unfollowed:
                for user in node.users:
                    if user not in laid:
                        what = "the result" if user.op == "output" else _said(user)
                        self._note(f"the intermediate {_said(node)} has a second user: {what}", user, node)

    def _note(self, told: str, *nodes: Any) -> None:
        where = next((place for place in map(self.place, nodes) if place), "")
        self.differs.append(f"{told} ({where})" if where else told)


def _said(node: Any) -> str:
    return f"`{fusion_form.name(node.target)}`" if node.op == "call_function" else "an input"


def _step(node: Any, free: frozenset[float] = frozenset()) -> str:
    """An operator with its constants: ```mul` by 1.702``."""
    if node.target is _CAST:
        return f"cast to {str(node.kwargs.get('dtype', 'another device')).removeprefix('torch.')}"
    numbers = [arg for arg in node.args if fusion_form.number(arg) and arg not in free]
    telling = node.op == "call_function" and node.target in (*_EITHER_WAY, aten.pow.Tensor_Scalar)
    return _said(node) + (f" with {numbers[0]}" if telling and len(numbers) == 1 else "")


def _is_small(node: Any) -> bool:
    """Whether it makes little else of a tensor: with a number, or in another dtype."""
    return node.target is _CAST or (node.target in _EITHER_WAY and fusion_form.number(node.args[1]))


def _value(value: Any) -> str:
    return fusion_form._spoken(value)
