"""Calls that write a message for people: ``print``, ``warnings.warn``, the methods of loggers. Dynamo traces none."""

from __future__ import annotations

import ast
import re

from patcher.facts.syntax.tree import Syntax, dotted, last_name
from patcher.facts.tables.wording import words
from patcher.facts.values.module_values import Bindings, imported

_LEVELS = frozenset("debug info warning warn error exception critical fatal log".split())
#: Words of a logger's methods that set or tell something.
_OTHER = frozenset(
    "set get is has add remove level enabled for handler handlers filter filters metric metrics dict value values "
    "scalar scalars hyperparams params image images table graph artifact model".split()
)
_LOGGERS = frozenset({"getLogger", "get_logger", "init_logger"})
#: Methods of a logger that give a logger.
_SAME = frozenset({"opt", "bind", "getChild", "patch"})
_NAMES = frozenset({"logger", "log", "logging"})
_WRITING = frozenset(
    "warnings.warn warnings.warn_explicit pprint.pprint pprint.pp rich.print traceback.print_exc traceback.print_stack "
    "tqdm.tqdm.write tqdm.auto.tqdm.write sys.stdout.write sys.stderr.write sys.stdout.flush sys.stderr.flush "
    "torch._logging.warning_once".split()
)
#: Part of every name that is in question, so that most calls are told apart by their names alone.
_LIKELY = re.compile("print|warn|log|info|debug|error|exception|critical|fatal|write|flush|pp")
_STREAMS = frozenset({"sys.stdout", "sys.stderr"})


def log_call(call: ast.Call, syntax: Syntax, bindings: Bindings) -> str | None:
    """How ``call`` is named when it writes a message for people, else None."""
    func = call.func
    if not _LIKELY.search(last_name(func).lower()):
        return None
    if isinstance(func, ast.Name) and func.id == "print" and syntax.is_builtin(func):
        streams = [k.value for k in call.keywords if k.arg == "file"]
        return None if any(imported(syntax, s) not in _STREAMS for s in streams) else "print"
    what = imported(syntax, func)
    if what in _WRITING or (what is not None and what.startswith("logging.") and is_level(what[8:])):
        return what
    if isinstance(func, ast.Attribute) and is_level(func.attr) and is_logger(func.value, syntax, bindings):
        if func.attr == "log" and isinstance(func.value, ast.Attribute) and not bindings.values(func.value):
            return None  # what keeps measurements has a method of that name as well
        return ast.unparse(func)
    return None


def is_level(name: str) -> bool:
    """Whether a logger's method of that name writes: ``warning``, ``warning_once``, ``info_rank0``."""
    said = set(words(name))
    return not said.isdisjoint(_LEVELS) and said.isdisjoint(_OTHER)


def is_logger(e: ast.expr, syntax: Syntax, bindings: Bindings) -> bool:
    """Whether ``e`` is made by what makes loggers, or imported or kept on an instance under a logger's name."""
    what = imported(syntax, e)
    if what is not None:
        return what.rpartition(".")[2].strip("_").lower() in _NAMES
    if isinstance(e, ast.Call):
        if isinstance(e.func, ast.Attribute) and e.func.attr in _SAME:
            return is_logger(e.func.value, syntax, bindings)
        return (dotted(e.func) or "").rpartition(".")[2] in _LOGGERS
    values = list(bindings.values(e))
    made = any(isinstance(v, ast.Call) for v in values)
    if isinstance(e, ast.Attribute) and e.attr.strip("_").lower() == "logger" and not made:
        return True
    if isinstance(e, ast.Name):  # also of a function around this one
        values += [v for s in syntax.ancestors(e) for v in bindings.assigned.get((s, e.id), ())]
    return any(isinstance(v, ast.Call) and is_logger(v, syntax, bindings) for v in values)
