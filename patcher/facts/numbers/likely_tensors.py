"""Which expressions are tensors by what code near them says: enough for a report, never for a fix.

More than `Inference` takes for granted: attributes of objects whose class, in any file, annotates them as tensors; what
something is used on that only a tensor has, elsewhere in the function; elements of lists of tensors; parameters that
calls of the file hand tensors to, whatever their annotation says, or that a docstring calls tensors; what functions
return.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.flow.narrowing import Ruling
from patcher.facts.project.summaries import ClassSummary
from patcher.facts.syntax.docstrings import tensors_documented
from patcher.facts.syntax.tree import FunctionNode, dotted
from patcher.facts.syntax.written import is_none, parsed
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import FOREIGN, Kind, Value

Seen = frozenset[Definition]
ORDER = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_NONE: Seen = frozenset()
#: Methods that NumPy's arrays, lists and sets do not have.
_TELLING = api.TENSOR_ONLY - frozenset(
    "size shape ndim dim dtype view add sub mul div copy item tolist sum max min mean any all abs std var prod clip "
    "repeat reshape transpose squeeze flatten cumsum cumprod round argmax argmin nonzero requires_grad device type "
    "trace diagonal sort real imag conj take put fill log exp sqrt sign floor ceil sin cos pow eq ne lt le gt "
    "ge".split()
) | frozenset({"device"})
#: Functions that give a list or tuple of what they are given, tensor by tensor.
_LISTING = frozenset({"list", "tuple", "reversed", "sorted"})
#: Functions that give one of what they are given, or their sum.
_PICKING = frozenset({"max", "min", "sum", "abs"})
#: Annotations of what holds several of what stands in them, last.
_HOLDERS = frozenset("list List tuple Tuple Sequence Iterable Iterator dict Dict Mapping OrderedDict".split())
#: Methods of a tensor that give several.
_SEVERAL = frozenset({"chunk", "split", "unbind", "tensor_split"})
#: What of a tensor is one again, with all arguments.
_NO_TENSORS = api.HOST_READS | api.ABOUT | _SEVERAL | frozenset({"data_ptr", "element_size", "stride", "is_nonzero"})


#: Functions of torch that give something else than one tensor.
_NO_RESULT = frozenset(
    "aminmax are_deterministic_algorithms_enabled broadcast_shapes broadcast_tensors can_cast chunk compile cond cuda "
    "device dsplit dtype equal allclose finfo iinfo frexp hsplit is_tensor lu meshgrid numel no_grad enable_grad "
    "inference_mode histogram load save manual_seed set_grad_enabled split svd qr triangular_solve tensor_split "
    "typename unbind unsafe_chunk unsafe_split unravel_index vsplit while_loop promote_types result_type seed "
    "initial_seed get_default_dtype set_default_dtype get_rng_state autocast compiler jit".split()
)
#: The same, where they are asked for a dimension.
_PAIRS = frozenset(
    "max min median mode sort topk kthvalue cummax cummin nanmedian std_mean var_mean unique where".split()
)
_TORCH = ("torch", "torch.linalg", "torch.fft", "torch.special", "torch.nn.functional")

_GIVING_ONE = frozenset(name for name in api.TENSOR_ONLY - _NO_TENSORS if not name.startswith("is_")) | frozenset(
    "cpu cuda to half float double int byte bfloat16 diff cross outer inner kron dot mv maximum minimum fmax fmin "
    "fmod remainder atan2 hypot floor_divide divide multiply subtract negative absolute greater less greater_equal "
    "less_equal not_equal isclose logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not "
    "multinomial masked_select argwhere bincount histc quantile nanquantile select ravel rot90 flipud fliplr moveaxis "
    "movedim diag diagonal diag_embed index_add index_copy index_fill index_put scatter_add scatter_reduce addmm "
    "addbmm baddbmm addcmul addcdiv lerp logaddexp heaviside inverse pinverse matrix_power requires_grad_ clamp_ add_ "
    "sub_ mul_ div_ pow_ neg_ copy_ fill_ zero_ normal_ uniform_ bernoulli bernoulli_ stft istft coalesce "
    "crow_indices ccol_indices col_indices row_indices".split()
)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class LikelyTensors(Analysis):
    """Answers for one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.presumed = facts.presumed
        self._used: dict[FunctionNode, frozenset[str]] = {}
        self._open: set[tuple[ast.ClassDef, str]] = set()
        self._documented: dict[FunctionNode, frozenset[str]] = {}
        self._asked: set[tuple[FunctionNode, int | None]] = set()

    def of(self, e: ast.expr) -> bool:
        """Whether ``e``, where a number is needed, is a tensor for all that is said of it."""
        return self._of(e, _NONE)

    def _of(self, e: ast.expr, seen: Seen) -> bool:
        if isinstance(e, (ast.Starred, ast.Constant, ast.Slice)):
            return False
        value = self.inference.of(e)
        if value.is_tensor:
            return True
        if value == FOREIGN or (value.kind is not Kind.UNKNOWN and not self._is_only_said(e, value)):
            return False
        match e:
            case ast.Name():
                definitions = self._possible(e) - seen
                return not self._is_asked_for_another_kind(e) and any(
                    self._bound(d, seen | definitions) for d in definitions
                )
            case ast.Attribute():
                return self._kept(e, seen) or self._is_used(e) or self._is_stored(e, seen)
            case ast.Subscript(value=value_of, slice=index):
                several = not isinstance(index, ast.Slice) and self._elements(value_of, seen)
                return self._of(value_of, seen) or several or (isinstance(index, ast.Constant) and self._is_used(e))
            case ast.BinOp(left=left, right=right):
                return self._of(left, seen) or self._of(right, seen)
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand):
                return self._of(operand, seen)
            case ast.IfExp(body=body, orelse=orelse):
                return self._of(body, seen) or self._of(orelse, seen)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, ORDER):
                return self._of(left, seen) or self._of(right, seen)
            case ast.Call(func=ast.Attribute(value=ast.Compare(), attr="nonzero")):
                return True  # or an array's
            case ast.Call(func=ast.Attribute(value=held, attr=method)) if method in _GIVING_ONE:
                return self._of(held, seen) or self._promised(e) or self._is_made_by_torch(e)
            case ast.Call(args=[first, *more]) if self.syntax.builtin(e) in _PICKING and not e.keywords:
                return self._elements(first, seen) if not more else any(self._of(a, seen) for a in e.args)
            case ast.Call():
                return self._promised(e) or self._is_made_by_torch(e) or self._returned(e, None, seen)
        return False

    def _possible(self, name: ast.Name) -> Seen:
        """The definitions of ``name``, those left out that a test on the way says are no tensors."""
        definitions, state = self.inference.definitions(name), self.inference.state(name)
        if state is None:
            return definitions
        return frozenset(d for d in definitions if Ruling.NOT_TENSOR not in state.ruled.get(d, ()))

    def _is_only_said(self, e: ast.expr, value: Value) -> bool:
        """Whether nothing but an annotation, which callers need not keep to, says that ``e`` is a number."""
        if not isinstance(e, ast.Name) or not value.is_number:
            return False
        return any(d.how == "parameter" and getattr(d.node, "annotation", None) for d in self.inference.definitions(e))

    def _is_made_by_torch(self, call: ast.Call) -> bool:
        """Whether a function of PyTorch that gives one tensor is called."""
        package, _, name = (self.syntax.qualified(call.func) or "").rpartition(".")
        if name == "Buffer" and package in ("torch.nn", "torch.nn.parameter"):
            return True
        if package not in _TORCH or not name.islower() or name.startswith(("is_", "get_", "set_")):
            return False
        return name not in (_NO_RESULT if len(call.args) == 1 and not call.keywords else _NO_RESULT | _PAIRS)

    def _is_asked_for_another_kind(self, name: ast.Name) -> bool:
        """Whether a test around ``name`` says that it is something else: ``isinstance(n, int)``."""
        child: ast.AST = name
        for parent in self.syntax.ancestors(name):
            if isinstance(parent, (ast.If, ast.IfExp)) and child is not parent.test:
                inside = child in parent.body if isinstance(parent, ast.If) else child is parent.body
                match parent.test:
                    case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=told), kinds]) if told == name.id:
                        if inside is not ("Tensor" in ast.unparse(kinds)):
                            return True
            child = parent
        return False

    def _promised(self, call: ast.Call) -> bool:
        """Whether the functions of this file that ``call`` may run say that they return a tensor."""
        callees = self.facts.ask(Callees)
        found = callees.bodies(call)
        return bool(found) and all(
            f is not None and f.returns is not None and self.inference.annotated(f.returns).is_tensor for f in found
        )

    def _bound(self, d: Definition, seen: Seen) -> bool:
        value, path = d.part
        if d.how == "parameter":
            annotation = d.node.annotation if isinstance(d.node, ast.arg) else None
            if annotation is not None and self.presumed.annotated(annotation).is_tensor:
                return True  # or None, where it is as good
            given = self.facts.ask(Callees).given(d, seen=annotation is not None)
            if annotation is not None:  # what a dictionary holds is no better known than what is annotated here
                given = [e for e in given if not any(map(_is_item, ast.walk(e)))]
            documented = annotation is None and self._is_documented(d, given)
            if self._asked:  # a call that is looked into: what it hands over is not what others do
                return documented
            return documented or any(self._of(e, seen) for e in given)
        if value is None:
            return False
        if d.how == "assign" and len(path) < 2:
            if not path:
                return self._of(value, seen)
            part = isinstance(value, ast.Call) and self._returned(value, path[0], seen)
            return part or self._elements(value, seen)
        if d.how == "iteration":
            return self._turn(value, path, seen)
        return False

    def _is_documented(self, d: Definition, given: list[ast.expr]) -> bool:
        """Whether the docstring of its function calls the parameter ``d`` a tensor, or the code uses it like one.

        The docstring is wrong where calls hand numbers over and nothing else.
        """
        function = self.syntax.parents.get(self.syntax.parents[d.node])
        if not isinstance(function, _FUNCTIONS):
            return False
        if function not in self._documented:
            self._documented[function] = tensors_documented(function)
        uses = self.flow_of(function).uses.get(d, [])
        asked = (self.syntax.parents[u] for u in uses)
        said = d.name in self._documented[function]
        if said and given and all(self.inference.of(e).is_number for e in given):
            said = False
        return said or any(isinstance(a, ast.Attribute) and a.attr in _TELLING for a in asked)

    def _returned(self, call: ast.Call, part: int | None, seen: Seen) -> bool:
        """Whether functions that ``call`` may run return a tensor, or one at ``part`` of what they return."""
        callees = self.facts.ask(Callees)
        for function in callees.bodies(call):
            if function is None or (function, part) in self._asked:
                continue
            self._asked.add((function, part))
            own = (r for r in self.syntax.own(function, ast.Return) if isinstance(r, ast.Return))
            values = [_at(r.value, part) for r in own if r.value is not None and not self._is_for_a_kind(r)]
            found = any(v is not None and self._of(v, seen) for v in values)
            self._asked.discard((function, part))
            if found:
                return True
        return False

    def _is_for_a_kind(self, returned: ast.Return) -> bool:
        """Whether ``returned`` stands under a test of what something is, so that it depends on what is given."""
        around = (p.test for p in self.syntax.ancestors(returned) if isinstance(p, ast.If))
        return any("isinstance(" in ast.unparse(test) for test in around)

    def _turn(self, over: ast.expr, path: tuple[int, ...], seen: Seen) -> bool:
        """Whether what a loop over ``over`` binds, at ``path``, is a tensor in each turn."""
        name, args = self.syntax.builtin(over), over.args if isinstance(over, ast.Call) else []
        if name == "enumerate" and args:
            return path[:1] == (1,) and self._turn(args[0], path[1:], seen)
        if name == "zip":
            return bool(path) and path[0] < len(args) and self._turn(args[path[0]], path[1:], seen)
        return not path and self._elements(over, seen)

    def _elements(self, e: ast.expr, seen: Seen) -> bool:
        """Whether ``e`` gives tensors when it is iterated over or taken apart."""
        if self._of(e, seen):
            return True
        match e:
            case ast.Name():
                definitions = self.inference.definitions(e) - seen
                values = [d.value for d in definitions if d.how == "assign" and not d.path and d.value is not None]
                if any(d.how == "parameter" for d in definitions):
                    return all(self._holds(d.node) for d in definitions)
                return bool(values) and all(self._elements(v, seen | definitions) for v in values)
            case ast.Attribute() if (own := self.inference.instance_attribute(e)) is not None and own not in self._open:
                stores = self.inference.class_facts(own[0]).stores.get(own[1], [])
                self._open.add(own)  # it may be made of itself
                held = bool(stores) and all(s.value is not None and self._elements(s.value, seen) for s in stores)
                self._open.discard(own)
                return held
            case ast.Dict(values=values):
                return bool(values) and all(self._of(part, seen) for part in values)
            case ast.Call(func=ast.Attribute(value=held, attr="values"), args=[]):
                return self._elements(held, seen)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return bool(elements) and all(self._of(part, seen) for part in elements)
            case ast.ListComp(elt=one) | ast.GeneratorExp(elt=one):
                return self._of(one, seen)
            case ast.Call(args=[first]) if self.syntax.builtin(e) in _LISTING:
                return self._elements(first, seen)
            case ast.Call(func=ast.Attribute(value=held, attr=method)) if method in _SEVERAL:
                return self._of(held, seen)
        return False

    def _holds(self, parameter: ast.AST) -> bool:
        """Whether the annotation of ``parameter`` says that it holds tensors."""
        written = parsed(parameter.annotation) if isinstance(parameter, ast.arg) and parameter.annotation else None
        if not isinstance(written, ast.Subscript) or (dotted(written.value) or "").rpartition(".")[2] not in _HOLDERS:
            return False
        parts = written.slice.elts if isinstance(written.slice, ast.Tuple) else [written.slice]
        kinds = [p for p in parts if not (isinstance(p, ast.Constant) and p.value is ...)]
        return bool(kinds) and self.presumed.annotated(kinds[-1]).is_tensor

    def _is_stored(self, e: ast.Attribute, seen: Seen) -> bool:
        """Whether the class of the instance makes tensors of the attribute wherever it sets it, None aside.

        What is handed to its initialiser is not made: calls of other initialisers have the same name.
        """
        own = self.inference.instance_attribute(e)
        if own is None or own in self._open:
            return False
        stores = self.inference.class_facts(own[0]).stores.get(own[1], [])
        values = [s.value for s in stores if s.value is None or not is_none(s.value)]
        self._open.add(own)  # it may be made of itself
        made = all(v is not None and not isinstance(v, ast.Name) for v in values)
        stored = bool(values) and made and all(v is not None and self._of(v, seen) for v in values)
        self._open.discard(own)
        return stored

    # --- what objects keep ------------------------------------------------------------------------------------------

    def _kept(self, e: ast.Attribute, seen: Seen) -> bool:
        """Whether the class of the object that ``e`` is an attribute of says that it is a tensor."""
        return any(e.attr in known.tensors for known in self._known_classes(e.value, seen))

    def _known_classes(self, e: ast.expr, seen: Seen) -> Iterable[ClassSummary]:
        for name in self._classes(e, seen):
            yield from self.project.lineage(name)

    def _classes(self, e: ast.expr, seen: Seen) -> Iterable[str]:
        """The dotted classes of the project that ``e`` may be an instance of."""
        if isinstance(e, ast.Name):
            for d in self.inference.definitions(e) - seen:
                if isinstance(d.node, ast.arg) and d.node.annotation is not None:
                    yield from self._said(d.node.annotation)
                elif d.how == "assign" and isinstance(d.value, ast.Call) and not d.path:
                    yield from self._named(d.value.func)
                    makers = map(self.project.handed_on, self._named(d.value.func))
                    yield from (made for maker in makers if maker is not None for made in maker.returns)
        elif isinstance(e, ast.Attribute) and (own := self.inference.instance_attribute(e)) is not None:
            known = self.project.known_class(self.facts.qualname(own[0]) or own[0].name)
            yield from (cls for name, cls in (known.built if known is not None else ()) if name == e.attr)

    def _said(self, annotation: ast.expr) -> Iterable[str]:
        written = parsed(annotation)
        if isinstance(written, ast.BinOp):
            yield from self._said(written.left)
            yield from self._said(written.right)
        elif isinstance(written, ast.Subscript) and (dotted(written.value) or "").rpartition(".")[2] == "Optional":
            yield from self._said(written.slice)
        elif written is not None:
            yield from self._named(written)

    def _named(self, e: ast.expr) -> Iterable[str]:
        text = dotted(e)
        if text is not None:
            yield self.syntax.qualified(e) or f"{self.facts.module}.{text}"

    def _is_used(self, e: ast.expr) -> bool:
        """Whether the function uses something on ``e``, as it is written, that only a tensor has."""
        function = self.syntax.function_of(e)
        if function is None or dotted(e.value if isinstance(e, ast.Subscript) else e) is None:
            return False
        if function not in self._used:
            attributes = self.syntax.own(function, ast.Attribute)
            kept = (n.value for n in attributes if isinstance(n, ast.Attribute) and n.attr in _TELLING)
            asked = [v for v in kept if isinstance(v, (ast.Attribute, ast.Subscript))]
            self._used[function] = frozenset(map(ast.unparse, asked))
        return ast.unparse(e) in self._used[function]


def _is_item(n: ast.AST) -> bool:
    return isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Constant) and isinstance(n.slice.value, str)


def _at(value: ast.expr | None, part: int | None) -> ast.expr | None:
    """``value``, or what stands at ``part`` of the tuple that it is."""
    if part is None or value is None:
        return value
    return value.elts[part] if isinstance(value, ast.Tuple) and part < len(value.elts) else None
