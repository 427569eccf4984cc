"""Edits on a concrete syntax tree, which keeps every character of what it does not touch. The only user of LibCST."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from patcher.edit.filling import filled, fit, with_places
from patcher.edit.located import Located
from patcher.edit.spans import EditError, parts_of
from patcher.rule import Code, Decorate, Edit, Enclose, Insert, MoveTail, NameArms, Replace, ReplaceStatements


@dataclass
class _Change:
    """What happens at one node. ``rewrite``: of the node as it has become; ``statements``: in its place.

    ``before``, ``after``: statements beside it. ``comments``, ``spaced``: lines above it.
    """

    rewrite: Callable[[cst.CSTNode], list[cst.CSTNode]] | None = None
    statements: list[cst.CSTNode] | None = None
    before: list[cst.CSTNode] = field(default_factory=list)
    after: list[cst.CSTNode] = field(default_factory=list)
    decorators: list[cst.Decorator] = field(default_factory=list)
    comments: list[cst.EmptyLine] = field(default_factory=list)
    spaced: list[cst.EmptyLine] = field(default_factory=list)


class Patch(Located):
    """Some statements, and the edits of them."""

    def apply(self, edits: Sequence[Edit]) -> str:
        """The text with ``edits`` made. Raises EditError when one does not fit it."""
        self.plan: defaultdict[cst.CSTNode, _Change] = defaultdict(_Change)
        self.replaced: dict[cst.CSTNode, cst.BaseExpression] = {}
        makes: dict[type[Edit], Callable[[Any], None]] = {
            Replace: self._replace,
            ReplaceStatements: self._replace_statements,
            Insert: self._insert,
            Enclose: self._enclose,
            NameArms: self._name_arms,
            Decorate: self._decorate,
            MoveTail: self._move_tail,
        }
        for edit in edits:
            makes[type(edit)](edit)
        self._fold_long(edits)
        module = self.module.visit(_Apply(self.plan, frozenset(self.module.body)))
        assert isinstance(module, cst.Module)
        return module.code

    def _replace(self, edit: Replace) -> None:
        old = self.expression(edit.target)
        new = self.build_expression(edit.code, old)
        if isinstance(old, cst.Attribute) and isinstance(new, cst.Attribute):
            new = new.with_changes(dot=old.dot)  # with the line break and the comment before it
        self.replaced[old] = fitting = fit(new, self.parents[old], old)
        self.plan[old].rewrite = lambda _: [fitting]
        if lost := _lost(old, fitting):
            self.plan[self._above(old)].comments += lost

    def _replace_statements(self, edit: ReplaceStatements) -> None:
        lines, codes = [self.line(t) for t in edit.targets], edit.code
        above = self.parents[lines[0]]
        deeper = len(self.module.default_indent) * isinstance(above, cst.If)  # below ``else:``
        new = [self.fold(self.build_statement(c), self.indent(lines[0]) + deeper) for c in codes]
        for line in lines[1:]:
            self.plan[line].statements = []
        new = self.keep_comments(lines, new, [p for c in codes for p in parts_of(c)])
        if new and isinstance(above, cst.If) and above.orelse is lines[0]:
            self.plan[lines[0]].rewrite = lambda _: [cst.Else(body=cst.IndentedBlock(body=new))]  # type: ignore[arg-type]
        else:
            self.plan[lines[0]].statements = new
        follower = self.next_line(lines[-1])
        below = [] if codes else _left_over(lines, follower)
        if follower is not None:
            self.plan[follower].spaced = [*below, *_blank_end(lines[-1])]
        elif below:
            self.plan[self.parents[lines[-1]]].spaced = below

    def _insert(self, edit: Insert) -> None:
        at = self.place(edit.anchor)
        indent, method = self.indent(at), self.is_in_class(at)
        made = [_apart(self.fold(self.build_statement(c), indent), method) for c in edit.code]
        where = self.plan[at].after if edit.after else self.plan[at].before
        where += made

    def _enclose(self, edit: Enclose) -> None:
        lines = [self.place(t) for t in edit.targets]
        around = self.fold(self._header(edit.code), self.indent(lines[0]))
        for line in lines[1:]:
            self.plan[line].statements = []

        def enclosed(first: cst.CSTNode) -> list[cst.CSTNode]:
            if isinstance(first, cst.SimpleStatementSuite):
                return [cst.IndentedBlock([_enclosed(around, [_line_of(first)])])]
            leading = getattr(first, "leading_lines", ())
            return [_enclosed(around, [first, *lines[1:]]).with_changes(leading_lines=leading)]

        self.plan[lines[0]].rewrite = enclosed

    def _name_arms(self, edit: NameArms) -> None:
        branch = self.find(edit.target, cst.If)
        functions, results = map(self._header, edit.headers), map(self.build_statement, edit.results)
        arms = list(zip(functions, results, strict=True))
        choice = [self.fold(self.build_statement(c), self.indent(branch)) for c in edit.code]
        first = branch in getattr(self.parents[branch], "body", ())[:1]
        self.plan[branch].rewrite = lambda updated: _named(updated, arms, choice, first)

    def _decorate(self, edit: Decorate) -> None:
        function = self.find(edit.target, cst.FunctionDef)
        self.plan[function].decorators.append(cst.Decorator(self.build_expression(edit.code)))

    def _move_tail(self, edit: MoveTail) -> None:
        function, line = self.find(edit.target, cst.FunctionDef), self.line(edit.first)
        apart = _blank(self.is_in_class(function))
        moved = self._header(edit.header).with_changes(leading_lines=apart)
        call = self.fold(self.build_statement(edit.code), self.indent(line))
        body = [*function.body.body]
        start = next(i for i, other in enumerate(body) if other is line)
        end = None if edit.last is None else body.index(self.line(edit.last)) + 1
        result = [] if edit.result is None else [self.build_statement(edit.result)]
        change = self.plan[function]

        def parted(updated: cst.CSTNode) -> list[cst.CSTNode]:
            below = [s.with_changes(leading_lines=apart) for s in change.after]
            change.after = []
            return [*_parted(updated, slice(start, end), moved, call, result), *below]

        change.rewrite = parted

    def _header(self, code: Code) -> cst.CSTNode:
        """A compound statement whose body is still to come."""
        return self.build_statement(Code(f"{code.template}\n    pass", code.parts))

    # --- new code ---------------------------------------------------------------------------------------------------

    def build_expression(self, code: Code, place: cst.BaseExpression | None = None) -> cst.BaseExpression:
        """``code`` with its parts; the parentheses of ``place`` stay: a part that is it comes without."""
        built = self._built(cst.parse_expression, code, place)
        assert isinstance(built, cst.BaseExpression)
        return built

    def build_statement(self, code: Code) -> cst.CSTNode:
        """``code`` as a statement."""
        return self._built(cst.parse_statement, code, None)

    def _built(self, parse: Callable[..., cst.CSTNode], code: Code, place: cst.BaseExpression | None) -> cst.CSTNode:
        parts = [
            self.build_expression(p, place) if isinstance(p, Code) else self._filling(p, place) for p in code.parts
        ]
        try:
            return filled(parse(with_places(code), config=self.module.config_for_parsing), parts)
        except cst.ParserSyntaxError as e:
            raise EditError(f"template {code.template!r}: {e.message}") from e

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

    def _fold_long(self, edits: Sequence[Edit]) -> None:
        """Fold the innermost call, on one line, around a new expression that makes its line too long."""
        grown: dict[int, int] = {}
        longest: dict[int, cst.CSTNode] = {}
        for target in (edit.target for edit in edits if isinstance(edit, Replace)):
            old, (first, start, last, end) = self.expression(target), self.span(target)
            new = self.module.code_for_node(self.replaced[old])
            if first == last and "\n" not in new:
                more = len(new) - (end - start)
                if more > grown.get(first, 0):
                    longest[first] = old
                grown[first] = grown.get(first, 0) + more
        for line, node in longest.items():
            width = len(self.lines[line - 1].rstrip())
            if width <= self.line_length < width + grown[line]:
                self._fold_around(node, line)

    def _fold_around(self, node: cst.CSTNode, line: int) -> None:
        call = self.parents[node]
        while not (isinstance(call, cst.Call) and node in call.args):
            if isinstance(call, (cst.BaseStatement, cst.BaseSmallStatement, cst.BaseFormattedStringContent)):
                return
            node, call = call, self.parents[call]
        first, _, last, _ = self.calls[call]
        if not first == last == line or call in self.replaced or node in self.replaced:
            return
        text = self.lines[line - 1]
        further = len(text) - len(text.lstrip()) - self.indent(call)
        folding: list[cst.CSTNode] = [call]
        match self.parents[call]:
            case (cst.ListComp() | cst.GeneratorExp() | cst.SetComp()) as made if made.elt is call:
                if isinstance(made.for_in.whitespace_before, cst.SimpleWhitespace):
                    folding.append(made.for_in)
        for one in folding:
            self.plan[one].rewrite = lambda updated: [self.folded(updated, further)]

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
        return self.indent(place) + max(map(len, self.module.code_for_node(line).split("\n")))

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


def _line_of(suite: cst.SimpleStatementSuite) -> cst.SimpleStatementLine:
    """What stands behind a colon, as a line of its own."""
    return cst.SimpleStatementLine(suite.body, trailing_whitespace=suite.trailing_whitespace)


def _comments_from(leading: Sequence[cst.EmptyLine]) -> int:
    """How many blank lines stand above the first comment."""
    return next((i for i, line in enumerate(leading) if line.comment is not None), len(leading))


def _parted(
    function: Any, tail: slice, below: Any, call: cst.CSTNode, result: Sequence[cst.CSTNode]
) -> tuple[cst.CSTNode, cst.CSTNode]:
    """``function`` with ``call`` in the place of its ``tail``, and ``below``, which gets it, with its comments.

    ``result``: what comes below the tail there.
    """
    body = function.body
    assert isinstance(body, cst.IndentedBlock)
    first, *others = body.body[tail]
    leading = list(getattr(first, "leading_lines", ()))
    blank = _comments_from(leading)
    moved = [first.with_changes(leading_lines=leading[blank:]), *others, *result]
    rest = body.body[tail.stop :] if tail.stop is not None else ()
    new = [*body.body[: tail.start], call.with_changes(leading_lines=leading[:blank]), *rest]
    head = body.with_changes(body=new, footer=body.footer if rest else ())
    inner = body.with_changes(body=moved, header=cst.TrailingWhitespace(), footer=() if rest else body.footer)
    return function.with_changes(body=head), below.with_changes(body=inner)


def _enclosed(new: Any, inner: list[cst.CSTNode]) -> cst.If:
    """``new`` with ``inner`` in the place of the body of its last clause."""
    assert isinstance(new, cst.If)
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


def _named(
    branch: Any, arms: Sequence[tuple[cst.CSTNode, cst.CSTNode]], choice: Sequence[cst.CSTNode], first: bool
) -> list[cst.CSTNode]:
    """The functions that the arms of ``branch`` become, each with its last line, and ``choice`` below them.

    ``first``: ``branch`` is the first statement of its block.
    """
    other = branch.orelse
    bodies = [branch.body, *([other.body] if isinstance(other, cst.Else) else [])]
    blank = cst.EmptyLine(indent=False)
    apart = first or any(isinstance(n, cst.EmptyLine) and n.comment is None for n in branch.leading_lines[:1])
    above = [*([] if apart else [blank]), *branch.leading_lines]
    made: list[cst.CSTNode] = []
    for (function, result), body in zip(arms, bodies, strict=True):
        if isinstance(body, cst.SimpleStatementSuite):
            body = cst.IndentedBlock([_line_of(body)])
        whole = body.with_changes(body=[*body.body, result.with_changes(leading_lines=body.footer)], footer=())
        lines = [blank.deep_clone(), *(other.leading_lines if other is not None else ())] if made else above
        made.append(function.with_changes(body=whole, leading_lines=lines))
    return [*made, choice[0].with_changes(leading_lines=[blank.deep_clone()]), *choice[1:]]


class _Apply(cst.CSTTransformer):
    """Makes the changes of a plan. ``top``: the statements of the module."""

    def __init__(self, plan: dict[cst.CSTNode, _Change], top: frozenset[cst.CSTNode]) -> None:
        self.plan, self.top = plan, top

    def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode | cst.FlattenSentinel:  # type: ignore[override, type-arg]
        if original not in self.plan:
            return updated
        new = self._made(original, updated, self.plan[original])
        if not new:
            return cst.RemoveFromParent()  # type: ignore[return-value]
        return new[0] if len(new) == 1 else cst.FlattenSentinel(new)

    def _made(self, original: cst.CSTNode, updated: cst.CSTNode, change: _Change) -> list[cst.CSTNode]:
        if change.comments:
            lines = [*getattr(updated, "leading_lines", ()), *change.comments]
            updated = updated.with_changes(leading_lines=lines)
        if change.decorators and isinstance(updated, cst.FunctionDef):
            updated = updated.with_changes(decorators=[*updated.decorators, *change.decorators])
        new = [updated] if change.rewrite is None else change.rewrite(updated)
        if isinstance(new[0], cst.SimpleStatementSuite) and (change.before or change.after):
            return [cst.IndentedBlock([*change.before, _line_of(new[0]), *change.after])]  # type: ignore[list-item]
        new = new if change.statements is None else change.statements
        if not new:
            return []
        if change.spaced:
            lines = [line.deep_clone() for line in change.spaced]
            if isinstance(updated, cst.IndentedBlock):
                return [updated.with_changes(footer=[*lines, *updated.footer])]
            new[0] = new[0].with_changes(leading_lines=[*lines, *getattr(new[0], "leading_lines", ())])
        return [*self._below(change.before, new, original in self.top), *change.after]

    def _below(self, before: list[cst.CSTNode], new: list[cst.CSTNode], top: bool) -> list[cst.CSTNode]:
        """``new`` below what is put ``before`` it, with the lines above it parted."""
        if not before:
            return new
        leading = list(getattr(new[0], "leading_lines", ()))
        blank = _comments_from(leading)
        above: list[cst.EmptyLine] = []
        if isinstance(before[-1], cst.FunctionDef):
            above = list(before[-1].leading_lines)
        elif isinstance(new[0], (cst.FunctionDef, cst.ClassDef)):  # of what stands above the top nothing is known
            above = _blank(False) if top else [line.deep_clone() for line in leading[:blank]]
        # what a comment says is about what follows it
        first = new[0].with_changes(leading_lines=[*above, *leading[blank:]])
        return [before[0].with_changes(leading_lines=leading[:blank]), *before[1:], first, *new[1:]]
