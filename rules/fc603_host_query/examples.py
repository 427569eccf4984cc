"""What HostQuery reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="a version is taken apart",
        before="""\
import re

VERSION = re.compile(r"(?P<major>\\d+)[.](?P<minor>\\d+)")

class Net(nn.Module):
    @staticmethod
    def version(text: str) -> tuple[int, ...]:
        match = VERSION.match(text)
        if match is None:
            return ()
        parts = match.groupdict()
        return tuple(int(parts[k]) for k in ("major", "minor"))

    def forward(self, x):
        y = x * 2
        if self.version(torch.__version__) >= (1, 8):
            return y + 1
        return y
""",
        after="""\
import re

VERSION = re.compile(r"(?P<major>\\d+)[.](?P<minor>\\d+)")

class Net(nn.Module):
    @staticmethod
    @torch.compiler.assume_constant_result
    def version(text: str) -> tuple[int, ...]:
        match = VERSION.match(text)
        if match is None:
            return ()
        parts = match.groupdict()
        return tuple(int(parts[k]) for k in ("major", "minor"))

    def forward(self, x):
        y = x * 2
        if self.version(torch.__version__) >= (1, 8):
            return y + 1
        return y
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (3, 4)]
""",
        unsafe=True,
    ),
    Example(
        title="whether a file is there",
        before="""\
import os

class Net(nn.Module):
    @staticmethod
    def cached(name: str) -> bool:
        return os.path.exists(name)

    def forward(self, x):
        y = x + 1
        if self.cached("/nowhere/at/all"):
            return y * 3
        return y * 2
""",
        after="""\
import os

class Net(nn.Module):
    @staticmethod
    @torch.compiler.assume_constant_result
    def cached(name: str) -> bool:
        return os.path.exists(name)

    def forward(self, x):
        y = x + 1
        if self.cached("/nowhere/at/all"):
            return y * 3
        return y * 2
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (3, 4)]
""",
        unsafe=True,
    ),
    Example(
        title="whether a program is there, without annotations of what it answers",
        before="""\
import shutil

class Net(nn.Module):
    @staticmethod
    def has(name: str):
        return shutil.which(name) is not None

    def forward(self, x):
        return x + 1 if self.has("no_such_program") else x * 2
""",
        after="""\
import shutil

class Net(nn.Module):
    @staticmethod
    @torch.compiler.assume_constant_result
    def has(name: str):
        return shutil.which(name) is not None

    def forward(self, x):
        return x + 1 if self.has("no_such_program") else x * 2
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (3, 4)]
""",
        unsafe=True,
    ),
    Example(
        title="how often something stands in a text",
        before="""\
import re

class Net(nn.Module):
    @staticmethod
    def count(text: str, part: str = 'a') -> int:
        n = 0
        for _ in re.finditer(part, text):
            n += 1
        return n

    def forward(self, x):
        return x * self.count("banana") + self.count("kiwi", "i")
""",
        after="""\
import re

class Net(nn.Module):
    @staticmethod
    @torch.compiler.assume_constant_result
    def count(text: str, part: str = 'a') -> int:
        n = 0
        for _ in re.finditer(part, text):
            n += 1
        return n

    def forward(self, x):
        return x * self.count("banana") + self.count("kiwi", "i")
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (3, 4)]
""",
        unsafe=True,
    ),
    Example(
        title="asked in a method of a layer below",
        before="""\
import os

class Block(nn.Module):
    @staticmethod
    def folder(path: str, depth: int) -> int:
        return depth + 1 if os.path.isdir(path) else depth

    def forward(self, x):
        return x * self.folder("/", 2)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x).relu()
""",
        after="""\
import os

class Block(nn.Module):
    @staticmethod
    @torch.compiler.assume_constant_result
    def folder(path: str, depth: int) -> int:
        return depth + 1 if os.path.isdir(path) else depth

    def forward(self, x):
        return x * self.folder("/", 2)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x).relu()
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (3, 4)]
""",
        unsafe=True,
    ),
    Example(
        title="two questions in one function",
        before="""\
import os

class Net(nn.Module):
    @staticmethod
    def which(path: str, other: str | None = None) -> int:
        if os.path.isfile(path):
            return 1
        return 2 if other is None or os.path.exists(other) else 3

    def forward(self, x):
        return x + self.which("/nowhere", "/") + self.which("/nowhere")
""",
        after="""\
import os

class Net(nn.Module):
    @staticmethod
    @torch.compiler.assume_constant_result
    def which(path: str, other: str | None = None) -> int:
        if os.path.isfile(path):
            return 1
        return 2 if other is None or os.path.exists(other) else 3

    def forward(self, x):
        return x + self.which("/nowhere", "/") + self.which("/nowhere")
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (3, 4)]
""",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="the function may get a tensor",
        source="""\
import os

class Net(nn.Module):
    @staticmethod
    def cached(name, x) -> bool:
        return os.path.exists(name)

    def forward(self, x):
        return x if self.cached("a", x) else x + 1
""",
        reported=True,
    ),
    NearMiss(
        title="a method, which knows the module",
        source="""\
import os

class Net(nn.Module):
    def cached(self, name: str) -> bool:
        return os.path.exists(name)

    def forward(self, x):
        return x if self.cached("a") else x + 1
""",
        reported=True,
    ),
    NearMiss(
        title="it answers with what may be changed",
        source="""\
import re

class Net(nn.Module):
    @staticmethod
    def parts(text: str) -> dict:
        return re.match("(?P<a>.)", text).groupdict()

    def forward(self, x):
        return x + len(self.parts("ab"))
""",
        reported=True,
    ),
    NearMiss(
        title="it keeps what it has found",
        source="""\
import os

FOUND = {}

class Net(nn.Module):
    @staticmethod
    def cached(name: str) -> bool:
        FOUND[name] = os.path.exists(name)
        return FOUND[name]

    def forward(self, x):
        return x if self.cached("a") else x + 1
""",
        reported=True,
    ),
    NearMiss(
        title="it is cached",
        source="""\
import functools
import os

class Net(nn.Module):
    @staticmethod
    @functools.lru_cache
    def cached(name: str) -> bool:
        return os.path.exists(name)

    def forward(self, x):
        return x if self.cached("a") else x + 1
""",
        reported=True,
    ),
    NearMiss(
        title="asked by forward itself",
        source="""\
import os

class Net(nn.Module):
    def forward(self, x):
        return x if os.path.exists('a') else x + 1
""",
        reported=True,
    ),
    NearMiss(
        title="in the constructor",
        source="""\
import os

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.there = os.path.exists('a')

    def forward(self, x):
        return x if self.there else x + 1
""",
    ),
    NearMiss(
        title="a part of a match, which is traced",
        source="""\
import re

class Net(nn.Module):
    @staticmethod
    def first(text: str) -> str:
        return re.match("(?P<a>.)", text).group("a")

    def forward(self, x):
        return x + len(self.first("ab"))
""",
    ),
    NearMiss(
        title="in eager code alone",
        source="""\
import os

class Net(nn.Module):
    @staticmethod
    def cached(name: str) -> bool:
        return os.path.exists(name)

    def forward(self, x):
        if not torch.compiler.is_compiling():
            x = x if os.path.exists("a") else x + 1
        return x
""",
    ),
)
