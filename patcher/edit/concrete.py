"""Edits on a concrete syntax tree, which keeps every character of what it does not touch. The only user of LibCST."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from patcher.edit.spans import EditError, Span, parts_of, span_of
from patcher.files.lines import form_feed, split_lines
from patcher.rule import Code, Decorate, Edit, Enclose, Insert, MoveTail, NameArms, Replace, ReplaceStatements

_HOLE = re.compile(r"\{(\d+)\}")
_PLACE = re.compile(r"^__part_(\d+)__$")


@dataclass(frozen=True)
class _Tail:
    """The statements of a function's body from ``start`` to ``end`` go into ``function``; ``call`` takes their place.

    ``result``: what comes below them.
    """

    start: int
    end: int | None
    function: cst.FunctionDef
    call: cst.SimpleStatementLine
    result: tuple[cst.SimpleStatementLine, ...]


@dataclass(frozen=True)
class _Arms:
    """The arms of an ``if`` go into ``functions``, each with a last line; ``code`` stands below them."""

    functions: tuple[cst.FunctionDef, ...]
    results: tuple[cst.SimpleStatementLine, ...]
    code: tuple[cst.CSTNode, ...]


@dataclass
class _Plan:
    """What happens at each node of the concrete tree."""

    replace: dict[cst.CSTNode, cst.BaseExpression]
    statements: dict[cst.CSTNode, list[cst.CSTNode]]
    before: dict[cst.CSTNode, list[cst.CSTNode]]
    after: dict[cst.CSTNode, list[cst.CSTNode]]
    decorators: dict[cst.CSTNode, list[cst.Decorator]]
    spaced: dict[cst.CSTNode, list[cst.EmptyLine]]
    tails: dict[cst.CSTNode, _Tail]
    enclosed: dict[cst.CSTNode, tuple[cst.If, list[cst.CSTNode]]]
    comments: dict[cst.CSTNode, list[cst.EmptyLine]]
    folds: dict[cst.CSTNode, int]
    arms: dict[cst.CSTNode, _Arms]


class Patch:
    """Some whole statements of a module, whose first line is the module's line ``first`` (from 1).

    ``length``: how long a new line may be.
    """

    def __init__(self, text: str, first: int, length: int) -> None:
        self.offset = first - 1
        wrapper = MetadataWrapper(_without_header(cst.parse_module(text)), unsafe_skip_copy=True)
        self.module = wrapper.module
        self.line_length = length
        self.lines = split_lines(text)
        self.spans: dict[Span, list[cst.CSTNode]] = {}
        self.calls: dict[cst.CSTNode, Span] = {}
        for node, where in wrapper.resolve(PositionProvider).items():
            key = (where.start.line, where.start.column, where.end.line, where.end.column)
            self.spans.setdefault(key, []).append(node)
            if isinstance(node, cst.Call):
                self.calls[node] = key
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        stack: list[cst.CSTNode] = [self.module]
        while stack:
            node = stack.pop()
            for child in node.children:
                self.parents[child] = node
                stack.append(child)

    def apply(self, edits: Sequence[Edit]) -> str:
        """The text with ``edits`` made. Raises EditError when one does not fit it."""
        plan = _Plan({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
        for edit in edits:
            self._add(edit, plan)
        self._fold_long(edits, plan)
        firsts = frozenset(b for b in plan.arms if b in getattr(self.parents[b], "body", ())[:1])
        module = self.module.visit(_Apply(plan, self.folded, frozenset(self.module.body), firsts))
        assert isinstance(module, cst.Module)
        return module.code

    def _add(self, edit: Edit, plan: _Plan) -> None:
        match edit:
            case Replace(target=target, code=code):
                old = self.expression(target)
                new = self.build_expression(code, old)
                if isinstance(old, cst.Attribute) and isinstance(new, cst.Attribute):
                    new = new.with_changes(dot=old.dot)  # with the line break and the comment before it
                plan.replace[old] = fitting = _fit(new, self.parents[old], old)
                if lost := _lost(old, fitting):
                    plan.comments.setdefault(self._above(old), []).extend(lost)
            case ReplaceStatements(targets=targets, code=codes):
                lines = [self.line(t) for t in targets]
                new_lines = [self.build_statement(c) for c in codes]
                used = [p for c in codes for p in parts_of(c)]
                deeper = len(self.module.default_indent) * isinstance(self.parents[lines[0]], cst.If)  # below ``else:``
                new_lines = [self.fold(n, self._indent(lines[0]) + deeper) for n in new_lines]
                plan.statements[lines[0]] = self.keep_comments(lines, new_lines, used)
                for line in lines[1:]:
                    plan.statements[line] = []
                follower = self.next_line(lines[-1])
                below = [] if codes else _left_over(lines, follower)
                if follower is not None:
                    plan.spaced[follower] = [*below, *_blank_end(lines[-1])]
                elif below:
                    plan.spaced[self.parents[lines[-1]]] = below
            case Insert(anchor=anchor, code=codes, after=after):
                where, at = plan.after if after else plan.before, self.place(anchor)
                made = (self.build_statement(c) for c in codes)
                indent, method = self._indent(at), self._is_in_class(at)
                where.setdefault(at, []).extend(_apart(self.fold(statement, indent), method) for statement in made)
            case Enclose(targets=targets, code=code):
                lines = [self.place(t) for t in targets]
                around = self.build_statement(Code(f"{code.template}\n    pass", code.parts))
                folded = self.fold(around, self._indent(lines[0]))
                assert isinstance(folded, cst.If)
                plan.enclosed[lines[0]] = folded, lines
                for line in lines[1:]:
                    plan.statements[line] = []
            case NameArms(target=target, headers=headers, results=results, code=codes):
                branch = self.find(target, cst.If)
                heads = [self.build_statement(Code(f"{h.template}\n    pass", h.parts)) for h in headers]
                ends = [self.build_statement(r) for r in results]
                choice = [self.fold(self.build_statement(c), self._indent(branch)) for c in codes]
                plan.arms[branch] = _Arms(
                    tuple(f for f in heads if isinstance(f, cst.FunctionDef)),
                    tuple(e for e in ends if isinstance(e, cst.SimpleStatementLine)),
                    tuple(choice),
                )
            case Decorate(target=target, code=code):
                function = self.find(target, cst.FunctionDef)
                plan.decorators.setdefault(function, []).append(cst.Decorator(self.build_expression(code)))
            case MoveTail(target=target, first=first, header=header, code=code, last=last, result=result):
                function, line = self.find(target, cst.FunctionDef), self.line(first)
                moved = self.build_statement(Code(f"{header.template}\n    pass", header.parts))
                call = self.fold(self.build_statement(code), self._indent(line))
                assert isinstance(moved, cst.FunctionDef) and isinstance(call, cst.SimpleStatementLine)
                moved = moved.with_changes(leading_lines=_blank(self._is_in_class(function)))
                start = next(i for i, other in enumerate(function.body.body) if other is line)
                end = None if last is None else [*function.body.body].index(self.line(last)) + 1
                built = [] if result is None else [self.build_statement(result)]
                last_line = tuple(s for s in built if isinstance(s, cst.SimpleStatementLine))
                plan.tails[function] = _Tail(start, end, moved, call, last_line)

    # --- from ast to cst --------------------------------------------------------------------------------------------

    def _characters(self, line: int, column: int) -> int:
        text = self.lines[line - 1]
        characters = column if text.isascii() else len(text.encode()[:column].decode())
        return characters - len(form_feed(text))  # which LibCST does not count

    def span(self, node: ast.AST) -> Span:
        """Where ``node`` stands in this text, columns in characters."""
        a, b, c, d = span_of(node)
        a, c = a - self.offset, c - self.offset
        return a, self._characters(a, b), c, self._characters(c, d)

    def find(self, node: ast.AST, kind: type[Any]) -> Any:
        """The concrete node of that ``kind`` for ``node``."""
        span = self.span(node)
        for candidate in self.spans.get(span, ()):
            if isinstance(candidate, kind):
                return candidate
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for key, nodes in self.spans.items():
                if key[2:] == span[2:]:
                    for candidate in nodes:
                        if isinstance(candidate, kind) and candidate.name.value == node.name:
                            return candidate
        raise EditError(f"no {kind.__name__} at line {span[0]}, column {span[1]}")

    def expression(self, node: ast.expr) -> cst.BaseExpression:
        """The concrete expression for ``node``."""
        here = (n for n in self.spans.get(self.span(node), ()) if isinstance(n, cst.BaseExpression))
        if isinstance(node, ast.Tuple) and node.elts and next(here, None) is None:
            element = self.expression(node.elts[0])  # the brackets belong to the tuple in one tree, not in the other
            around = (self.parents[element], self.parents[self.parents[element]])
            if (whole := next((n for n in around if isinstance(n, cst.Tuple)), None)) is not None:
                return whole
        found = self.find(node, cst.BaseExpression)
        assert isinstance(found, cst.BaseExpression)
        return found

    def line(self, node: ast.stmt) -> cst.CSTNode:
        """The statement line or compound statement of ``node``."""
        span = self.span(node)
        for candidate in self.spans.get(span, ()):
            if isinstance(candidate, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                return candidate
        for candidate in self.spans.get(span, ()):
            if isinstance(candidate, cst.BaseSmallStatement):
                line = self.parents[candidate]
                if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
                    return line
                raise EditError(f"line {span[0]} holds several statements")
        found = self.find(node, cst.BaseCompoundStatement)
        assert isinstance(found, cst.CSTNode)
        return found

    def place(self, node: ast.stmt) -> cst.CSTNode:
        """As ``line``; for a statement that stands behind the colon of its block, that whole block."""
        for candidate in self.spans.get(self.span(node), ()):
            block = self.parents[candidate] if isinstance(candidate, cst.BaseSmallStatement) else None
            if isinstance(block, cst.SimpleStatementSuite) and len(block.body) == 1:
                return block
        return self.line(node)

    def next_line(self, line: cst.CSTNode) -> cst.CSTNode | None:
        """The statement below ``line`` in its block."""
        body = getattr(self.parents[line], "body", ())
        body = body if isinstance(body, Sequence) else ()  # an ``elif`` is alone
        at = next((i for i, other in enumerate(body) if other is line), len(body))
        return body[at + 1] if at + 1 < len(body) else None

    # --- new code ---------------------------------------------------------------------------------------------------

    def build_expression(self, code: Code, place: cst.BaseExpression | None = None) -> cst.BaseExpression:
        """``code`` with its parts; the parentheses of ``place`` stay: a part that is it comes without."""
        try:
            tree = cst.parse_expression(_with_places(code), config=self.module.config_for_parsing)
        except cst.ParserSyntaxError as e:
            raise EditError(f"template {code.template!r}: {e.message}") from e
        new = _fill(tree, self._fillings(code, place))
        assert isinstance(new, cst.BaseExpression)
        return new

    def build_statement(self, code: Code) -> cst.CSTNode:
        """``code`` as a statement."""
        try:
            tree = cst.parse_statement(_with_places(code), config=self.module.config_for_parsing)
        except cst.ParserSyntaxError as e:
            raise EditError(f"template {code.template!r}: {e.message}") from e
        new = _fill(tree, self._fillings(code))
        assert isinstance(new, cst.CSTNode)
        return new

    def _is_in_class(self, statement: cst.CSTNode) -> bool:
        return isinstance(self.parents.get(self.parents[statement]), cst.ClassDef)

    def _indent(self, node: cst.CSTNode) -> int:
        """How far the lines of ``node`` are indented, in characters."""
        depth = 0
        parent: cst.CSTNode | None = node
        while parent is not None:
            if isinstance(parent, cst.IndentedBlock):
                depth += len(parent.indent if parent.indent is not None else self.module.default_indent)
            parent = self.parents.get(parent)
        return depth

    def _fillings(self, code: Code, place: cst.BaseExpression | None = None) -> list[cst.BaseExpression]:
        return [self.build_expression(p, place) if isinstance(p, Code) else self._filling(p, place) for p in code.parts]

    def _filling(self, part: ast.expr, place: cst.BaseExpression | None) -> cst.BaseExpression:
        found = self.expression(part)
        copy = found.deep_clone()
        return copy.with_changes(lpar=(), rpar=()) if found is place else copy

    def fold(self, line: cst.CSTNode, indent: int) -> cst.CSTNode:
        """``line`` with the arguments of an over-long call on lines of their own."""
        if isinstance(line, cst.If) and isinstance(line.body, cst.IndentedBlock):
            inner = [self.fold(s, indent + len(self.module.default_indent)) for s in line.body.body]
            return line.with_changes(body=line.body.with_changes(body=inner))
        if not isinstance(line, cst.SimpleStatementLine):
            return line
        width = max(len(text) for text in self.module.code_for_node(line).split("\n"))
        small = line.body[0]
        call = small.value if isinstance(small, (cst.Assign, cst.Return, cst.Expr)) else None
        if indent + width <= self.line_length or not isinstance(call, cst.Call) or not call.args:
            return line
        return line.with_changes(body=[small.with_changes(value=self.folded(call, 0)), *line.body[1:]])

    def folded(self, node: cst.CSTNode, further: int) -> cst.CSTNode:
        """A call with its arguments on lines of their own; or what is gone through, on the line below what is made.

        ``further``: how many characters its line is indented beyond its block.
        """
        outer, inner = " " * further, " " * further + self.module.default_indent
        if isinstance(node, cst.CompFor):
            return node.with_changes(whitespace_before=self._new_line(outer))
        assert isinstance(node, cst.Call)
        comma = cst.Comma(whitespace_before=cst.SimpleWhitespace(""), whitespace_after=self._new_line(inner))
        arguments = [a.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace("")) for a in node.args]
        arguments[-1] = arguments[-1].with_changes(comma=comma.with_changes(whitespace_after=self._new_line(outer)))
        return node.with_changes(args=arguments, whitespace_before_args=self._new_line(inner))

    def _new_line(self, indent: str) -> cst.ParenthesizedWhitespace:
        ending = cst.TrailingWhitespace(newline=cst.Newline(self.module.default_newline))
        return cst.ParenthesizedWhitespace(ending, indent=True, last_line=cst.SimpleWhitespace(indent))

    def _fold_long(self, edits: Sequence[Edit], plan: _Plan) -> None:
        """Fold the innermost call, on one line, around a new expression that makes its line too long."""
        grown: dict[int, int] = {}
        longest: dict[int, cst.CSTNode] = {}
        for target in (edit.target for edit in edits if isinstance(edit, Replace)):
            old, (first, start, last, end) = self.expression(target), self.span(target)
            new = self.module.code_for_node(plan.replace[old])
            if first == last and "\n" not in new:
                more = len(new) - (end - start)
                if more > grown.get(first, 0):
                    longest[first] = old
                grown[first] = grown.get(first, 0) + more
        for line, node in longest.items():
            width = len(self.lines[line - 1].rstrip())
            if width <= self.line_length < width + grown[line]:
                self._fold_around(node, line, plan)

    def _fold_around(self, node: cst.CSTNode, line: int, plan: _Plan) -> None:
        call = self.parents[node]
        while not (isinstance(call, cst.Call) and node in call.args):
            if isinstance(call, (cst.BaseStatement, cst.BaseSmallStatement, cst.BaseFormattedStringContent)):
                return
            node, call = call, self.parents[call]
        first, _, last, _ = self.calls[call]
        if not first == last == line or any(call is n or node is n for n in plan.replace):
            return
        text = self.lines[line - 1]
        plan.folds[call] = further = len(text) - len(text.lstrip()) - self._indent(call)
        match self.parents[call]:
            case (cst.ListComp() | cst.GeneratorExp() | cst.SetComp()) as made if made.elt is call:
                if isinstance(made.for_in.whitespace_before, cst.SimpleWhitespace):
                    plan.folds[made.for_in] = further

    def keep_comments(self, old: list[cst.CSTNode], new: list[cst.CSTNode], used: list[ast.expr]) -> list[cst.CSTNode]:
        """``new`` with the leading lines of ``old`` and every comment of it that no used part carries along."""
        first = old[0]
        carried = {c for part in used for c in _comments(self.expression(part))}
        lost = [c for node in old for c in _comments(node, outer=node is not first) if c not in carried]
        lost = list(dict.fromkeys(lost))
        leading = list(getattr(first, "leading_lines", ()))
        if not new:
            return new
        at = 0 if isinstance(first, cst.SimpleStatementLine) else -1
        line = new[at]
        if lost and isinstance(line, cst.SimpleStatementLine) and self._ends_line(lost[-1]):
            with_comment = self._with_comment(line, lost[-1])
            if self._width(with_comment, first) <= max(self.line_length, self._width(first, first)):
                new[at] = with_comment
                lost.pop()
        leading += [cst.EmptyLine(comment=c.deep_clone()) for c in lost]
        new[0] = new[0].with_changes(leading_lines=leading)
        return new

    def _with_comment(self, line: cst.SimpleStatementLine, comment: cst.Comment) -> cst.SimpleStatementLine:
        space = self.parents[comment]
        assert isinstance(space, cst.TrailingWhitespace)
        whitespace = space.whitespace if space.whitespace.value else cst.SimpleWhitespace("  ")
        end = line.trailing_whitespace.with_changes(whitespace=whitespace, comment=comment.deep_clone())
        return line.with_changes(trailing_whitespace=end)

    def _width(self, line: cst.CSTNode, place: cst.CSTNode) -> int:
        """The length of the longest line of ``line``, indented as ``place`` is."""
        return self._indent(place) + max(map(len, self.module.code_for_node(line).split("\n")))

    def _above(self, node: cst.CSTNode) -> cst.CSTNode:
        """The innermost statement around ``node`` that can have comments above it."""
        while not hasattr(node, "leading_lines"):
            node = self.parents[node]
        return node

    def _ends_line(self, comment: cst.Comment) -> bool:
        return isinstance(self.parents[comment], cst.TrailingWhitespace)


def _apart(statement: cst.CSTNode, method: bool) -> cst.CSTNode:
    """``statement``, with lines above it when it is a function, or a ``method``."""
    return (
        statement.with_changes(leading_lines=_blank(method))
        if isinstance(statement, cst.FunctionDef | cst.ClassDef)
        else statement
    )


def _blank(method: bool) -> list[cst.EmptyLine]:
    return [cst.EmptyLine(indent=False) for _ in range(1 if method else 2)]


def _with_places(code: Code) -> str:
    text = _HOLE.sub(lambda m: f"__part_{m[1]}__", code.template)
    return text.replace("{{", "{").replace("}}", "}")


def _comments(node: cst.CSTNode, outer: bool = False) -> list[cst.Comment]:
    """The comments inside of ``node`` in order; ``outer``: with those of its own leading lines."""
    skip = () if outer else tuple(getattr(node, "leading_lines", ()))
    found: list[cst.Comment] = []

    def walk(n: cst.CSTNode) -> None:
        if isinstance(n, cst.Comment):
            found.append(n)
        for child in n.children:
            if child not in skip:
                walk(child)

    walk(node)
    return found


def _lost(old: cst.CSTNode, new: cst.CSTNode) -> list[cst.EmptyLine]:
    """The comments of an expression that its new form lacks, as lines of their own."""
    kept = [c.value for c in _comments(new)]
    lost = []
    for comment in _comments(old):
        if comment.value in kept:
            kept.remove(comment.value)
        else:
            lost.append(cst.EmptyLine(comment=comment.deep_clone()))
    return lost


def _left_over(removed: list[cst.CSTNode], follower: cst.CSTNode | None) -> list[cst.EmptyLine]:
    """The comments of ``removed``, with its blank lines where ``follower``, which comes to stand there, has none."""
    lines: list[cst.EmptyLine] = []
    for node in removed:
        lines += [line.deep_clone() for line in getattr(node, "leading_lines", ())]
        lines += [cst.EmptyLine(comment=c.deep_clone()) for c in _comments(node)]
    spaced = follower is None or any(line.comment is None for line in getattr(follower, "leading_lines", ()))
    return [line for line in lines if line.comment is not None or not spaced]


def _without_header(module: cst.Module) -> cst.Module:
    """``module`` with the comments at its top as those of its first statement."""
    first = next(iter(module.body), None)
    if first is None or not any(line.comment for line in module.header):
        return module
    above = first.with_changes(leading_lines=[*module.header, *first.leading_lines])
    return module.with_changes(header=(), body=[above, *module.body[1:]])


def _blank_end(node: cst.CSTNode) -> list[cst.EmptyLine]:
    """The blank lines at the end of a compound statement, which stand in its innermost block."""
    while True:
        orelse = getattr(node, "orelse", None)
        body = orelse if orelse is not None else getattr(node, "body", None)
        if isinstance(body, cst.IndentedBlock):
            if body.footer:
                blank = sum(line.comment is None for line in body.footer)
                return [cst.EmptyLine(indent=False) for _ in range(blank)]
            node = body.body[-1]
        elif isinstance(body, (cst.Else, cst.If)):
            node = body
        else:
            return []


def _fill(
    tree: cst.CSTNode, parts: list[cst.BaseExpression]
) -> cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel:  # type: ignore[type-arg]
    return tree.visit(_Fill(parts))


class _Fill(cst.CSTTransformer):
    """Puts the parts into their places, in parentheses where the place binds tighter."""

    def __init__(self, parts: list[cst.BaseExpression]) -> None:
        self.parts = parts
        self.stack: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.stack.append(node)
        return True

    def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        self.stack.pop()
        if isinstance(updated, cst.Name) and (place := _PLACE.match(updated.value)):
            part = self.parts[int(place[1])].deep_clone()
            return _fit(part, self.stack[-1], original) if self.stack else part
        if isinstance(updated, cst.IndentedBlock):
            return updated.with_changes(indent=None)  # as the module indents
        if isinstance(updated, cst.EmptyLine) and updated.comment is None:
            return updated.with_changes(indent=False)
        return updated


_ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.Integer,
    cst.Float,
    cst.SimpleString,
    cst.FormattedString,
    cst.List,
    cst.Dict,
    cst.Set,
    cst.ListComp,
    cst.DictComp,
    cst.SetComp,
)
_TIGHT = (cst.Attribute, cst.Subscript, cst.Call, cst.UnaryOperation, cst.BinaryOperation, cst.Comparison, cst.Await)
_LOOSE = (cst.Lambda, cst.NamedExpr, cst.IfExp, cst.Yield, cst.GeneratorExp)


def _fit(new: cst.BaseExpression, parent: cst.CSTNode, place: cst.CSTNode) -> cst.BaseExpression:
    """``new`` in parentheses when it would not keep its meaning (or its lines) in ``place`` under ``parent``."""
    if new.lpar:
        return new
    atom = isinstance(new, _ATOMS) and not (
        isinstance(new, (cst.Integer, cst.Float)) and isinstance(parent, cst.Attribute)
    )
    if getattr(place, "lpar", ()):
        return new.with_changes(lpar=place.lpar, rpar=place.rpar)  # type: ignore[attr-defined]
    wrap = False
    if isinstance(new, cst.Tuple):
        wrap = not isinstance(parent, (cst.Assign, cst.Return, cst.Index))
    elif isinstance(parent, cst.Call) and parent.func is not place:
        wrap = isinstance(new, _LOOSE[1:2])
    elif isinstance(parent, _TIGHT):
        wrap = not atom
    elif isinstance(parent, (cst.BooleanOperation, cst.IfExp)):
        wrap = (
            isinstance(new, (*_LOOSE, cst.BooleanOperation))
            if isinstance(parent, cst.BooleanOperation)
            else isinstance(new, _LOOSE)
        )
    elif isinstance(parent, (cst.Arg, cst.Assign, cst.Return, cst.Expr, cst.Index)):
        wrap = isinstance(new, (cst.NamedExpr, cst.Yield))
    else:
        wrap = isinstance(new, _LOOSE)
    if not wrap and not atom and _spans_lines(new) and not isinstance(parent, cst.Arg):
        wrap = True
    if not wrap:
        return new
    return new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _spans_lines(node: cst.CSTNode) -> bool:
    """Whether ``node`` breaks over lines by the grace of brackets that are not its own."""
    if isinstance(node, cst.ParenthesizedWhitespace):
        return True
    if getattr(node, "lpar", ()) or isinstance(node, (cst.Call, cst.Subscript, cst.List, cst.Dict, cst.Set)):
        inner = node.func if isinstance(node, cst.Call) else node.value if isinstance(node, cst.Subscript) else None
        return _spans_lines(inner) if inner is not None and not getattr(node, "lpar", ()) else False
    return any(_spans_lines(c) for c in node.children)


def _parted(function: cst.FunctionDef, tail: _Tail) -> tuple[cst.FunctionDef, cst.FunctionDef]:
    """``function`` up to its tail, and the function that the tail becomes, with all that is written between them."""
    body = function.body
    assert isinstance(body, cst.IndentedBlock)
    first = body.body[tail.start]
    leading = list(getattr(first, "leading_lines", ()))
    blank = next((i for i, line in enumerate(leading) if line.comment is not None), len(leading))
    call = tail.call.with_changes(leading_lines=leading[:blank])
    moved = [first.with_changes(leading_lines=leading[blank:]), *body.body[tail.start + 1 : tail.end], *tail.result]
    rest = body.body[tail.end :] if tail.end is not None else ()
    head = body.with_changes(body=[*body.body[: tail.start], call, *rest], footer=body.footer if rest else ())
    below = body.with_changes(body=moved, header=cst.TrailingWhitespace(), footer=() if rest else body.footer)
    return function.with_changes(body=head), tail.function.with_changes(body=below)


def _enclosed(new: cst.If, inner: list[cst.CSTNode]) -> cst.If:
    """``new`` with ``inner`` in the place of the body of its last clause."""
    further = new.orelse
    if isinstance(further, cst.If):
        return new.with_changes(orelse=_enclosed(further, inner))
    first = inner[0].with_changes(leading_lines=())
    if further is not None and len(inner) == 1 and isinstance(first, cst.If):
        return new.with_changes(orelse=first)
    body = cst.IndentedBlock([first, *inner[1:]])  # type: ignore[list-item]
    if further is None:
        return new.with_changes(body=body)
    return new.with_changes(orelse=further.with_changes(body=body))


def _named(branch: cst.If, arms: _Arms, first: bool) -> list[cst.CSTNode]:
    """The functions that the arms of ``branch`` become, and what stands below them.

    ``first``: ``branch`` is the first statement of its block.
    """
    other = branch.orelse
    bodies = [branch.body, *([other.body] if isinstance(other, cst.Else) else [])]
    blank = cst.EmptyLine(indent=False)
    apart = first or any(isinstance(n, cst.EmptyLine) and n.comment is None for n in branch.leading_lines[:1])
    above = [*([] if apart else [blank]), *branch.leading_lines]
    made: list[cst.CSTNode] = []
    for function, body, result in zip(arms.functions, bodies, arms.results, strict=True):
        if isinstance(body, cst.SimpleStatementSuite):
            line = cst.SimpleStatementLine(body.body, trailing_whitespace=body.trailing_whitespace)
            body = cst.IndentedBlock([line])
        assert isinstance(body, cst.IndentedBlock)
        whole = body.with_changes(body=[*body.body, result.with_changes(leading_lines=body.footer)], footer=())
        lines = [blank.deep_clone(), *(other.leading_lines if other is not None else ())] if made else above
        made.append(function.with_changes(body=whole, leading_lines=lines))
    return [*made, arms.code[0].with_changes(leading_lines=[blank.deep_clone()]), *arms.code[1:]]


class _Apply(cst.CSTTransformer):
    def __init__(
        self,
        plan: _Plan,
        folded: Callable[[cst.CSTNode, int], cst.CSTNode],
        top: frozenset[cst.CSTNode],
        firsts: frozenset[cst.CSTNode],
    ) -> None:
        self.plan = plan
        self.folded = folded
        self.top = top
        self.firsts = firsts  # of their blocks
        self.elifs: set[cst.CSTNode] = set()

    def visit_If(self, node: cst.If) -> None:  # noqa: N802
        """Note which statements are the ``elif`` of another."""
        if isinstance(node.orelse, cst.If):
            self.elifs.add(node.orelse)

    def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode | cst.FlattenSentinel:  # type: ignore[override, type-arg]
        plan = self.plan
        if original in plan.replace:
            return plan.replace[original]
        if original in plan.folds:
            return self.folded(updated, plan.folds[original])
        if original in plan.comments:
            lines = [*getattr(updated, "leading_lines", ()), *plan.comments[original]]
            updated = updated.with_changes(leading_lines=lines)
        if original in plan.enclosed:
            header, lines = plan.enclosed[original]
            if isinstance(updated, cst.SimpleStatementSuite):
                line = cst.SimpleStatementLine(updated.body, trailing_whitespace=updated.trailing_whitespace)
                return cst.IndentedBlock([_enclosed(header, [line])])
            leading = getattr(updated, "leading_lines", ())
            updated = _enclosed(header, [updated, *lines[1:]]).with_changes(leading_lines=leading)
        if original in plan.arms:
            assert isinstance(updated, cst.If)
            return cst.FlattenSentinel(_named(updated, plan.arms[original], original in self.firsts))
        if original in plan.tails:
            assert isinstance(updated, cst.FunctionDef)
            apart = plan.tails[original].function.leading_lines
            below = [s.with_changes(leading_lines=apart) for s in plan.after.get(original, ())]
            head, tail = _parted(updated, plan.tails[original])
            return cst.FlattenSentinel([head, tail, *below])
        if original in plan.decorators:
            assert isinstance(updated, cst.FunctionDef)
            updated = updated.with_changes(decorators=[*updated.decorators, *plan.decorators[original]])
        if isinstance(updated, cst.SimpleStatementSuite) and (original in plan.before or original in plan.after):
            line = cst.SimpleStatementLine(updated.body, trailing_whitespace=updated.trailing_whitespace)
            body = [*plan.before.get(original, ()), line, *plan.after.get(original, ())]
            return cst.IndentedBlock(body)
        new: list[cst.CSTNode] = [updated]
        if original in plan.statements:
            new = plan.statements[original]
            if not new:
                return cst.RemoveFromParent()  # type: ignore[return-value]
            if original in self.elifs:
                return cst.Else(body=cst.IndentedBlock(body=new))  # type: ignore[arg-type]
        if plan.spaced.get(original):
            lines = [line.deep_clone() for line in plan.spaced[original]]
            if isinstance(updated, cst.IndentedBlock):
                return updated.with_changes(footer=[*lines, *updated.footer])
            new[0] = new[0].with_changes(leading_lines=[*lines, *getattr(new[0], "leading_lines", ())])
        if original in plan.before:
            first = plan.before[original]
            leading = list(getattr(new[0], "leading_lines", ()))
            blank = next((i for i, line in enumerate(leading) if line.comment is not None), len(leading))
            above: list[cst.EmptyLine] = []
            if isinstance(first[-1], cst.FunctionDef):
                above = list(first[-1].leading_lines)
            elif isinstance(new[0], (cst.FunctionDef, cst.ClassDef)):  # of what stands above the top nothing is known
                above = _blank(False) if original in self.top else [line.deep_clone() for line in leading[:blank]]
            # what a comment says is about what follows it
            new[0] = new[0].with_changes(leading_lines=[*above, *leading[blank:]])
            new = [first[0].with_changes(leading_lines=leading[:blank]), *first[1:], *new]
        if original in plan.after:
            new = [*new, *plan.after[original]]
        return new[0] if len(new) == 1 else cst.FlattenSentinel(new)
