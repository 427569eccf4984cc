"""One line of a method each, or one statement in a place of the class: what found something, and one of each kind."""

from __future__ import annotations

from tests.caches_attacks.forms import ADVANCE, BREAK, INTS, KEYS, LIST, MADE, ONE, PLAIN, SINGLE, alter, settled

#: What a method ``told(self, layer: int, keys: torch.Tensor)`` returns, or does before it returns nothing.
OF_ROW = """\
int(self._used[layer] / 3 * 3)
int((self._used[layer] - 20) // 3)
int(self._used[layer] * self._used[layer] * 100000000)
int(self._used[layer] * 2**30)
int(self._used[layer] + 2**31 - 1)
[int(self._used[layer]), self._used[layer].item(), self._used[layer].tolist()]
self._used[layer : layer + 1]
self._used[..., layer].item()
self._used.max(torch.tensor(3)).tolist()
self._used.size(0)
self._used.tolist()
[*self._used.tolist()]
bool((self._used == 9).all())
1 if self._used[layer] is not None else 2
1 if self._used[0] is self._used[0] else 2
1 if self._used[layer] in {9, 10} else 2
{9: "nine"}.get(self._used[layer], "other")
int(self._used[layer] and 5)
type(self._used).__name__
f"{self._used[layer]:.1f}"
f"{keys.shape[1]:{self._used[layer]}}"
[self._used[layer].item()] * 2
torch.arange(3, dtype=torch.uint8) + self._used[layer] * 100
self._used[layer] - torch.arange(3)
torch.tensor(1, dtype=torch.int16) + self._used[layer]
keys.bfloat16() * self._used[layer]
keys.long() + self._used[layer]
keys[:, [self._used[layer] - 9]]
keys.new_zeros(self._used[layer])
torch.full((2,), self._used[layer])
torch.as_tensor(self._used[layer])
torch.maximum(self._used[layer], torch.tensor(3))
F.one_hot(self._used.long(), 10)
self._used.to("cpu")
self._used.is_contiguous()
self._used.numpy().sum().item()
max(range(2), key=lambda i: self._used[i].item())
int(self._used[layer]).bit_length()
"""
#: The same for one 0-d tensor, or (with ``ONE``) one of one element.
OF_ONE = """\
self._used
self._used.item()
(self._used + 1).tolist()
(self._used + 1).item()
f"{self._used + 1}"
int(-self._used)
1 if self._used else 2
1 if -self._used < 3 else 2
int(self._used if layer else self._used + 1)
int(self._used * 6364136223846793005)
int(self._used * 2**62)
self._used.shape
self._used.max().item()
keys[:, self._used * 0]
keys.sum() < self._used + 1
torch.arange(3) < self._used + 1
torch.tensor(self._used.item())
self._used == self._used
"""
#: What only a 0-d tensor can do.
OF_NUMBER = """\
torch.arange(self._used)
torch.arange(self._used + 1)
f"{self._used:>4}"
"""
#: Statements that a method consists of; what it leaves behind is compared.
DOING_ROW = """\
self._used[layer] += 1
self._used[layer] **= 2
self._used[layer] = -3
self._used[layer] = round(keys.shape[1] * 2.6)
self._used[layer] = keys.long().sum()
self._used[layer] = {"a": 5}["a"]
self._used[layer] = self._used.sum() - 3
self._used[layer] = [1, 2, 3].pop()
self._used[:] = self._used + 1
self._used -= 1
self._used += self._used.max()
self._used = self._used
self._used = torch.zeros_like(self._used)
self._used = torch.ones_like(self._used)
self._used = torch.full((2,), 3)
self._used = keys.new_zeros(2, dtype=torch.int)
self._used.add_(1, alpha=2)
self._used.resize_(2)
self._used[layer].add_(1)
n = self._used[layer]; n += 1
row = self._used; self._used = torch.zeros_like(row); row += 1
a, *b = self._used; b[0] += 1
for self._used[layer] in range(3): pass
[self._used[i].fill_(4) for i in range(2)]
n = self._used[layer]; self._used[:] = 4; self._seen = int(n)
n = self._used[layer]; sorted([1], key=lambda _: self.reset()); self._seen = int(n)
n = self._used[layer] + 0; self._used[layer] += 1; self._seen = int(n)
n = self._used[layer].to(torch.int); self._used[layer] += 1; self._seen = int(n)
n = self._used[layer] and self._used[layer]; self._used[layer] += 1; self._seen = int(n)
n = self._used.sum(); self._used += 3; self._seen = int(n)
n = keys.shape[1]; n += self._used[layer]; n += 1; self._used[layer] = n
"""
DOING_ONE = """\
self._used += 1
self._used <<= 1
self._used = torch.zeros_like(self._used)
self._used = torch.tensor(4) if self._used.dim() == 0 else torch.tensor([4])
self._used.sub_(keys.shape[1])
n = self._used; n += 1
n = self._used; self._used = self._used + 1; self._seen = int(n)
n = self._used + 1; self._used = n; self._used += 1; self._seen = int(n)
n = self._used + 1; self._used = n; self.reset(); self._seen = int(n)
n = self._used.clone(); self._used += 1; self._seen = int(n)
n = self._used or 3; self._used += 1; self._seen = int(n)
n, self._used = self._used, self._used + 1; self._seen = int(n)
if self._used > 3: self._used -= 3
"""
#: The kind of state, the expressions of it, and whether they are statements, or what they stand in the place of.
LINES: dict[str, tuple[str, str, bool | str]] = {
    "row": (PLAIN, OF_ROW, False),
    "number": (SINGLE, OF_ONE + OF_NUMBER, False),
    "one": (ONE, OF_ONE, False),
}
LINES |= {
    "row, done": (PLAIN, DOING_ROW, True),
    "number, done": (SINGLE, DOING_ONE, True),
    "one, done": (ONE, DOING_ONE, True),
}

#: Of a list of 0-d tensors.
OF_LIST = """\
self._used
self._used[layer]
[n.item() for n in self._used]
self._used.copy()
self._used == self._used
torch.tensor(self._used)
[i + n.item() for i, n in enumerate(self._used)]
1 if self._used[0] is self._used[0] else 2
1 if self._used[0] is self._used[1] else 2
print(*self._used, end="", file=None) if not self._used else int(self._used[layer])
keys * self._used[layer]
"""
DOING_LIST = """\
self._used[layer] += 1
self._used[layer].fill_(4)
self._used[layer] = torch.tensor(4)
self._used = [torch.tensor(4) for _ in self._used]
self._used = list(self._used)
self._used.append(self._used[0]); self._used[0] += 1; self._seen = int(self._used.pop())
n = self._used[layer]; n.fill_(4)
n = self._used[layer] + 1; self._used[layer] = n; self._used[layer] += 1; self._seen = int(n)
n = self._used[layer] + 1; self._used[layer] = n; self.reset(); self._seen = int(n)
n = self._used[layer] + 1; self._used[layer] = n; self._used[1] = n; self._used[1] += 1
row = self._used[:]; row[layer] += 1
for n in self._used: n = n + 1
for n in self._used: n.zero_(); self._seen += 1
"""
LINES |= {"list": (LIST, OF_LIST, False), "list, done": (LIST, DOING_LIST, True)}
#: In the place of the statement that makes the row.
MAKING_ROW = """\
self._used = torch.zeros(layers, dtype=torch.int) + 1
self._used = torch.zeros((layers,), dtype=torch.int)
self._used = torch.zeros(*(layers,), **{"dtype": torch.int})
self._used = torch.zeros(1, dtype=torch.int).repeat(layers)
self._used = torch.zeros(layers, dtype=torch.int, out=torch.ones(layers, dtype=torch.int))
self._used = torch.zeros(self._keys.shape[0], dtype=torch.int)
self._used = torch.zeros(self._keys.shape[:1], dtype=torch.int)
self._used = self._keys[:, 0, 0, 0].int()
self._used = torch.empty(layers, dtype=torch.int); self._used.zero_()
self._used = torch.full((layers,), room // 20)
self._used = torch.full((layers,), torch.tensor(1), dtype=torch.long)
self._used = torch.tensor([1, 2], dtype=torch.int16)
self._used = torch.tensor([1, True])
self._used = torch.tensor([i for i in range(layers)])
self._used = torch.tensor([[0, 1]])[0]
self._used = torch.arange(layers, dtype=torch.int32)
self._used = torch.arange(layers).flip(0)
self._used = torch.stack([torch.tensor(0)] * layers)
self._used = torch.zeros(layers, dtype=torch.int) if layers else None
with torch.device("cpu"): self._used = torch.zeros(layers, dtype=torch.int)
self._used = torch.zeros(layers, dtype=torch.int); self._seen = self._used[0]
start = [1, 2]; self._used = torch.as_tensor(start); start[0] = 3
self._used = torch.zeros(layers, dtype=torch.int); self.__dict__["_used"][0] = 3
"""
OWN = """
    def _own(self, layers):
        return torch.zeros(layers, dtype=torch.int)
"""
LINES |= {"made": (alter(PLAIN, more=OWN), MAKING_ROW, f"        self._used = {MADE}\n")}
#: The body of a method that is given an element of the row.
NOTING = """\
self._seen = int(at)
self._seen = [at]
at += keys.shape[1]; self._seen = int(at)
return at
self._seen = f"{at}"
self._seen = (lambda: int(at))()
if isinstance(at, int): self._seen = 4
self._again(at=at)
"""
NOTES = """
    def _note(self, at, keys):
        NOTE

    def _again(self, at):
        self._used[1] += 1
        return int(at)
"""
LINES |= {
    "handed on": (
        alter(PLAIN, (ADVANCE, f"        self._note(self._used[layer], keys)\n{ADVANCE}"), more=NOTES),
        NOTING,
        "        NOTE\n",
    ),
    "handed on by name": (
        alter(PLAIN, (ADVANCE, f"        self._note(keys=keys, at=self._used[layer])\n{ADVANCE}"), more=NOTES),
        NOTING,
        "        NOTE\n",
    ),
    "handed on, or a number": (
        alter(
            PLAIN,
            (ADVANCE, f"        self._note(self._used[layer], keys)\n        self._note(3, keys)\n{ADVANCE}"),
            more=NOTES,
        ),
        "self._seen = int(at)\nself._seen = at\nself._keys[0, :, :at] += 1\nself._seen = 1 if at > 3 else 2\n",
        "        NOTE\n",
    ),
}
#: Of a row, with a method ``_next()`` that advances it and returns an integer.
IN_ORDER = """\
1 if self._used[layer] < self._next() else 2
1 if self._next() > self._used[layer] else 2
self._keys[0, :, self._used[layer] : self._next()]
self._pair(self._used[layer], self._next())
self._pair(b=self._next(), a=self._used[layer])
int(self._used[layer] + self._next())
[int(self._used[layer]), self._next()]
list(range(self._used[layer], self._next() + 1))
torch.arange(self._used[layer], self._next() + 1)
torch.zeros(self._used[layer], self._next()).shape
int(self._used[layer] if self._next() else 0)
self._used[layer] == self._next()
keys.narrow(1, self._next() - 10, self._used[layer] - 9)
"""
DOING_IN_ORDER = """\
self._used[layer] += self._next()
self._used[layer] -= self._next() - 4
self._used[layer] = self._used[layer] + self._next()
self._used[self._next() - 10] = self._next()
self._used += self._next()
self._used.add_(self._next())
self._used.fill_(self._next())
n = self._used[layer]; self._used[layer] = n + self._next()
n = self._used[layer]; self._seen = [self._next(), int(n)]
n, m = self._used[layer], self._next(); self._seen = int(n)
self._keys[0, :, self._used[layer] - 1 : self._next()] = 7
if self._used[layer] < self._next(): self._seen = 5
while self._used[layer] < self._next() < 20: self._seen += 1
assert self._used[layer] == self._next(), "a view"
"""
ADVANCING = """
    def _next(self):
        self._used += 1
        return int(self._used[0])

    def _pair(self, a, b):
        return int(a), b
"""
LINES |= {
    "in order": (alter(PLAIN, more=ADVANCING), IN_ORDER, False),
    "in order, done": (alter(PLAIN, more=ADVANCING), DOING_IN_ORDER, True),
}
#: In the place of a break, in a class whose ``_tick()``, ``with`` and truth count.
BREAKING = """\
torch._dynamo.graph_break()
torch._dynamo.graph_break(msg=str(self._tick()))
torch._dynamo.graph_break(), self._tick()
torch._dynamo.graph_break() or self._tick()
nothing = torch._dynamo.graph_break()
pause = self._tick; pause()
[torch._dynamo.graph_break() for self._seen in range(3)]
if torch.compiler.is_compiling(): torch._dynamo.graph_break()\\nelse: self._tick()
if keys.shape[self._tick() * 0] and torch.compiler.is_compiling(): torch._dynamo.graph_break()
if self: torch._dynamo.graph_break()
if keys.shape[1] > 1: self._tick()\\nelse: torch._dynamo.graph_break()
if keys.shape[1] == 2: torch._dynamo.graph_break(); return
while self._tick() % 3: torch._dynamo.graph_break()
try: torch._dynamo.graph_break(); self._tick()\\nexcept ValueError: raise
end = 0 if torch._dynamo.graph_break() else end
getattr(torch._dynamo, "graph_break")()
"""
#: In the place of the statement that makes the buffer of all layers.
MAKING = """\
self._keys = torch.zeros(*four)
self._keys = keys = torch.zeros(*four); keys += 1
self._keys = torch.zeros(*four); self._seen = 1
self._keys = torch.zeros(*four).clone()
self._keys = torch.zeros(2, *four)[0]
self._keys = torch.zeros(*four).share_memory_()
self._keys = nn.Buffer(torch.zeros(*four))
self._keys = torch.zeros(*four) if room > 3 else torch.ones(*four)
self._keys = torch.stack([torch.zeros(*three) for _ in range(layers)])
self._keys = self._make(*four)
for _ in range(2): self._keys = torch.zeros(*four)
with torch.no_grad(): self._keys = torch.zeros(*four)
try: self._keys = torch.zeros("x")\\nexcept TypeError: self._keys = torch.zeros(*four)
self._keys = torch.zeros(*four); self._seen = self._keys.view(-1)
"""
#: In the place of the statement that makes a buffer for each layer.
MAKING_EACH = """\
self._keys = [torch.zeros(*three) for _ in range(layers)]
self._keys = list(torch.zeros(*three) for _ in range(layers))
self._keys = list(torch.zeros(*four))
self._keys = list(map(lambda _: torch.zeros(*three), range(layers)))
self._keys = [None] * layers; self._keys[0] = torch.zeros(*three); self._keys[1] = torch.zeros(*three)
self._keys = []; self._keys += [torch.zeros(*three) for _ in range(layers)]
self._keys = []; self._keys.insert(0, torch.zeros(*three)); self._keys.insert(0, torch.zeros(*three))
self._keys = {}\\nfor i in range(layers): self._keys[i] = torch.zeros(*three)
self._keys = [torch.zeros(*three) for keys in range(layers)]; keys = 3; self._seen = keys
self._keys = [self._make(*three) for _ in range(layers)]
"""
COUNTING = """
    def _tick(self):
        self._seen += 1
        return self._seen

    def _make(self, *sizes):
        self._tick()
        return torch.zeros(*sizes)

    def __bool__(self):
        return self._tick() > 0

    def __enter__(self):
        self._tick()
        return 4

    def __exit__(self, *error):
        self._tick()
"""
EACH = alter(INTS, (BREAK, ""), ("self._keys[layer, :,", "self._keys[layer][:,"), more=COUNTING)
LINES |= {
    "break": (alter(INTS, more=COUNTING), BREAKING, BREAK),
    "buffer": (alter(INTS, (BREAK, ""), more=COUNTING), MAKING, KEYS),
    "buffers": (EACH, MAKING_EACH, KEYS),
}


def indented(line: str) -> str:
    """``line`` as a method's body: what stands behind a semicolon or a colon gets a line of its own."""
    found = []
    for part in line.split(r"\n"):
        head, colon, body = part.partition(": ")
        block = bool(colon) and part.split()[0].rstrip(":") in {
            "for",
            "while",
            "if",
            "with",
            "try",
            "except",
            "finally",
        }
        if block:
            found.append(f"        {head}:")
        found += [f"        {'    ' * block}{s}" for s in (body if block else part).split("; ")]
    return "\n".join(found)


def one_line(kind: str, line: str) -> str:
    """The cache of that kind with a method ``told`` of one line, or with the line in the place that is named."""
    source, _, place = LINES[kind]
    source = source.replace("        self._keys = torch", "        self._seen = 0\n        self._keys = torch", 1)
    line = line.replace("*four", "layers, *three").replace("*three", "batch, room, size")
    body = indented(line) if place else f"        return {line}"
    if isinstance(place, str):
        source, body = alter(source, (place, f"{body}\n")), "        pass"
    return settled(f"{source}\n    def told(self, layer: int, keys: torch.Tensor):\n{body}\n", True)
