"""A loop that picks the rows of one group after the other, written over all rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts.groups.row_values import Picked
from patcher.rule import Code, block, respelled, stacked
from rules.fc404_nonzero_loop.row_loops import RowLoop, Sum

#: An expression longer than this gets a line of its own.
LONG = 24
_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


class StaticForm:
    """Writes ``found``, with ``mask``, ``weights`` and ``rows`` as names for what the rows are masked by, and more."""

    def __init__(self, found: RowLoop, mask: str, weights: str, rows: str) -> None:
        self.found, self.turns, self.values = found, found.turns, found.turns.values
        self.mask, self.weights, self.rows = mask, weights, rows

    def loop(self) -> Code:
        """The loop over all groups."""
        found, group = self.found, self.values.group
        lines = list(self._block(self.turns.loop.body))
        if found.whole is None:
            header = Code(f"for {_names(self.turns.loop.target)} in {{0}}:", (respelled(self.turns.loop.iter, {}),))
            return block(header, lines)
        if found.absent is not None:
            none = Code(f"{{0}}[{group}].logical_not().all()", (found.whole,))
            checked = Code("torch._assert_async({0}, 'rows for a group that is not there')", (none,))
            header = Code(f"if {group} >= {{0}}.shape[0]:", (respelled(found.absent, {}),))
            lines.insert(0, block(header, [checked, Code("continue")]))
        return block(Code(f"for {group} in range({{0}}.shape[0]):", (found.whole,)), lines)

    def _block(self, body: list[ast.stmt]) -> Iterator[Code]:
        for s in body:
            if s in self.turns.opened:
                yield from self._block(s.body)  # type: ignore[attr-defined]
            elif s is self.turns.pick:
                yield self._picked()
                if self.values.weights is not None:
                    yield Code(f"{self.weights} = {{0}}", (self._weights(self.values.weights),))
            elif s in self.turns.sums:
                yield from self._summed(self.turns.sums[s])
            elif s not in self.turns.gone:
                yield self._statement(s)

    def _statement(self, s: ast.stmt) -> Code:
        match s:
            case ast.Assign(targets=[target], value=value):
                several = value.elts if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else [value]
                holes = ", ".join(f"{{{i}}}" for i in range(len(several)))
                return Code(f"{_names(target)} = {holes}", tuple(map(self._over_all, several)))
            case ast.AugAssign(target=target, op=op, value=value):
                return Code(f"{{0}} {_SIGNS[type(op)]}= {{1}}", (target, self._over_all(value)))
            case ast.If(test=test, body=body, orelse=orelse):
                chosen = block(Code("if {0}:", (self._over_all(test),)), list(self._block(body)) or [Code("pass")])
                other = list(self._block(orelse))
                return stacked(chosen, block(Code("else:"), other)) if other else chosen
        return Code("continue")

    def _picked(self) -> Code:
        mask = self.turns.mask
        assert mask is not None
        text = f"{{0}}[{self.values.group}]" if mask.of_group else "{0}"
        whole = Code(text + ".squeeze(0)" * mask.squeezed, (respelled(mask.of, {}),))
        whole = whole if mask.boolean else Code("{0}.bool()", (whole,))
        return Code(f"{self.mask} = {{0}}.T" if self.turns.transposed else f"{self.mask} = {{0}}", (whole,))

    def _summed(self, s: Sum) -> Iterator[Code]:
        source: Code = self._over_all(s.source)
        if s.mask is not None or _length(source) > LONG:
            yield Code(f"{self.rows} = {{0}}", (source,))
            source = Code(self.rows)
        if s.mask is None:
            chosen = Code(f"torch.where({self.mask}.any(-1, keepdim=True), {{0}}, 0)", (source,))
        else:
            yield Code(f"{self.mask} = {s.mask.id}.reshape(-1, *[1] * ({self.rows}.dim() - 1))")
            other = Code("0") if s.how == "add" else _row_by_row(s.into, s.mask)
            chosen = Code(f"torch.where({self.mask}, {self.rows}, {{0}}).view({s.into.id}.shape)", (other,))
        yield Code(
            {"anew": "{0} = {0} + {1}", "add": "{0}.add_({1})", "copy": "{0}.copy_({1})"}[s.how], (s.into, chosen)
        )

    # --- expressions ------------------------------------------------------------------------------------------------

    def _over_all(self, e: ast.expr) -> Code:
        """``e`` over all rows."""
        if e in self.values.copied:
            return Code("{0}.clone()", (self._made(e),))
        return self._made(e)

    def _made(self, e: ast.expr) -> Code:
        if e in self.values.picked:
            return self._of_all(self.values.picked[e])
        known = self.values.picked.keys() | self.values.copied
        return respelled(e, {n: self._over_all(n) for n in ast.walk(e) if n in known and n is not e})  # type: ignore[arg-type]

    def _of_all(self, p: Picked) -> Code:
        if p.of is None:
            return Code(self.values.group)
        if p.weighs:
            return Code(self.weights)
        if p.mask is None:
            return self._over_all(p.of)
        rows = _row_by_row(self._over_all(p.of), p.mask)
        return rows if p.at is None else Code(f"{{0}}[:, {{1}}{', None' * p.column}]", (rows, p.at))

    def _weights(self, p: Picked) -> Code:
        """The weights of all rows: zero where a row is not picked."""
        assert p.of is not None
        whole, keep = self._over_all(p.of), ", keepdim=True" * p.column
        if p.places:
            fit = Code(f"{{0}}{'.T' * p.turned}[:, : {self.mask}.shape[1]]", (whole,))
            return Code(f"torch.where({self.mask}, {{0}}, 0).sum(-1{keep})", (fit,))
        each = Code(f"{self.mask}.sum(-1) * {{0}}[:, {self.values.group}]", (whole,))
        return Code("{0}[:, None]", (each,)) if p.column else each


def _names(target: ast.expr) -> str:
    text = ast.unparse(target)
    return text[1:-1] if isinstance(target, ast.Tuple) else text


def _row_by_row(e: ast.expr | Code, mask: ast.Name) -> Code:
    """``e``, which ``mask`` fits, with one row after the other."""
    return Code(f"{{0}}.flatten(0, {mask.id}.dim() - 1)", (e,))


def _length(code: ast.expr | Code) -> int:
    """How many characters ``code`` has, parentheses of its parts aside."""
    if isinstance(code, Code):
        return len(code.template) + sum(_length(p) - 3 for p in code.parts)
    return len(ast.unparse(code))
