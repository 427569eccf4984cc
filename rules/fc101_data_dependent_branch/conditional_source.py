"""A branch on data written with ``torch.cond``: its arms as functions, and which of them runs."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Edit, Enclose, Fix, NameArms, block, stacked
from rules.fc101_data_dependent_branch.conditional import Conditional, Conditionals
from rules.fc101_data_dependent_branch.written_condition import as_predicate, holes

#: So long may the value of an arm be that is written as a ``lambda``, where the line has room for it.
_SHORT = 90
_STEP = "    "


def conditional_fix(branch: Conditional, facts: Facts) -> Fix:
    """``branch``, and those in its arms, as ``torch.cond`` in compiled code, and as they were in eager code."""
    return Fix(tuple(_Writer(b, facts).edit() for b in (branch, *branch.inner)), Applicability.UNSAFE)


@dataclass(frozen=True)
class _Writer:
    branch: Conditional
    facts: Facts

    def edit(self) -> Edit:
        """Arms of one short assignment are written once more; else they get a name, and are called by both."""
        arms, node = self.branch.arms, self.branch.arms.node
        predicate = as_predicate(self.branch.condition.tensor)
        values = [self._short_value(body) for body in arms.bodies]
        if all(value is not None for value in values):
            given = [f"{{{i}}}{self._made(copied)}" for i, copied in enumerate(self.branch.copied, 1)]
            given += [] if node.orelse else [arms.results[0] + self._made(True)]
            chosen = self._choice([f"lambda: {value}" for value in given], "")
            line = Code(chosen, (predicate, *filter(None, values)))
            return Enclose((node,), stacked(block(Code("if {0}:", (self._asked(),)), [line]), Code("else:")))
        names = self._names()
        functions = [self._called(name, copied) for name, copied in zip(names, self.branch.copied, strict=True)]
        functions += [] if node.orelse else [self._called("", True)]
        operands = ", ".join(arms.operands)
        chosen = self._choice(functions, f"({operands}{',' if len(arms.operands) == 1 else ''})" if operands else "")
        compiled = block(Code("if {0}:", (self._asked(),)), [Code(chosen, (predicate,))])
        eager = block(Code("elif {0}:", (Code("{0}", (node.test,)),)), [Code(self._assigned(names[0], operands))])
        others = [block(Code("else:"), [Code(self._assigned(name, operands))]) for name in names[1:]]
        results = tuple(Code(f"return {', '.join(arms.results)}") for _ in names)
        headers = tuple(Code(self._header(name, arms.operands)) for name in names)
        return NameArms(node, headers, results, (stacked(compiled, eager, *others),))

    # --- lines, which are folded where they get too long -------------------------------------------------------------

    def _room(self, deeper: int = 0) -> int:
        return self.facts.line_length - self.branch.arms.node.col_offset - deeper * len(_STEP)

    def _header(self, name: str, operands: tuple[str, ...]) -> str:
        line = f"def {name}({', '.join(operands)}):"
        if len(line) <= self._room():
            return line
        return f"def {name}(\n" + "".join(f"{_STEP}{o},\n" for o in operands) + "):"

    def _assigned(self, name: str, operands: str) -> str:
        left = ", ".join(self.branch.arms.results)
        line = f"{left} = {name}({operands})"
        return line if len(line) <= self._room(1) else f"{left} = {name}(\n{_STEP}{operands}\n)"

    def _choice(self, functions: list[str], operands: str) -> str:
        cond = self.facts.writing.spelling("torch.cond", self.branch.arms.node)
        left = ", ".join(self.branch.arms.results)
        predicate = len(ast.unparse(self.branch.arms.node.test))
        arguments = ["{0}", *functions, *([operands] if operands else [])]
        line = f"{left} = {cond}({', '.join(arguments)})"
        if len(line) + predicate <= self._room(1):
            return line
        folded = [
            f.replace("tuple(t", f"tuple(\n{2 * _STEP}t").replace(" for t in", f"\n{2 * _STEP}for t in")
            for f in arguments
        ]
        parts = [
            part if len(part) < self._room(2) else _closed(other) for part, other in zip(arguments, folded, strict=True)
        ]
        return f"{left} = {cond}(\n" + "".join(f"{_STEP}{part},\n" for part in parts) + ")"

    # --- parts ------------------------------------------------------------------------------------------------------

    def _made(self, copied: bool) -> str:
        """What is done with the results of an arm so that ``torch.cond`` takes them.

        None may be what an arm was given.
        """
        return ".clone()" if copied else ""

    def _called(self, name: str, copied: bool) -> str:
        """The function that ``torch.cond`` is given for an arm that has that name, or that there is none of."""
        arms, made = self.branch.arms, self._made(copied)
        if not made:
            return name
        operands = ", ".join(arms.operands)
        given = f"{name}({operands})" if name else f"({', '.join(arms.results)})"
        if len(arms.results) == 1:
            value = (given if name else arms.results[0]) + made
        elif name:
            value = f"tuple(t{made} for t in {given})"
        else:
            value = f"({', '.join(result + made for result in arms.results)})"
        return f"lambda {operands}: {value}" if operands else f"lambda: {value}"

    def _asked(self) -> Code:
        """The test for compiled code that gets to the part of the condition which is data."""
        compiling = self.facts.writing.spelling("torch.compiler.is_compiling", self.branch.arms.node) + "()"
        guard = self.branch.condition.guard
        if not guard:
            return Code(compiling)
        if self.branch.condition.conjunction:
            return Code(f"{compiling} and {holes(len(guard), ' and ')}", guard)
        return Code(f"{compiling} and not ({holes(len(guard), ' or ')})", guard)

    def _short_value(self, body: list[ast.stmt]) -> ast.expr | None:
        """What an arm gives that does nothing else."""
        match body:
            case [ast.Assign(targets=[ast.Name()], value=value)] if len(self.branch.arms.results) == 1:
                room = min(_SHORT, self._room(2) - len("lambda: ,") - len(self._made(True)))
                return value if len(ast.unparse(value)) <= room and value.lineno == value.end_lineno else None
        return None

    def _names(self) -> list[str]:
        """Names for the arms: after the first result."""
        arms, number = self.branch.arms, self._above() + 1
        told = f"_{number}" if number > 1 else ""
        wishes = [f"{arms.results[0]}_if_{outcome}{told}" for outcome in ("true", "false")]
        return [self.facts.writing.fresh_local(wish, arms.node) for wish in wishes[: len(arms.bodies)]]

    def _above(self) -> int:
        """How many branches above it in its function have the same first result."""
        node, conditionals = self.branch.arms.node, self.facts.ask(Conditionals)
        function = self.facts.syntax.function_of(node)
        assert function is not None
        found = 0
        for n in self.facts.syntax.subtree(function):
            if isinstance(n, ast.If) and n.lineno < node.lineno and self.facts.syntax.function_of(n) is function:
                other = conditionals.of(n)
                found += isinstance(other, Conditional) and other.arms.results[0] == self.branch.arms.results[0]
        return found


def _closed(folded: str) -> str:
    """A call that was broken over lines, with its bracket on a line of its own."""
    return f"{folded[:-1]}\n{_STEP})" if "\n" in folded else folded
