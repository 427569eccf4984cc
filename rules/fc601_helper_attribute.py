"""FC601: a value of a host object, read in code that gets compiled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts, Held, Meeting, Read, self_name, wording
from patcher.rule import Applicability, Code, Cost, Edit, Example, Finding, Fix, Insert, NearMiss, Replace

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


class HostAttribute:
    """A value of a tokenizer, or of another plain object, that code which ``forward`` reaches compares with a tensor.

    What it does:
        Reads the value once, directly after ``__init__`` assigned the object, and uses ``self._image_token_id`` where
        compiled code of the class read ``self.tokenizer.image_token_id``, also where that went through a local name. A
        method that looks a constant up (``self.words.id_of("<pic>")``) is treated alike.

    Why it breaks compilation:
        What such an object answers comes out of a ``__getattr__``, a property or a method that ends in a C or Rust
        extension, which Dynamo cannot trace. The graph ends there, or the whole function runs eagerly.

    Fix safety:
        Safe when nothing in all scanned files speaks against the value being the same at any time. The object is
        assigned once, on every path through ``__init__`` and after ``super().__init__()``, from an argument without a
        default or from a call. No class above or below and no code outside assigns it again. Nothing tests whether it
        is there, passes None for it, assigns an attribute of that name (or ``pad_token`` where ``pad_token_id`` is
        read) on any object, or calls a method on it whose name says that it changes something.

        A class that is in the files is looked into: plain attributes, dataclasses and what Dynamo can trace are left
        alone, as there is nothing to win, and what reads changed state, random numbers or the clock is not touched. Of
        any other class four things are taken for granted: the object has the attribute when the module is built (else
        the error comes then, not at the first use); the value is an identifier or the like and no tensor, which its use
        shows (``==`` with a tensor, a fill value, ``ignore_index``); a method with a name such as ``id_of``,
        ``get_pad`` or ``convert_tokens_to_ids`` just looks something up; and nobody changes the value later in a way
        that the files do not show. Where only a flag of the instance leads to the use, or a name speaks of something
        that varies, the fix is unsafe. Modules, tensors, containers and configuration (by its name, or because layers
        are built from it) are left alone.

        A module that was pickled whole before the patch lacks the new attribute: load a state dict into a new one.

    References:
        The tokenizer fix of the nanoVLM report; PyTorch, "Common graph breaks" (calls into C extensions).
    """

    code: ClassVar[str] = "FC601"
    name: ClassVar[str] = "helper-attribute"
    triggers: ClassVar[tuple[bytes, ...]] = (b"def __init__(",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.ClassDef,)
    fixed_in: ClassVar[tuple[int, int] | None] = None
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report each value that the module class ``node`` reads from an object that it holds."""
        assert isinstance(node, ast.ClassDef)
        if not facts.is_module_class(node):
            return
        for held in facts.holdings.of(node):
            groups: dict[str, list[Read]] = {}
            for read in held.reads:
                if facts.reached(read.node) and not facts.eager_only(read.node):
                    groups.setdefault(read.key, []).append(read)
            for reads in groups.values():
                yield from _finding(held, sorted(reads, key=_position), facts)

    invalid: ClassVar[tuple[Example, ...]] = (
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
        ),
        Example(
            title="through a local name, and in a nested function",
            before="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        words = self.words

        def kept(x):
            return x.ne(words.picture_id)

        keep = kept(ids) & (ids != words.picture_id)
        return self.embed(ids) * keep.unsqueeze(-1)
""",
            after="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self._picture_id = self.words.picture_id
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        words = self.words

        def kept(x):
            return x.ne(self._picture_id)

        keep = kept(ids) & (ids != self._picture_id)
        return self.embed(ids) * keep.unsqueeze(-1)
""",
            run=_RUN,
        ),
        Example(
            title="a method with a constant",
            before="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        return self.embed(ids) * (ids != self.words.id_of("<pic>")).unsqueeze(-1)
""",
            after="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self._id_of_pic = self.words.id_of("<pic>")
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        return self.embed(ids) * (ids != self._id_of_pic).unsqueeze(-1)
""",
            run=_RUN,
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
        ids = F.pad(ids, (0, 2), value=self.words.pad_id)
        keep = ~torch.isin(ids, torch.tensor([self.words.pad_id, self.words.picture_id]))
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
        ids = F.pad(ids, (0, 2), value=self._pad_id_2)
        keep = ~torch.isin(ids, torch.tensor([self._pad_id_2, self._picture_id]))
        return self.embed(ids) * keep.unsqueeze(-1) + self._pad_id.sum()
""",
            run=_RUN,
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
            title="the object is replaced later",
            before="""class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def use(self, words):
        self.words = words

    def forward(self, ids):
        return self.embed(ids) * (ids != self.words.picture_id).unsqueeze(-1)
""",
            after=None,
            run=_RUN,
        ),
    )
    valid: ClassVar[tuple[NearMiss, ...]] = (
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
            """from bisect import bisect_left


class Words:
    def __init__(self, entries):
        self.entries = sorted(entries)

    def add(self, word):
        self.entries.append(word)

    @property
    def picture_id(self):
        return bisect_left(self.entries, "<pic>")


class Net(nn.Module):
    def __init__(self, words: Words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)
""",
            "a class that can change what it answers",
            reported=True,
        ),
        NearMiss(
            """class Net(nn.Module):
    def __init__(self, words=None):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)
""",
            "there may be no such object",
            reported=True,
        ),
        NearMiss(
            """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)


net = Net(None)
""",
            "None is passed for it",
            reported=True,
        ),
        NearMiss(
            """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        if self.words is None:
            return self.embed(ids)
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)
""",
            "there is a test for it",
            reported=True,
        ),
        NearMiss(
            """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)


def shorten(net):
    words = net.words
    words.remove("<pic>")
""",
            "the object is changed in place, under another name",
            reported=True,
        ),
        NearMiss(
            """class Net(nn.Module):
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
            "the attribute is assigned somewhere",
            reported=True,
        ),
        NearMiss(
            """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)


def relabel(words):
    words.picture = "<image>"
""",
            "the token that the id is of is assigned somewhere",
            reported=True,
        ),
        NearMiss(
            """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)


class Other(Net):
    def __init__(self, words):
        super().__init__(words)
        self.words = words.other
""",
            "a subclass takes another object",
            reported=True,
        ),
        NearMiss(
            """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        slots = ids == self.words.picture_id  # where pictures go
        return self.embed(ids) * (~slots).unsqueeze(-1)


def strip(net):
    net.words = None
""",
            "a function takes the object away",
            reported=True,
        ),
        NearMiss(
            """class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        return self.embed(ids) * (ids != self.words.next_id()).unsqueeze(-1)
""",
            "a method that gives something else each time",
            reported=True,
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
            """from bisect import bisect_left, insort


class Words:
    def __init__(self, entries):
        self.entries = sorted(entries)

    def grow(self, word):
        insort(self.entries, word)

    @property
    def picture_id(self):
        return bisect_left(self.entries, "<pic>")


class Net(nn.Module):
    def __init__(self, words: Words):
        super().__init__()
        self.words = words  # the vocabulary
        self.embed = nn.Embedding(16, 8)

    def forward(self, ids):
        return self.embed(ids) * (ids != self.words.picture_id).unsqueeze(-1)
""",
            "a function changes what the answer is read from",
            reported=True,
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


def _position(read: Read) -> tuple[int, int]:
    return read.node.lineno, read.node.col_offset


def _finding(held: Held, reads: list[Read], facts: Facts) -> Iterator[Finding]:
    first = reads[0]
    judged = _judge(held, reads, facts)
    if judged is None:
        return
    reason, assumption = judged
    message = f"`{ast.unparse(first.node)}` is read from a host object while compiled code runs"
    if reason:
        yield Finding(first.node, message, assumption=reason)
        return
    applicability = Applicability.UNSAFE if assumption else Applicability.SAFE
    yield Finding(first.node, message, Fix(tuple(_edits(held, reads, facts)), applicability), assumption)


def _judge(held: Held, reads: list[Read], facts: Facts) -> tuple[str, str] | None:
    """Why there is no fix, and what an unsafe one takes for granted; None when there is nothing to win."""
    read = reads[0]
    meeting = max(facts.meetings.of(r.node) for r in reads)
    if meeting is Meeting.NONE:
        return None
    last, assumption = read.path[-1], ""
    known = facts.holdings.lookup(held, read)
    if known is not None and (known.plain or known.traced or known.tensors):
        return None
    if known is None or not known.complete:
        if meeting is not Meeting.NUMBER and (read.call or not wording.suggests_host_number(last)):
            return None
        if any(map(wording.suggests_variation, (held.name, *read.path))):
            assumption = f"`{ast.unparse(read.node)}` does not change while the module lives"
        if read.call and not wording.suggests_lookup(last):
            assumption = f"`{last}` only looks something up"
    reasons = [*held.reasons, *facts.holdings.changes(held, read)]
    if known is not None and known.reason:
        reasons.append(known.reason)
    if any(r.node.lineno != r.node.end_lineno for r in reads):
        reasons.append("it is spread over several lines")
    if all(facts.holdings.conditional(r.node) for r in reads):
        assumption = assumption or "the object has that attribute also where it is not used"
    return (reasons[0] if reasons else ""), assumption


def _edits(held: Held, reads: list[Read], facts: Facts) -> Iterator[Edit]:
    read = reads[0]
    arguments = [*read.call.args, *(k.value for k in read.call.keywords)] if read.call else []
    constants = [str(a.value) for a in arguments if isinstance(a, ast.Constant)]
    words = [w for text in (read.path[-1], *constants) for w in re.findall(r"\w+", text)]
    name = facts.fresh_attribute("_" + "_".join(words).lstrip("_"), held.cls)
    method = held.store.method
    me = self_name(method) if method is not None else None
    call = ""
    if read.call:
        keywords = [""] * len(read.call.args) + [f"{k.arg}=" for k in read.call.keywords]
        call = "(" + ", ".join(f"{k}{{{i}}}" for i, k in enumerate(keywords)) + ")"
    path = ".".join((held.name, *read.path))
    yield Insert(held.store.statement, (Code(f"{me}.{name} = {me}.{path}{call}", tuple(arguments)),), after=True)
    for r in reads:
        method = facts.syntax.method_of(r.node)
        assert method is not None
        yield Replace(r.node, Code(f"{self_name(method)}.{name}"))
