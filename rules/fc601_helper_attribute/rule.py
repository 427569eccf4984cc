"""FC601: a value of a host object, read in code that gets compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.checks.caught import Caught
from patcher.facts.syntax.classes import self_name
from patcher.rule import Applicability, Code, Edit, Finding, Fix, Insert, Replace, Rule, Where
from rules.fc601_helper_attribute.examples import INVALID, VALID
from rules.fc601_helper_attribute.holdings import Held, Holdings

#: What reading an attribute may raise, if it runs code.
_ERRORS = ("AssertionError", "IndexError", "KeyError", "NotImplementedError", "TypeError", "ValueError")


class HostAttribute(Rule):
    """A value of a tokenizer, or of another plain object, that compiled code compares with a tensor.

    What it does:
        Reads the value once, directly after ``__init__`` assigned the object. Compiled code that compared a tensor with
        ``self.tokenizer.image_token_id`` compares it with ``self._image_token_id``.

    Why it breaks compilation:
        What such an object answers comes out of a ``__getattr__`` or a property that ends in a C or Rust extension,
        which Dynamo cannot trace. The graph breaks there, or the whole function runs eagerly.

    Fix safety:
        Safe when

        - the object is assigned once, after ``super().__init__()``, from a call, or from an argument without a default
          whose class is in the files;
        - nothing in all scanned files assigns it again, passes None for it, assigns an attribute of that name (or
          ``pad_token`` where ``pad_token_id`` is read) on any object, or calls a method on it that changes something;
        - no flag of the instance leads to the use, so that the object has the attribute when the module is built
          (else the error comes then, not at the first use);
        - a class of it that is in the files answers from what its constructor made.

        Unsafe otherwise (who passes a tokenizer may add tokens to it later): it assumes that the value stays the same
        while the module lives.

        Not fixed when

        - the object is configuration (by its name), a module, a tensor or a container, or is handed on;
        - its class is in the files and Dynamo can trace how it answers.

        A module that was pickled whole before the patch lacks the new attribute: load a state dict into a new one.

    References:
        The tokenizer fix of the nanoVLM report; PyTorch, "Common graph breaks" (calls into C extensions).
    """

    code = "FC601"
    name = "helper-attribute"
    triggers = (b"def __init__(",)
    listens_to = (ast.ClassDef,)
    where = Where.ANYWHERE
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report each value that the module class ``node`` reads from an object that it holds."""
        assert isinstance(node, ast.ClassDef)
        if not facts.is_module_class(node):
            return
        holdings = Holdings(facts, node)
        for held in holdings.held():
            for part, reads in held.reads.items():
                if held.source and holdings.is_traced(held.source, part):
                    continue
                text = ast.unparse(reads[0])
                fix, assumption = Applicability.SAFE, ""
                unknown = isinstance(held.store.value, ast.Name) and not held.source  # whose it is, and of what class
                caught = (facts.ask(Caught).why(facts.syntax.statement_of(r), _ERRORS, here=True) for r in reads)
                changes = holdings.may_change(held, part) or any(map(holdings.is_conditional, reads))
                if unknown or any(caught) or changes:
                    fix, assumption = Applicability.UNSAFE, f"`{text}` is there from the start and never changes"
                message = f"`{text}` is read from a host object while compiled code runs"
                yield Finding(reads[0], message, Fix(tuple(_edits(held, part, reads, facts)), fix), assumption)

    invalid = INVALID
    valid = VALID


def _edits(held: Held, part: str, reads: list[ast.Attribute], facts: Facts) -> Iterator[Edit]:
    method = held.store.method
    assert method is not None
    cls = facts.syntax.class_of(method)
    assert cls is not None
    name = facts.writing.fresh_attribute("_" + part.lstrip("_"), cls)
    me = self_name(method)
    yield Insert(held.store.statement, (Code(f"{me}.{name} = {me}.{held.store.name}.{part}"),), after=True)
    for read in reads:
        around = facts.syntax.method_of(read)
        assert around is not None
        yield Replace(read, Code(f"{self_name(around)}.{name}"))
