"""When is the state read? A name that is a view of a tensor follows it; a Python integer does not."""

from __future__ import annotations

from tests.caches_attacks.forms import APPEND, END, LIST, MADE, ONE, PLAIN, SINGLE, Cases, alter, probe

#: A name is a view of the state.
VIEWS: Cases = {
    "a view that is read after the state was advanced": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        start = self._used[layer]
        self._used[layer] += keys.shape[1]
        self._keys[layer, :, start : start + keys.shape[1]] = keys
""",
            ),
        ),
        probe(),
    ),
    "a view of the one counter, read after the state was advanced": (
        alter(
            SINGLE,
            (
                """\
        start = self._used.item()
        end = start + keys.shape[1]
        self._keys[:, :, start:end] = keys
        self._used.fill_(end)
""",
                """\
        start = self._used
        self._used += keys.shape[1]
        self._keys[:, :, start - keys.shape[1] : start] = keys
""",
            ),
        ),
        probe(),
    ),
    "the old tensor is kept where the new one is another": (
        alter(
            SINGLE,
            (
                """\
        start = self._used.item()
        end = start + keys.shape[1]
        self._keys[:, :, start:end] = keys
        self._used.fill_(end)
""",
                """\
        start = self._used
        self._used = self._used + keys.shape[1]
        self._keys[:, :, start : self._used] = keys
""",
            ),
        ),
        probe(),
    ),
    "the state is advanced through a view": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        at = self._used[layer]
        n = int(at)
        self._keys[layer, :, n : n + keys.shape[1]] = keys
        at += keys.shape[1]
""",
            ),
        ),
        probe(),
    ),
    "the state is advanced through a view by a method": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        at = self._used[layer]
        n = at.item()
        self._keys[layer, :, n : n + keys.shape[1]] = keys
        at.add_(keys.shape[1])
""",
            ),
        ),
        probe(),
    ),
    "a view advanced by another method in between": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        start = self._used[layer]
        self._advance(layer, keys.shape[1])
        self._keys[layer, :, start - keys.shape[1] : start] = keys

    def _advance(self, layer, n):
        self._used[layer] = self._used[layer] + n
""",
            ),
        ),
        probe(),
    ),
    "a walrus takes the view": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        if (start := self._used[layer]) >= 0:
            self._used[layer] += keys.shape[1]
        self._keys[layer, :, start - keys.shape[1] : start] = keys
""",
            ),
        ),
        probe(),
    ),
    "a tuple target, one of the two the state": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        start, self._used[layer] = self._used[layer], self._used[layer] + keys.shape[1]
        self._keys[layer, :, start - keys.shape[1] : start] = keys
""",
            ),
        ),
        probe(),
    ),
    "iteration gives views": (
        alter(
            PLAIN,
            more="""
    def shift(self):
        for used in self._used:
            used -= 1
""",
        ),
        probe("memory.shift()"),
    ),
    "zip and enumerate give views": (
        alter(
            PLAIN,
            more="""
    def shift(self):
        for i, (used, by) in enumerate(zip(self._used, (1, 2))):
            used.sub_(by + i)
""",
        ),
        probe("memory.shift()"),
    ),
    "a slice is a view, of a list it is a copy": (
        alter(
            PLAIN,
            more="""
    def shift(self):
        tail = self._used[1:]
        tail += 2
        whole = self._used[:]
        whole[0] = 1
""",
        ),
        probe("memory.shift()"),
    ),
    "views in a list of spans, read later": (
        alter(
            PLAIN,
            ("        self._used = torch", "        self._spans = []\n        self._used = torch"),
            (END, END + "        self._spans.append((start, keys.shape[1]))\n"),
            more="""
    def spans(self):
        return [(int(at), n) for at, n in self._spans]
""",
        ),
        probe("out.append(memory.spans())"),
    ),
    "a lambda that reads later": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        place = lambda: int(self._used[layer])
        kept = lambda at=self._used[layer]: int(at)
        start = place()
        self._used[layer] += keys.shape[1]
        self._keys[layer, :, start : place()] = keys * (kept() - start)
""",
            ),
        ),
        probe(),
    ),
    "a comprehension of views, read after all were advanced": (
        alter(
            PLAIN,
            more="""
    def advanced(self, by):
        starts = [self._used[i] for i in range(2)]
        self._used += by
        return [int(s) for s in starts]
""",
        ),
        probe("out.append(memory.advanced(3))"),
    ),
    "a generator that yields views while the state moves": (
        alter(
            PLAIN,
            more="""
    def places(self):
        for i in range(2):
            at = self._used[i]
            yield i
            yield int(at)
""",
        ),
        probe("for n in memory.places():\n    out.append(n)\n    memory.append(0, rows(1))"),
    ),
    "max of views is a view": (
        alter(
            PLAIN,
            more="""
    def longest(self):
        most = max(self._used[0], self._used[1])
        self._used[0] += 1
        self._used[1] += 1
        return int(most)
""",
        ),
        probe("out.append(memory.longest())"),
    ),
    "a method that returns a view, used by another": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        at = self._at(layer)
        self._used[layer] += keys.shape[1]
        self._keys[layer, :, at - keys.shape[1] : at] = keys

    def _at(self, layer):
        return self._used[layer]
""",
            ),
        ),
        probe(),
    ),
    "a property that returns a view, and is added to": (
        alter(
            SINGLE,
            ("self._used.fill_(end)", "self.place += keys.shape[1]"),
            more="""
    @property
    def place(self):
        return self._used

    @place.setter
    def place(self, n):
        self._used = n
""",
        ),
        probe("old = memory.place", "memory.append(0, rows(1))", "out.append(int(old))"),
    ),
    "two attributes, one tensor": (
        alter(PLAIN, ("self._used = torch", "self._seen = self._used = torch"))
        + """
    def seen(self):
        return [int(n) for n in self._seen]
""",
        probe("out.append(memory.seen())"),
    ),
    "an attribute that is a view of the other": (
        alter(
            PLAIN,
            ("        self._used = " + MADE, "        self._used = " + MADE + "\n        self._first = self._used[0]"),
        )
        + """
    def first(self):
        return int(self._first)
""",
        probe("out.append(memory.first())"),
    ),
    "one 0-d tensor for all layers": (
        alter(
            LIST,
            ("for _ in range(layers)]", "] * layers"),
            ("[torch.zeros((), dtype=torch.long) ]", "[torch.zeros((), dtype=torch.long)]"),
        ),
        probe(),
    ),
    "one 0-d tensor for all layers, added to": (
        alter(
            LIST,
            ("[torch.zeros((), dtype=torch.long) for _ in range(layers)]", "[torch.tensor(0)] * layers"),
            ("self._used[layer].fill_(end)", "self._used[layer] += keys.shape[1]"),
        ),
        probe(),
    ),
    "one 0-d tensor for all layers, from a local name": (
        alter(
            LIST,
            (
                "        self._used = [torch.zeros((), dtype=torch.long) for _ in range(layers)]",
                "        zero = torch.zeros((), dtype=torch.long)\n        self._used = [zero for _ in range(layers)]",
            ),
        ),
        probe(),
    ),
    "layers that share a counter by choice": (
        alter(
            LIST,
            more="""
    def share(self):
        self._used[1] = self._used[0]
""",
        ),
        probe("memory.share()", "memory.append(0, rows(2))"),
    ),
    "a snapshot that is no copy, and one that is": (
        alter(
            PLAIN,
            more="""
    def save(self):
        self._saved, self._copy = self._used, self._used.clone()

    def saved(self):
        return [int(n) for n in self._saved], [int(n) for n in self._copy]

    def restore(self):
        self._used = self._copy
""",
        ),
        probe(
            "memory.save()",
            "memory.append(0, rows(1))",
            "out.append(memory.saved())",
            "memory.restore()",
            "memory.append(1, rows(2))",
            "out.append(memory.saved())",
        ),
    ),
    "a bound method of the tensor": (
        alter(
            PLAIN,
            ("        self._used = " + MADE, "        self._used = " + MADE + "\n        self._bump = self._used.add_"),
            more="""
    def bump(self):
        self._bump(1)
""",
        ),
        probe("memory.bump()"),
    ),
    "numpy, data and view(-1) share the memory": (
        alter(
            PLAIN,
            more="""
    def shift(self):
        self._used.numpy()[0] += 1
        self._used.data[1] += 2
        self._used.view(-1)[0] -= 3
        torch.add(self._used, 1, out=self._used)
        torch.Tensor.add_(self._used, 1)
""",
        ),
        probe("memory.shift()"),
    ),
    "methods of an element that write": (
        alter(
            PLAIN,
            more="""
    def shift(self):
        self._used[0].fill_(7).sub_(1)
        self._used[1].copy_(self._used[0]).add_(2, alpha=-1)
        self._used.select(0, 0).add_(1)
        self._used.clamp_(max=6)
""",
        ),
        probe("memory.shift()"),
    ),
    "torch.as_tensor shares, torch.tensor does not": (
        alter(
            PLAIN,
            more="""
    def held(self):
        return torch.as_tensor(self._used), torch.tensor(self._used.tolist())
""",
        ),
        probe("held = memory.held()", "memory.append(0, rows(1))", "out.append(held)"),
    ),
}

#: What is evaluated when.
MOMENTS: Cases = {
    "a view from the turn before": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        at = 0
        for i in range(keys.shape[1]):
            self._used[layer] += 1
            self._keys[layer, :, at : at + 1] += keys[:, i : i + 1]
            at = self._used[layer]
""",
            ),
        ),
        probe(),
    ),
    "a tuple target advances behind the view": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        start = self._used[layer]
        self._used[layer], fresh = start + keys.shape[1], keys.shape[1]
        self._keys[layer, :, start - fresh : start] = keys
""",
            ),
        ),
        probe(),
    ),
    "an annotated target advances behind the view": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        start = self._used[layer]
        self._used[layer]: torch.Tensor = start + keys.shape[1]
        self._keys[layer, :, start - keys.shape[1] : start] = keys
""",
            ),
        ),
        probe(),
    ),
    "a property that advances behind the view": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        self._fresh = keys.shape[1]
        start = self._used[layer]
        self.advanced
        self._keys[layer, :, start - keys.shape[1] : start] = keys

    @property
    def advanced(self):
        for i in range(2):
            self._used[i] += int(self._fresh)
""",
            ),
        ),
        probe(),
    ),
    "__setitem__ advances behind the view": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        start = self._used[layer]
        self[layer] = keys
        self._last = int(start)

    def __setitem__(self, layer, keys):
        at = self._used[layer].item()
        self._keys[layer, :, at : at + keys.shape[1]] = keys
        self._used[layer] += keys.shape[1]

    def last(self):
        return self._last
""",
            ),
        ),
        probe("out.append(memory.last())"),
    ),
    "a generator that goes on when the state has advanced": (
        alter(
            PLAIN,
            more="""
    def parts(self, layer):
        end = self._used[layer]
        yield 0
        yield int(end)
""",
        ),
        probe("parts = memory.parts(0); next(parts); memory.append(0, torch.ones(2, 1, 4)); out.append(next(parts))"),
    ),
    "a function that is given advances behind the view": (
        alter(
            PLAIN,
            more="""
    def between(self, layer, then):
        end = self._used[layer]
        then()
        return int(end)
""",
        ),
        probe("out.append(memory.between(0, lambda: memory.append(0, torch.ones(2, 1, 4))))"),
    ),
    "a function that is given advances beside the view": (
        alter(
            PLAIN,
            more="""
    def beside(self, layer, then):
        end = self._used[layer]
        return (then() is None) + int(end)
""",
        ),
        probe("out.append(memory.beside(0, lambda: memory.append(0, torch.ones(2, 1, 4))))"),
    ),
    "a context that is given advances behind the view": (
        alter(
            PLAIN,
            more="""
    def within(self, layer, context):
        end = self._used[layer]
        with context:
            return int(end)
""",
        ),
        probe(
            "class Context:",
            "    def __enter__(self): memory.append(0, torch.ones(2, 1, 4))",
            "    def __exit__(self, *_): pass",
            "out.append(memory.within(0, Context()))",
        ),
    ),
    "the object itself under another name advances behind the view": (
        alter(
            PLAIN,
            more="""
    def through(self, layer, other, keys):
        end = self._used[layer]
        other.append(layer, keys)
        return int(end)
""",
        ),
        probe("out.append(memory.through(0, memory, torch.ones(2, 1, 4)))"),
    ),
    "__len__ and __enter__ advance behind the view": (
        alter(
            PLAIN,
            more="""
    def __len__(self):
        self._used += 1
        return 3

    def __enter__(self):
        self._used += 1

    def __exit__(self, *error):
        self._used += 1

    def counted(self, layer):
        first = self._used[layer]
        fresh = len(self)
        second = self._used[layer]
        with self:
            third = self._used[layer]
        return int(first), int(second), int(third), fresh
""",
        ),
        probe("out.append(memory.counted(0))"),
    ),
    "an operator on the object advances behind the view": (
        alter(
            PLAIN,
            more="""
    def __iadd__(self, n: int):
        self._used += n
        return self

    def __contains__(self, n):
        self._used += 1
        return True

    def counted(self, layer):
        first = self._used[layer]
        me = 3 in self
        second = self._used[layer]
        self += 2
        return int(first), int(second)
""",
        ),
        probe("out.append(memory.counted(0))"),
    ),
    "a bound that is read before the other advances": (
        alter(
            PLAIN,
            more="""
    def _advance(self, layer) -> int:
        self._used[layer] += 1
        return 2

    def counted(self, layer):
        first = int(self._used[layer] + int(self._advance(layer)))
        return first, list(range(self._used[layer], int(self._advance(layer)) + 20))
""",
        ),
        probe("out.append(memory.counted(0))"),
    ),
    "added to, by an amount that advances it": (
        alter(
            PLAIN,
            more="""
    def _advance(self, layer) -> int:
        self._used[layer] += 3
        return 2

    def twice(self, layer):
        self._used[layer] += int(self._advance(layer))
""",
        ),
        probe("memory.twice(0)"),
    ),
    "one counter added to, by an amount that advances it": (
        alter(
            SINGLE,
            more="""
    def _advance(self) -> int:
        self._used += 3
        return 2

    def twice(self):
        self._used += int(self._advance())
""",
        ),
        probe("memory.twice()"),
    ),
    "or gives the view": (
        alter(
            PLAIN,
            (
                APPEND,
                """\
        start = self._used[layer] or 0
        self._used[layer] += keys.shape[1]
        self._keys[layer, :, int(start) : int(start) + keys.shape[1]] = keys
""",
            ),
        ),
        probe(),
    ),
    "a sum becomes the state, and is read later": (
        alter(
            SINGLE,
            (
                """\
        start = self._used.item()
        end = start + keys.shape[1]
        self._keys[:, :, start:end] = keys
        self._used.fill_(end)
""",
                """\
        end = self._used + keys.shape[1]
        self._used = end
        self._used += 1
        self._keys[:, :, end - keys.shape[1] : end] = keys
""",
            ),
        ),
        probe(),
    ),
    "a sum becomes an element, and is read later": (
        alter(
            LIST,
            (
                """\
        start = self._used[layer].item()
        end = start + keys.shape[1]
        self._keys[layer, :, start:end] = keys
        self._used[layer].fill_(end)
""",
                """\
        end = self._used[layer] + keys.shape[1]
        self._used[layer] = end
        self._used[layer] += 1
        self._keys[layer, :, end - keys.shape[1] : end] = keys
""",
            ),
        ),
        probe(),
    ),
    "a sum becomes two elements": (
        alter(
            LIST,
            more="""
    def level(self):
        end = self._used[0] + 1
        self._used[0] = end
        self._used[1] = end
""",
        ),
        probe("memory.level()", "memory.append(0, rows(2))"),
    ),
    "a clone of the one element": (
        alter(
            ONE,
            more="""
    def ahead(self, by: int):
        before = self._used.clone()
        self._used += by
        return int(self._used) - int(before)
""",
        ),
        probe("out.append(memory.ahead(3))"),
    ),
    "a clone of the row": (
        alter(
            PLAIN,
            more="""
    def ahead(self, by: int):
        before = self._used.clone()
        self._used += by
        return int(self._used[0]) - int(before[0])
""",
        ),
        probe("out.append(memory.ahead(3))"),
    ),
    "one element keeps its dimension in arithmetic": (
        alter(
            ONE,
            more="""
    def scaled(self, keys: torch.Tensor):
        n = self._used + 1
        return keys.float().sum() * n, keys.float().sum() * -self._used
""",
        ),
        probe("out.append(memory.scaled(rows(1)))"),
    ),
    "a constant place of one element, moved": (
        alter(
            PLAIN,
            ("        self._used = torch", "        self._slot = torch.tensor([1])\n        self._used = torch"),
            more="""
    def row(self):
        return self._keys[self._slot - 1], self._keys[int(self._slot)]
""",
        ),
        probe("out.append(memory.row())"),
    ),
    "an amount with an effect, as an int": (
        alter(
            PLAIN,
            ("        self._used = torch", "        self.pending = [1, 2, 3]\n        self._used = torch"),
            more="""
    def settle(self):
        self._used += int(self.pending.pop())
        self._used -= int(self.pending.pop()) + 0
""",
        ),
        probe("memory.settle()", "out.append(memory.pending)"),
    ),
    "an amount that is the state's own": (
        alter(
            PLAIN,
            more="""
    def fold(self):
        self._used -= int(self._used[0]) // 2
""",
        ),
        probe("memory.append(1, rows(2))", "out.append(tried(memory.fold))"),
    ),
    "an amount with a default": (
        alter(
            PLAIN,
            ("return int(self._used[layer].item())", "return self._used[layer].item()"),
            more="""
    def skip(self, layer, n=1):
        self._used[layer] = n
""",
        ),
        probe("n = torch.tensor(2)", "memory.skip(0, n)", "n += 1", "memory.append(0, rows(1))"),
    ),
    "a local called max, len, list": (
        alter(
            PLAIN,
            more="""
    def told(self, max: int, list: int):
        len = self._used.numel()
        sum = self._used.sum().item()
        return self._used.max().item() + max + len + sum + list, self._used.tolist()
""",
        ),
        probe("out.append(memory.told(1, 2))"),
    ),
}
