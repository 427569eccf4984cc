"""What the user asked for, once options and configuration are merged."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Literal, NamedTuple

from patcher.measuring.observed import Observations

LATEST_TORCH = (2, 13)

#: How much a finding may cost, as far as its place tells: each layer or turn of a loop; each call, or nobody knows;
#: some calls, behind a flag, on the way to an error.
SEVERITIES = ("high", "medium", "low")


def severity(rarity: int) -> str:
    """The word for a place in the order of how often compiled code gets there, 0 for most often."""
    return SEVERITIES[0 if rarity <= 1 else 1 if rarity <= 3 else 2]


def matches(path: str, pattern: str, root: str) -> bool:
    """Whether a glob is the name of ``path``, or its path below ``root``; ``*`` also stands for slashes."""
    below = os.path.relpath(os.path.abspath(path), os.path.abspath(root)).replace(os.sep, "/")
    forms = (os.path.basename(path), below, "/" + below)
    return any(fnmatchcase(form, pattern.rstrip("/")) for form in forms)


class IgnoredIn(NamedTuple):
    """Rules that say nothing in the files of a glob, which starts at ``root``."""

    pattern: str
    root: str
    codes: tuple[str, ...]


class Unit(NamedTuple):
    """What of a rule's work is taken or left as one: its findings in one function (or class, or ``""``: a module).

    ``path``: as the user spells it. ``scope``: the qualified name within the module.
    """

    code: str
    path: str
    scope: str


class TorchSetting(NamedTuple):
    """A setting of PyTorch with the value that it is given.

    ``kind``: what ``name`` is: an attribute of ``torch._dynamo.config``, a set there to which ``value`` is added (a
    dotted name), or an argument of ``torch.compile``; "blocks": the path of a list of modules that are compiled one by
    one, in a model of the dotted class ``value``.
    """

    kind: Literal["config", "member", "argument", "blocks"]
    name: str
    value: bool | int | str = True

    @property
    def told(self) -> str:
        """As code says it, without where it stands: ``allow_rnn = True``."""
        if self.kind == "member":
            return f"{self.name}.add({str(self.value).removeprefix('builtins.')})"
        if self.kind == "blocks":
            return self.written
        value = f'"{self.value}"' if isinstance(self.value, str) else repr(self.value)
        return f"{self.name} = {value}" if self.kind == "config" else f"{self.name}={value}"

    @property
    def written(self) -> str:
        """As it can be written into a program: a line of its own, or what a call of ``torch.compile`` is given."""
        if self.kind == "blocks":
            return f"for block in model.{self.name}: block.compile(...)"
        return f"torch.compile(..., {self.told})" if self.kind == "argument" else f"torch._dynamo.config.{self.told}"


_WRITTEN = re.compile(
    r"torch\._dynamo\.config\.(?P<config>\w+) = (?P<given>\S+)"
    r"|torch\._dynamo\.config\.(?P<member>\w+)\.add\((?P<added>[\w.]+)\)"
    r"|torch\.compile\(\.\.\., (?P<argument>\w+)=(?P<passed>\w+)\)"
)
_VALUES: Mapping[str, bool] = {"True": True, "False": False}


def torch_setting(code: str) -> TorchSetting | None:
    """The setting that is written so, the reverse of `TorchSetting.written`; None where there is no such value."""
    found = _WRITTEN.fullmatch(code)
    if found is None:
        return None
    if found["member"]:
        name = found["added"]
        return TorchSetting("member", found["member"], name if "." in name else f"builtins.{name}")
    given = found["given"] or found["passed"]
    value = int(given) if given.isdecimal() else _VALUES.get(given)
    if value is None:
        return None
    return TorchSetting("config" if found["config"] else "argument", found["config"] or found["argument"], value)


@dataclass(frozen=True)
class Varied:
    """What a run has compiled again for: a parameter of a function, as a failed guard names it.

    ``path``: of its file. ``function``: its qualified name within the module (``Net.forward``), which stays when lines
    move. ``dim``: the dimension whose size was another one; None when the number of items in a list was. ``one``:
    whether the size 1 was among them, for which Dynamo compiles apart.
    """

    path: str
    function: str
    parameter: str
    dim: int | None
    one: bool = False


class Extent(NamedTuple):
    """A function in which a run has broken so often, the calls that it makes included, that its graphs are small.

    ``path``: of its file. ``function``: its qualified name within the module. ``breaks``: so many places break in it,
    ``of`` all places of the run that do; 0: its tensor statements might be better compiled by themselves. ``graphs``:
    that start in it in one pass over all calls, with ``operators`` in them; ``of_graphs``, ``of_operators``: of all.
    """

    path: str
    function: str
    breaks: int
    of: int
    graphs: int
    of_graphs: int
    operators: int
    of_operators: int


class NoFunctionError(LookupError):
    """What `Settings.compiled` names is no function of the module, which is there; the message is one line."""


@dataclass(frozen=True)
class Settings:
    """The choices that reach the engine. ``select`` and ``ignore`` hold codes, code prefixes or rule names.

    ``only``: the units that may be fixed, the findings of all others count as silenced; None: all. ``evidence``:
    what a run of the user's model has shown, for rules that cannot tell from the source. ``traced``: the functions
    (path and qualified name within the module) that the run has compiled, whoever calls them. ``extents``: those
    that might better be left out of graphs as a whole, the one that promises most first. ``distrusted``: the codes
    of rules that fix nothing here, whatever they find, and why. ``severities``: of the findings that count.
    ``per_file_ignores``: what is silenced in some files. ``device_asserts``: whether a fix that asserts on the
    device may be safe. ``torch_settings``: what of PyTorch is set where the model is compiled, as a run has shown
    to help. ``models``: the dotted classes of the models that were run, as the run imports them; () when that is
    not known. ``compiled``: what code outside of the given files compiles (``module:function``). ``line_length``: how
    long the project lets its lines be; None: it does not say. ``switches``: of rules that are off by themselves, those
    that are on. ``capacity``: for how many places a cache gets room. ``observed``: the types that a run has seen;
    ``measured``: whether fixes that take them may be made where ``unsafe`` ones may not.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    strategies: Mapping[str, str] = field(default_factory=dict)
    target_torch: tuple[int, int] = LATEST_TORCH
    only: frozenset[Unit] | None = None
    evidence: tuple[Varied, ...] = ()
    traced: frozenset[tuple[str, str]] = frozenset()
    extents: tuple[Extent, ...] = ()
    distrusted: Mapping[str, str] = field(default_factory=dict)
    severities: frozenset[str] = frozenset(SEVERITIES)
    per_file_ignores: tuple[IgnoredIn, ...] = ()
    device_asserts: bool = True
    torch_settings: tuple[TorchSetting, ...] = ()
    models: tuple[str, ...] = ()
    compiled: tuple[str, ...] = ()
    line_length: int | None = None
    switches: frozenset[str] = frozenset()
    capacity: int | None = None
    measured: bool = False
    observed: Observations = field(default_factory=Observations)

    def wants(self, code: str, name: str, switch: str = "") -> bool:
        """Whether the rule ``code``/``name`` takes part in this run; the longer of two matching prefixes wins.

        ``switch``: that of a rule that takes part only where it is selected or switched on.
        """
        if switch and not self.select and switch not in self.switches:
            return False
        chosen = _strength(self.select, code, name) if self.select else 0
        return chosen >= 0 and _strength(self.ignore, code, name) < max(chosen, 1)

    def ignores(self, code: str, name: str) -> bool:
        """Whether the rule would take part if it were not ignored."""
        selected = not self.select or _strength(self.select, code, name) >= 0
        return selected and not self.wants(code, name)

    def ignores_in(self, path: str, code: str, name: str) -> bool:
        """Whether the rule says nothing in the file ``path``: it or a folder around it is named."""
        return any(
            _strength(item.codes, code, name) >= 0
            and any(matches(place, item.pattern, item.root) for place in _around(path, item.root))
            for item in self.per_file_ignores
        )

    def strategy(self, key: str) -> str:
        """What the user chose for ``key``; "auto" when nothing."""
        return self.strategies.get(key, "auto")


def _around(path: str, root: str) -> list[str]:
    """The file, and the folders around it that are below ``root``."""
    whole, top = PurePath(os.path.abspath(path)), PurePath(os.path.abspath(root))
    return [str(whole), *(str(folder) for folder in whole.parents if top in folder.parents)]


def _strength(patterns: tuple[str, ...], code: str, name: str) -> int:
    if name in patterns:
        return len(code)
    return max((len(p) for p in patterns if code.startswith(p.upper())), default=-1)
