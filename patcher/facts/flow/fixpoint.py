"""The one fixpoint: facts that spread along the edges of a graph until nothing changes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

N = TypeVar("N", bound=Hashable)
T = TypeVar("T")


def solve(
    start: Mapping[N, T],
    edges: Callable[[N], Iterable[N]],
    transfer: Callable[[N, T], T],
    join: Callable[[T, T], T],
) -> dict[N, T]:
    """For each node that is reached from ``start``, what holds before it.

    ``edges`` gives the nodes behind a node: the successors for a question about the past, the predecessors for one
    about the future. ``transfer`` says what holds behind a node when something holds before it; ``join`` what holds
    where two ways meet. It ends when both are monotone over values that can only grow finitely often.
    """
    before: dict[N, T] = dict(start)
    queue = deque(start)
    waiting = set(queue)
    while queue:
        node = queue.popleft()
        waiting.discard(node)
        after = transfer(node, before[node])
        for other in edges(node):
            known = before.get(other)
            joined = after if known is None else join(known, after)
            if known is None or joined != known:
                before[other] = joined
                if other not in waiting:
                    waiting.add(other)
                    queue.append(other)
    return before


def reach(start: Iterable[N], edges: Callable[[N], Iterable[N]], stop: frozenset[N] = frozenset()) -> set[N]:
    """The nodes that can be got to from ``start`` (which are among them), not going on from those in ``stop``."""
    found = solve(
        dict.fromkeys(start, True), lambda n: () if n in stop else edges(n), lambda _, held: held, lambda a, _: a
    )
    return set(found)


class Settled(Generic[N, T]):
    """Values that are made of each other, in circles too; each is computed once, however deep the definitions go.

    ``rule(node, of)`` computes the value of ``node`` from those of others, ``of(other)``. All of them are ``first``
    until something else is known. It ends when ``rule`` is monotone over values that change finitely often.
    """

    def __init__(self, rule: Callable[[N, Callable[[N], T]], T], first: T) -> None:
        self._rule = rule
        self._first = first
        self._known: dict[N, T] = {}

    def __call__(self, node: N) -> T:
        """Return the value of ``node``."""
        if node not in self._known:
            self._known |= self._solved(node)
        return self._known[node]

    def _solved(self, node: N) -> dict[N, T]:
        found = {node: self._first}
        users: defaultdict[N, set[N]] = defaultdict(set)
        new, again = [node], dict[N, None]()
        while new or again:
            current = new.pop() if new else again.popitem()[0]

            def of(other: N, user: N = current) -> T:
                if other in self._known:
                    return self._known[other]
                users[other].add(user)
                if other not in found:
                    found[other] = self._first
                    new.append(other)
                return found[other]

            value = self._rule(current, of)
            if value != found[current]:
                found[current] = value
                again.update(dict.fromkeys(users[current]))
        return found
