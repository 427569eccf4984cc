"""What reading an attribute (or calling a method) of a project's own plain class runs, from the index of all files."""

from __future__ import annotations

from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.tables.wording import suggests_change

_TRACED = frozenset(name for kind in (dict, list, set, str, bytes, int, float, tuple) for name in dir(kind))
_OPAQUE_BUILTINS = frozenset("open input print exec eval compile hash id iter next __import__".split())
_DYNAMIC = frozenset("__dict__ vars getattr".split())


@dataclass(frozen=True)
class Lookup:
    """What is known of one getter.

    ``plain``: there is no code to run, the attribute is just there. ``traced``: nothing runs that Dynamo cannot follow.
    In both cases there is nothing to win. ``tensors``: it deals with tensors. ``complete``: the whole class is known.
    ``reason``: why the answer may change, or "".
    """

    plain: bool = False
    traced: bool = False
    tensors: bool = False
    complete: bool = True
    reason: str = ""


class Lookups(Analysis):
    """Follows getters through the functions of the project."""

    def of(self, cls: str, attribute: str) -> Lookup:
        """What ``instance.attribute`` does, for an instance of the project's class ``cls``."""
        project = self.project
        family, unknown = project.family(cls)
        getters = project.methods(cls, attribute)
        stored = any(attribute in s.stores | s.init_stores for c in family if (s := project.known_class(c)) is not None)
        if not getters and not stored:
            getters = [g for name in ("__getattr__", "__getattribute__") for g in project.methods(cls, name)]
        complete = not unknown
        if not getters and (stored or complete):
            return Lookup(plain=True, complete=complete)
        if not getters:
            return Lookup(complete=False)
        runs = self._runs(getters)
        if any(m.startswith("torch.") or m == "torch" for m in runs):
            return Lookup(tensors=True, complete=complete)
        traced = not any(self._opaque(m) for m in runs)
        return Lookup(False, traced, False, complete, self._why_not_constant(cls, family, runs))

    def _runs(self, getters: list[str]) -> set[str]:
        """All that the functions mention, with those that they call; "~x" for a global of theirs or a builtin."""
        project = self.project
        found: set[str] = set()
        seen: set[str] = set()
        stack = list(getters)
        while stack:
            name = stack.pop()
            function = project.function(name)
            if function is None or name in seen:
                continue
            seen.add(name)
            owner = name.rpartition(".")[0]
            for mention in function.mentions:
                if mention.startswith("self."):
                    methods = project.methods(owner, mention[5:])
                    stack += methods
                    if methods:
                        continue
                elif project.function(mention) is not None:
                    stack.append(mention)
                    continue
                elif project.known_class(mention) is not None:
                    stack.append(f"{mention}.__init__")
                    continue
                ours = mention.startswith(f"{self._module(owner)}.")
                found.add("~" + mention.rpartition(".")[2] if ours else mention)
        return found

    def _module(self, owner: str) -> str:
        """The module of a dotted class or function's owner."""
        while owner and self.project.known_class(owner) is not None:
            owner = owner.rpartition(".")[0]
        return owner

    def _opaque(self, mention: str) -> bool:
        """Whether a mention may be of something that is not Python source, or not ours."""
        if mention.startswith("self."):
            return False
        if mention.startswith("~"):
            return mention[1:] in _OPAQUE_BUILTINS
        if mention.startswith("."):
            return mention[1:] not in _TRACED
        return True

    def _why_not_constant(self, cls: str, family: frozenset[str], runs: set[str]) -> str:
        changed = self.project.attributes.changed
        dynamic = any(m.lstrip("~").rpartition(".")[2] in _DYNAMIC for m in runs)
        known = [s for c in family if (s := self.project.known_class(c)) is not None]
        stored = frozenset[str]().union(*(s.stores for s in known)) if known else frozenset()
        everything = stored.union(*(s.init_stores for s in known)) if known else frozenset()
        for mention in sorted(runs):
            last = mention.lstrip("~.").rpartition(".")[2]
            if mention.startswith("self."):
                if last in stored or changed(last):
                    return f"`{last}` is changed"
            elif mention.startswith("~"):
                if changed(mention):
                    return f"`{last}` is changed"
                if last in ("next", "input", "open", "print"):
                    return f"`{last}` is called"
            elif mention.startswith(".") and last not in _TRACED and changed(last):
                return f"`{last}` is changed"
            elif suggests_change(last) or suggests_change(mention.rpartition(".")[0].rpartition(".")[2]):
                return f"`{mention.lstrip('.')}` may change it"
        if dynamic:
            touched = stored | {name for name in everything if changed(name)}
            if touched:
                return f"`{min(touched)}` is changed"
        return ""
