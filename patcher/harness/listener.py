"""Count and note what Dynamo and Inductor do, from what they log and from the graphs that they compile."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import sys
import time
import traceback
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch._dynamo
import torch._guards
import torch._logging

from .failures import _IN_FILE, EXPLANATION_CHARACTERS, LINE_CHARACTERS, is_ours
from .leaves import without_address

Json = dict[str, Any]
MOST_AROUND = 100  # frames
_Place = tuple[str, int, str]  # file, line and function
_BREAK = re.compile(r"Graph break (?:\(.*?\) )?in user code at (.+?:\d+)\s*\n(?:Graph Break )?Reason: *([^\n]*)")
_WRAPPED = ("Encountered graph break ", "Failed to handle graph break gracefully")
_CAUSE = re.compile(r"\s*\n([A-Za-z][^\n]*)")
_RECOMPILED = re.compile(r"Recompiling function (\S+) in (\S+)")
_LIMIT = re.compile(r"function: '([^']*)' \((.*?)\)(?:.*?last reason: ([^\n]*))?", re.DOTALL)
_SKIPPED_GRAPH = re.compile(r"(?:skipping|disabling) cudagraphs?(?: for backward)? due to ([^\n]*)", re.IGNORECASE)
_SUPPRESSED = re.compile(r"WON'T CONVERT \S+ (.+?) line (\d+)")
_ERROR = re.compile(r"^[\w.]+(?:Error|Failed|Exception): [^\n]*", re.MULTILINE)
_FRAME_LEFT = re.compile(r"will skip tracing the frame \S+ \((.+) line (\d+)\)")
_ANOTHER = "*** While handling this graph break"  # what comes behind is no cause, but what became of the frame
_DETAIL = re.compile(
    r"^ {1,2}(Explanation|Hint|Developer debug context|For more details about this graph break, please visit): *",
    re.MULTILINE,
)
_NEXT_GUARD = re.compile(r"\n\s*- \d+/\d+: ")
_TRACED = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)')
_STACK_LINE = re.compile(r'File "([^"\n]+)", line (\d+)')
_CLIPPED_PLACE = re.compile(r"# (\S*\.py):(\d+) in ")
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)$")
TORCH = os.path.join(os.path.dirname(torch.__file__), "")
_OTHER_TORCH = "-packages/torch/"  # of another machine, in its logs
_STANDARD = os.path.join(os.path.dirname(os.__file__), "")
_EVAL_FRAME = os.path.join(TORCH, "_dynamo", "eval_frame.py")


@dataclass
class Origin:
    """What came of the graphs that were captured in one frame; ``resumed``: of one that goes on behind a break.

    ``nested``: of one that was entered from compiled code, which has broken. ``stack``: as of a break, without itself.
    """

    where: str
    function: str
    resumed: bool
    nested: bool = False
    graphs: int = 0
    compile_seconds: float = 0.0
    launches: int = 0
    operators: int = 0
    seconds: float = 0.0
    stack: tuple[str, ...] = ()


class Listener(logging.Handler):
    """Sorts the records that torch logs by what they tell, and counts graphs as they are compiled and launched.

    Dynamo's own counters miss some breaks (a tensor ``if`` in the outermost function), its log records do not.
    ``operators``: of the captured graphs, each time that one is launched. ``details``: what else was told of a break
    (where, reason); ``sources``: of the guard (function, where, guard) that failed, which code had made it necessary.
    Of the user's stack those frames of ``case_file`` are left out that call what is compiled.
    """

    def __init__(self, shown: Callable[[str], str], case_file: str = "") -> None:
        super().__init__(logging.DEBUG)
        self._shown, self._case_file = shown, case_file
        self.details: dict[tuple[str, str], Json] = {}
        self.sources: dict[tuple[str, str, str], str] = {}
        self.origins: dict[tuple[str, str, bool, bool], Origin] = {}
        self.nested: dict[tuple[str, str, str], bool] = {}  # of the recompiles: whether all were nested
        self._compiled_until = 0.0
        self._blamed: list[_Place] = []
        self.breaks: list[tuple[str, str]] = []
        self.recompiles: list[tuple[str, str, str]] = []
        self.limits: list[tuple[str, str, str]] = []
        self.dropped: list[tuple[str, str]] = []
        self.skips: list[tuple[str, str]] = []
        self._rest_dropped: Any = None  # the compile id of the frame whose rest was dropped last
        self.graphs = self.launches = self.operators = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record; those that tell nothing of interest are passed over."""
        try:
            text = record.getMessage()
        except Exception:  # a message of somebody else's that cannot be formatted
            return
        if found := _BREAK.search(text):
            cause = _CAUSE.match(text, found.end())
            where, told = self._shown(found[1]), found[2].strip()
            reason = cause[1].strip() if cause and told.startswith(_WRAPPED) else told
            self.breaks.append((where, reason))
            self._detail(where, reason, text)
            if "kipping the" in told:  # "Skipping the function", "skipping the rest of the function"
                frame, rest = torch._guards.CompileContext.current_compile_id(), "kipping the rest" in told
                if frame is not None and frame == self._rest_dropped and not rest:
                    self.dropped.pop()  # what was before the break could not be compiled either: it is one frame
                self._rest_dropped = frame if rest else None
                self.dropped.append((where, reason))
        elif "torch.compile will skip tracing the frame" in text:
            frame_left = _FRAME_LEFT.search(text)
            where = self._shown("{}:{}".format(*frame_left.groups())) if frame_left else ""
            reason = " ".join(text.split())[:LINE_CHARACTERS]
            self.dropped.append((where, reason))
            self._detail(where, reason, str(record.exc_info[1]) if record.exc_info else "")
        elif record.levelno >= logging.WARNING and (found := _SUPPRESSED.match(text)):  # with config.suppress_errors
            errors = _ERROR.findall(text) or ["an error that was suppressed"]
            self.dropped.append((self._shown(f"{found[1]}:{found[2]}"), errors[-1][:LINE_CHARACTERS]))
        elif found := _RECOMPILED.search(text):
            guard = next((line.strip()[2:] for line in text.splitlines()[1:] if line.lstrip().startswith("- ")), "")
            self.recompiles.append((found[1], self._shown(found[2]), guard))
            self._source(self.recompiles[-1], text.partition(guard)[2] if guard else "")
            key = (*self.recompiles[-1][:2], general_guard(guard))
            self.nested[key] = self.nested.get(key, True) and _nested()
        elif "torch._dynamo hit config." in text:
            limit = _LIMIT.search(text)
            parts = (limit[1], self._shown(limit[2]), limit[3] or "") if limit else ("", "", " ".join(text.split()))
            self.limits.append(parts)
            self._source(parts, text[limit.end() :] if limit else "")
        elif record.funcName == "log_cudagraph_skip_and_bump_counter" or _SKIPPED_GRAPH.search(text):
            said, _, behind = _SKIPPED_GRAPH.sub(r"\1", text).partition("Found from")
            places = [self._shown(f"{file}:{line}") for file, line in _IN_FILE.findall(behind)]
            self.skips.append((places[-1] if places else "", said.partition("\n")[0].strip(" .")))

    def _detail(self, where: str, reason: str, text: str) -> None:
        """Note what else is told of a break; of one that has come up before, only what was missing."""
        known = self.details.setdefault((where, reason), {})
        stack = self._stack(self._blamed if "ackend compiler" in text else [])
        for key, value in {**_details(text, self._shown), "stack": stack}.items():
            if value:
                known.setdefault(key, value)
        other = [frame for frame in stack if frame not in (*known["stack"], *known.get("around", ()))]
        if other and len(known.get("around", ())) < MOST_AROUND:
            known["around"] = [*known.get("around", ()), *other]  # it is called from several places

    def _stack(self, blamed: list[_Place]) -> list[str]:
        """How the user's code got to the break that is being logged, outermost first; at its end what is ``blamed``.

        Dynamo's text puts frames of one name into one (all that are called ``forward``), its stack does not.
        """
        outer, inner = _stacks()
        return self._told(outer, [*inner, *blamed])

    def _told(self, outer: list[_Place], rest: list[_Place]) -> list[str]:
        """The frames of the user's code, from what is compiled on."""
        entries = [number for number, (file, _, _) in enumerate(outer) if file == _EVAL_FRAME]
        outer = outer[min(entries, default=0) :]  # what calls the compiled function is not compiled
        kept: list[_Place] = []
        for number, (file, line, name) in enumerate([*outer, *rest]):
            calling = number < len(outer) and file == self._case_file
            if calling or is_ours(file) or _is_foreign(file):
                continue
            resumed = _RESUMED.match(name)
            if resumed and kept and (kept[-1][0], kept[-1][2]) == (file, resumed[1]):
                kept.pop()  # the caller of a resume function is the function that it goes on with
            kept.append((file, line, resumed[1] if resumed else name))
        return [f"{self._shown(f'{file}:{line}')} in {name}" for file, line, name in kept]

    def _source(self, row: tuple[str, str, str], rest: str) -> None:
        """Note where a guard comes from: torch's stack behind it, else the clipped place at its own end."""
        rest = _NEXT_GUARD.split(rest, maxsplit=1)[0]
        places = [(file, line) for file, line in _STACK_LINE.findall(rest) if not file.startswith(TORCH)]
        clipped = _CLIPPED_PLACE.findall(row[2])
        if places or clipped:
            file, line = places[-1] if places else (_unclipped(clipped[-1][0]), clipped[-1][1])
            self.sources.setdefault((row[0], row[1], general_guard(row[2])), self._shown(f"{file}:{line}"))

    def counts(self) -> dict[str, int]:
        """The figures so far."""
        return {
            "breaks": len(self.breaks),
            "recompiles": len(self.recompiles),
            "graphs": self.graphs,
            "limit_hits": len(self.limits),
            "dropped_frames": len(self.dropped),
            "cudagraph_skips": len(self.skips),
            "launches": self.launches,
            "operators": self.operators,
        }

    def count_graphs(self) -> None:
        """Count what every ``torch.compile`` of this process hands to its backend, the user's own calls included."""
        for wrapper in (torch._TorchCompileInductorWrapper, torch._TorchCompileWrapper):
            wrapper.__call__ = self._counting(wrapper.__call__)

    def _counting(self, compile_graph: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(compile_graph)
        def call(wrapper: Any, graph: Any, *rest: Any, **options: Any) -> Any:
            size = _operators(graph)
            origin, start = self._origin(), max(_tracing_since(), self._compiled_until)
            with self._blaming():
                compiled = compile_graph(wrapper, graph, *rest, **options)
            self.graphs += 1  # only now: a backend may refuse, and Dynamo then drops the frame
            origin.graphs += 1
            self._compiled_until = time.time()
            origin.compile_seconds += self._compiled_until - start

            def launch(*arguments: Any) -> Any:
                self.launches += 1
                self.operators += size
                origin.launches += 1
                origin.operators += size
                began = time.perf_counter()
                output = compiled(*arguments)
                origin.seconds += time.perf_counter() - began
                return output

            return launch

        return call

    @contextlib.contextmanager
    def _blaming(self) -> Iterator[None]:
        """Note which code a backend blames for what it refuses: Dynamo only tells the frame of the whole graph."""
        self._blamed = []
        with warnings.catch_warnings(record=True) as heard:
            warnings.filterwarnings("always", "Error detected in .* Traceback of forward call")
            try:
                yield
            except Exception as error:
                told = [str(warning.message) for warning in heard]
                told = [text for text in told if text.startswith("Error detected in")]
                found = _TRACED.findall(told[-1] if told else str(error))
                self._blamed = [(file, int(line), name) for file, line, name in found]
                raise

    def _origin(self) -> Origin:
        """Of the frame that is being compiled; with nothing in ``where`` when torch does not tell."""
        where, function, resumed = "", "", None
        if (code := _code_in_work()) is not None:
            resumed = _RESUMED.match(code.co_name)
            function, line = resumed.groups() if resumed else (code.co_name, code.co_firstlineno)
            where = self._shown(f"{code.co_filename}:{line}")
        key = where, function, resumed is not None, _nested()
        if key not in self.origins:
            self.origins[key] = Origin(*key, stack=tuple(self._told(_python_stack(), [])))
        return self.origins[key]

    def launched(self) -> dict[tuple[str, str, bool, bool], tuple[int, int, float]]:
        """Launches, operators and seconds of each origin so far."""
        return {key: (it.launches, it.operators, it.seconds) for key, it in self.origins.items()}


@contextlib.contextmanager
def listening(listener: Listener, verbose: bool) -> Iterator[None]:
    """All that torch logs goes to the listener, and to the terminal only when the user has asked for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attend(listener, verbose)
        yield


def attend(listener: Listener, verbose: bool) -> None:
    """Hand all that torch logs to the listener; again once the case is loaded, which may have set up logging."""
    logging.disable(logging.NOTSET)
    if not verbose:
        torch._logging.set_logs(graph_breaks=True, recompiles=True, cudagraphs=True, perf_hints=True)
    names = [n for n in logging.root.manager.loggerDict if n == "torch" or n.startswith("torch.")]
    if os.environ.get("TORCH_TRACE"):
        names = [n for n in names if n != "torch.__trace"]  # writes into a file of its own
    for log in map(logging.getLogger, names):
        log.disabled = False
        if log.handlers or not log.propagate:
            if verbose:
                log.addHandler(listener)
            else:
                log.handlers, log.propagate = ([listener], False) if log.name == "torch" else ([], True)


def described(listener: Listener) -> Json:
    """The reasons, each once with its count, in the order in which they came up, and what else is known of each."""

    def counted(items: Iterable[tuple[str, ...]], *keys: str) -> list[Json]:
        return [{**dict(zip(keys, row)), "count": n} for row, n in Counter(items).items()]  # noqa: B905

    def sites(items: Iterable[tuple[str, str]]) -> list[Json]:
        rows = counted(items, "where", "reason")
        return [{**row, **listener.details.get((row["where"], row["reason"]), {})} for row in rows]

    def functions(items: Iterable[tuple[str, str, str]]) -> list[Json]:
        rows = counted([(f, w, general_guard(g)) for f, w, g in items], "function", "where", "guard")
        keys = [(row["function"], row["where"], row["guard"]) for row in rows]
        told = [{"source": listener.sources.get(key), "nested": listener.nested.get(key)} for key in keys]
        return [{**row, **{k: v for k, v in more.items() if v}} for row, more in zip(rows, told)]  # noqa: B905

    return {
        "breaks": sites(listener.breaks),
        "recompiles": functions(listener.recompiles),
        "limit_hits": functions(listener.limits),
        "dropped_frames": sites(listener.dropped),
        "cudagraph_skips": sites(listener.skips),
    }


def origins_of(listener: Listener, before: Mapping[tuple[str, str, bool, bool], tuple[int, int, float]]) -> list[Json]:
    """Where the graphs come from; launches, operators and seconds are those since ``before``."""
    timed = not torch.cuda.is_initialized()  # a GPU goes on by itself when the call has returned
    told = []
    for key, origin in listener.origins.items():
        if not origin.graphs:
            continue  # the backend has refused them all
        launches, operators, seconds = before.get(key, (0, 0, 0.0))
        told.append(
            {
                "where": origin.where,
                "function": origin.function,
                "resumed": origin.resumed,
                "nested": origin.nested,
                "graphs": origin.graphs,
                "launches": origin.launches - launches,
                "operators": origin.operators - operators,
                "compile_seconds": round(origin.compile_seconds, 4),
                "seconds": round(origin.seconds - seconds, 6) if timed else None,
                "stack": list(origin.stack),
            }
        )
    return told


def _operators(graph: Any) -> int:
    """Calls in ``graph`` and in the graphs that it calls; of the two arms of a ``torch.cond`` those of the larger."""
    total = 0
    for node in graph.graph.nodes:
        if not node.op.startswith("call_"):
            continue
        handed = [a.target for a in node.args if getattr(a, "op", "") == "get_attr" and "." not in a.target]
        called = [held for name in handed if hasattr(held := getattr(graph, name, None), "graph")]
        sizes = [_operators(held) for held in called]
        total += 1 + (max(sizes, default=0) if str(node.target) == "cond" else sum(sizes))
    return total


def _code_in_work() -> types.CodeType | None:
    """Of the frame that Dynamo compiles."""
    with contextlib.suppress(Exception):  # Dynamo's insides, which differ from release to release
        code = torch._dynamo.symbolic_convert.InstructionTranslator.current_tx().f_code
        return code if isinstance(code, types.CodeType) else None
    return None


def _stacks() -> tuple[list[_Place], list[_Place]]:
    """Of the break that is being logged: the Python stack above what is compiled, and Dynamo's in it."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and not (inner := _traced(frame)):
        frame = frame.f_back
    if frame is None:
        return [], []
    code = _code_in_work()
    if code is not None and inner[0][0] == code.co_filename:
        inner[0] = (*inner[0][:2], code.co_name)  # torch has taken the mark of a resume function off
    outer = _python_stack(frame)
    return ([], inner) if inner[0] == outer[0] else (outer, inner)  # some releases of torch tell the whole of it


def _python_stack(frame: types.FrameType | None = None) -> list[_Place]:
    """From the outermost frame to ``frame``, or to where it is asked for."""
    return [(f.f_code.co_filename, line, f.f_code.co_name) for f, line in traceback.walk_stack(frame)][::-1]


def _nested() -> bool:
    """Whether compiled code of the user's is under way: what is compiled now is no part of it, as that has broken."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_stack(sys._getframe())][::-1]
    entry = files.index(_EVAL_FRAME) if _EVAL_FRAME in files else len(files)
    return any(not is_ours(file) and not _is_foreign(file) for file in files[entry:])


def _traced(frame: types.FrameType) -> list[_Place]:
    """The places in the user's code that Dynamo was at, from the variables of its function that logs a break."""
    if not frame.f_code.co_filename.startswith(TORCH):
        return []
    held = frame.f_locals
    known = [getattr(held.get(name), "real_stack", None) for name in ("exc", "e")]
    stack = next((stack for stack in (*known, held.get("user_stack")) if isinstance(stack, list) and stack), [])
    return [(summary.filename, summary.lineno, summary.name) for summary in stack]


def _is_foreign(file: str) -> bool:
    """Whether it is of torch, of Python or of no file at all."""
    installed = "site-packages" in file or "dist-packages" in file
    torchs = file.startswith((TORCH, "<")) or _OTHER_TORCH in file
    return torchs or (file.startswith(_STANDARD) and not installed)


def _tracing_since() -> float:
    """When Dynamo has begun with the frame that it compiles, where it tells; else now."""
    with contextlib.suppress(Exception):
        context = torch._dynamo.utils.get_metrics_context()
        if context.in_progress() and context._start_time_ns:
            return float(context._start_time_ns / 1e9)
    return time.time()


def _details(text: str, shown: Callable[[str], str]) -> Json:
    """What a message says about the cause of a break; releases of torch before 2.7 say nothing of it."""
    cause = re.split(r"\n(?:Stack variable source attribution|User code traceback):", text.partition(_ANOTHER)[0])[0]
    found: dict[str, list[str]] = {}
    _, *parts = _DETAIL.split(cause)
    for name, told in zip(parts[::2], parts[1::2]):  # noqa: B905
        plain = without_address(shown(re.sub(r"^ {1,4}", "", told.strip(), flags=re.MULTILINE)))
        found.setdefault(name.split()[0], []).append(re.sub(r"[ \t]+$", "", plain, flags=re.MULTILINE))
    explanation, context, url = (" ".join(found.get(key, [])) for key in ("Explanation", "Developer", "For"))
    return {
        "explanation": explanation[:EXPLANATION_CHARACTERS],
        "hints": [hint[:EXPLANATION_CHARACTERS] for hint in found.get("Hint", []) if hint],
        "context": " ".join(context.split())[:LINE_CHARACTERS],
        "url": url.split()[0] if url.strip() else "",
    }


def _unclipped(path: str) -> str:
    """The one imported file whose path ends in what torch has left of it; else as it is."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    found = [file for file in files if isinstance(file, str) and file.endswith(path)]
    return found[0] if len(found) == 1 else path


def general_guard(guard: str) -> str:
    """The failed guard without its cache entry's number, and without the (clipped) path of its source line."""
    guard = re.sub(r"\s+# \S*\.py:\d+ in .*$", "", re.sub(r"^\d+/\d+: ", "", guard))
    return re.sub(r" {3,}# ", "  # ", guard).strip()


def place_names(plan: Json) -> Callable[[str], str]:
    """File names as the user knows them: relative to the project, to an import root, or to site-packages."""
    roots = [os.path.join(os.path.realpath(p), "") for p in (plan["base"], *plan["path"]) if p]
    spelled = [os.path.join(os.path.abspath(p), "") for p in (plan["base"], *plan["path"]) if p]

    def shown(path: str) -> str:
        for root in (*spelled, *roots):
            path = path.replace(root, "")
        return re.sub(r"[^\s(]*?/(?:site|dist)-packages/", "", path)

    return shown
