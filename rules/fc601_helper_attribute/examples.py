"""What HostAttribute reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_RUN = """
from bisect import bisect_left

class Words:  # answers from C code that Dynamo cannot trace, as a tokenizer answers from its extension
    def __init__(self):
        self.entries = ["<pad>", "<pic>", "a", "b"]
        self.special = {"pad": "<pad>", "picture": "<pic>"}
    def __getattr__(self, key):
        if key.endswith("_id") and key[:-3] in self.__dict__.get("special", {}):
            return bisect_left(self.entries, self.special[key[:-3]])
        raise AttributeError(key)
    def id_of(self, word):
        return bisect_left(self.entries, word)

def make():
    return Net(Words())
calls = [(torch.tensor([[0, 1, 2, 3]]),), (torch.tensor([[1, 1, 0, 2], [3, 2, 1, 0]]),)]
"""

INVALID: tuple[Example, ...] = (
    Example(
        title="an attribute, compared with ids",
        before="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)
""",
        after="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self._picture_id = self.words.picture_id
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self._picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)
""",
        run=_RUN,
        unsafe=True,
    ),
    Example(
        title="in a private method that forward calls",
        before="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        return self.embed(ids) * (~self._slots(ids)).unsqueeze(-1)

    def _slots(self, ids):
        return (self.words.picture_id == ids)
""",
        after="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self._picture_id = self.words.picture_id
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        return self.embed(ids) * (~self._slots(ids)).unsqueeze(-1)

    def _slots(self, ids):
        return (self._picture_id == ids)
""",
        run=_RUN,
        unsafe=True,
    ),
    Example(
        title="two values, and a name that is taken",
        before="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)
        self.register_buffer("_pad_id", torch.zeros(2))

    def forward(self, ids):
        keep = (ids != self.words.pad_id) & (self.words.picture_id != ids)
        return self.embed(ids) * keep.unsqueeze(-1) + self._pad_id.sum()
""",
        after="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self._pad_id_2 = self.words.pad_id
        self._picture_id = self.words.picture_id
        self.embed = nn.Embedding(16, 8)
        self.register_buffer("_pad_id", torch.zeros(2))

    def forward(self, ids):
        keep = (ids != self._pad_id_2) & (self._picture_id != ids)
        return self.embed(ids) * keep.unsqueeze(-1) + self._pad_id.sum()
""",
        run=_RUN,
        unsafe=True,
    ),
    Example(
        title="an object that __init__ makes, of a class that is known",
        before="""from bisect import bisect_left


class Words:
    def __init__(self, entries):
        self.entries = sorted(entries)

    @property
    def picture_id(self):
        return bisect_left(self.entries, "<pic>")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = Words(["a", "b", "<pic>"])  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)
""",
        after="""from bisect import bisect_left


class Words:
    def __init__(self, entries):
        self.entries = sorted(entries)

    @property
    def picture_id(self):
        return bisect_left(self.entries, "<pic>")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = Words(["a", "b", "<pic>"])  # the vocabulary
        self._picture_id = self.words.picture_id
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self._picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)
""",
        run="""def make():
    return Net()
calls = [(torch.tensor([[0, 1, 2, 3]]),), (torch.tensor([[1, 1, 0, 2], [3, 2, 1, 0]]),)]
""",
    ),
    Example(
        title="only a flag leads to the use",
        before="""class Net(nn.Module):
    def __init__(self, words, pictures):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)
        self.pictures = pictures

    def forward(self, ids):
        rows = self.embed(ids)
        if self.pictures:
            rows = rows * (ids != self.words.picture_id).unsqueeze(-1)
        return rows
""",
        after="""class Net(nn.Module):
    def __init__(self, words, pictures):
        super().__init__()
        self.words = words  # the vocabulary
        self._picture_id = self.words.picture_id
        self.embed = nn.Embedding(16, 8)
        self.pictures = pictures

    def forward(self, ids):
        rows = self.embed(ids)
        if self.pictures:
            rows = rows * (ids != self._picture_id).unsqueeze(-1)
        return rows
""",
        run=_RUN.replace("Net(Words())", "Net(Words(), True)"),
        unsafe=True,
    ),
    Example(
        title="the attribute is assigned somewhere",
        before="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)


def relabel(words):
    words.picture_id = 0
""",
        after="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self._picture_id = self.words.picture_id
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self._picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)


def relabel(words):
    words.picture_id = 0
""",
        run=_RUN,
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        """class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.config.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)
""",
        "configuration, by its name",
    ),
    NearMiss(
        """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)
        self.out = nn.Linear(8, words.width)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)
""",
        "configuration: a layer is sized by it",
    ),
    NearMiss(
        """class Net(nn.Module):
    def __init__(self, style):
        super().__init__()
        self.style = style

    def forward(self, x):
        return x * 2 if self.style.double else x
""",
        "a flag: plain attributes do not break, and it may be flipped",
    ),
    NearMiss(
        """class Net(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return torch.relu(x) * self.inner.scale + self.inner.offset
""",
        "what may be a parameter of a module",
    ),
    NearMiss(
        """from dataclasses import dataclass


@dataclass
class Words:
    picture_id: int = 3


class Net(nn.Module):
    def __init__(self, words: Words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)
""",
        "a dataclass: there is nothing to win",
    ),
    NearMiss(
        """class Words:
    def __init__(self, table):
        self.table = table

    @property
    def picture_id(self):
        return self.table["<pic>"]


class Net(nn.Module):
    def __init__(self, words: Words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)
""",
        "a getter that Dynamo traces",
    ),
    NearMiss(
        """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids, word):
        return self.embed(ids) * (ids != self.words.id_of(word)).unsqueeze(-1)
""",
        "a method with an argument that is not a constant",
    ),
    NearMiss(
        """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        return self.embed(ids) * (ids != self.words.get("<pic>")).unsqueeze(-1)
""",
        "a method of a dict",
    ),
    NearMiss(
        """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.words(ids) * (~slots).unsqueeze(-1)
""",
        "the helper is called with tensors: it may be a module",
    ),
    NearMiss(
        """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids, other):
        drop = lambda self: ids == self.words.picture_id
        return self.embed(ids) * (~drop(other)).unsqueeze(-1)
""",
        "another instance",
    ),
    NearMiss(
        """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        words = self.words

        def keep(self):
            return self != words.picture_id

        return self.embed(ids) * keep(ids).unsqueeze(-1)
""",
        "a local name, where the instance is out of sight",
    ),
    NearMiss(
        """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        return self.embed(ids)

    def finished(self, ids):
        return bool((ids == self.words.stop_id).any())
""",
        "code that is not compiled",
    ),
)
