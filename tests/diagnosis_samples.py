"""Made-up diagnoses, one of each kind, for the tests of the reports. Nothing here was measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, cast, get_origin, get_type_hints

from patcher.diagnose.diagnosis import (
    Advice,
    Cause,
    CompileSite,
    Diagnosis,
    Diagnostic,
    GraphPair,
    Impact,
    Proof,
    ProposedFix,
    Remark,
    Table,
    Totals,
    Tried,
)
from patcher.harness.compare import Judgement, judge
from patcher.harness.measured import Results, from_json
from tests.test_compare import document, failing, toy, variant

MODES = ("default", "reduce-overhead")
BREAKS = [
    {"where": "models/language_model.py:88", "reason": "Data-dependent branching", "count": 12},
    {"where": "models/vlm.py:40", "reason": "Failed to trace builtin operator: print", "count": 1},
]

ROTARY_DIFF = """\
--- a/models/language_model.py
+++ b/models/language_model.py
@@ -84,12 +84,10 @@
         batch_size, seq_len = position_ids.shape
         flat_position_ids = position_ids.reshape(-1).float()
         max_seq = position_ids.max() + 1
-        if max_seq > self.original_max_seq_len:
-            scale = max_seq / self.original_max_seq_len
-            inv_freq = self.inv_freq / scale
-        else:
-            inv_freq = self.inv_freq
+        scale = max_seq / self.original_max_seq_len
+        longer = max_seq > self.original_max_seq_len
+        inv_freq = torch.where(longer, self.inv_freq / scale, self.inv_freq)
         # the angles of each position
         freqs = flat_position_ids.unsqueeze(-1) * inv_freq.unsqueeze(0).to(device=flat_position_ids.device)

         freqs = freqs.reshape(batch_size, seq_len, -1)
@@ -270,3 +268,3 @@
             k, v = self._expanded(k, v)
-            y = F.scaled_dot_product_attention(q, k, v, is_causal=(T_curr == T_kv))
+            y = F.scaled_dot_product_attention(q, k, v, is_causal=True if T_curr == T_kv else False)
             return y
"""

ADDED_DIFF = """\
--- a/models/vlm.py
+++ b/models/vlm.py
@@ -1,2 +1,4 @@
 import torch
+import torch._dynamo
+
 from torch import nn
@@ -60,3 +62,2 @@
     def forward(self, input_ids):
-        print("tokens", input_ids.shape)
         return self.decoder(input_ids)
\\ No newline at end of file
"""

EXPLANATION = (
    "Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo does not support tracing dynamic"
    " control flow."
)


def cause(number: int = 1, **given: Any) -> Cause:
    """A cause with little to tell, but for what is ``given``."""
    usual: dict[str, Any] = {
        "category": "graph break",
        "severity": "medium",
        "title": "A call that Dynamo cannot trace",
        "where": "models/vlm.py:62",
        "function": "forward",
        "trigger": 'print("tokens", input_ids.shape)',
        "reason": "Failed to trace builtin operator: print",
        "impact": Impact(breaks=1, launches=1, calls=1),
        "cases": ("forward",),
    }
    return Cause(number, **{**usual, **given})


def rotary() -> Cause:
    """A cause with all that there can be to tell."""
    return Cause(
        number=1,
        category="graph break",
        severity="high",
        title="A branch on tensor data",
        where="models/language_model.py:87",
        function="RotaryEmbedding.forward",
        trigger="if max_seq > self.original_max_seq_len:",
        reason="Data-dependent branching",
        impact=Impact(breaks=24, recompiles=13, launches=247, calls=13, compile_seconds=21.46),
        cases=("forward", "decode"),
        code=(
            (84, "        batch_size, seq_len = position_ids.shape"),
            (85, "        flat_position_ids = position_ids.reshape(-1).float()"),
            (86, "        max_seq = position_ids.max() + 1"),
            (87, "        if max_seq > self.original_max_seq_len:"),
            (88, "            scale = max_seq / self.original_max_seq_len"),
            (89, "            inv_freq = self.inv_freq / scale"),
            (90, "        else:"),
        ),
        explanation=EXPLANATION,
        hints=(
            "This graph break is fundamental: it is unlikely that Dynamo will ever trace through your code.",
            "Use `torch.cond` to express dynamic control flow.",
        ),
        advice=(
            Advice(
                "torch._dynamo.config.capture_scalar_outputs = True",
                "`.item()` is captured in the graph.",
                "Guards on the value may then fail to compile: unbacked symbols cannot be compared.",
            ),
        ),
        registry="GB0170",
        reference="https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html",
        fixes=(
            ProposedFix(
                code="FC101",
                name="data-dependent-branch",
                where="models/language_model.py:87",
                message="a branch on tensor data breaks the graph",
                applicability="safe",
                why="The test needs the tensor's value while Dynamo is tracing, which is too early.\n\nThe graph ends.",
                safety="Safe when it is proven that both arms can be evaluated on any input.\n\nElse it is left alone.",
                diff=ROTARY_DIFF,
            ),
            ProposedFix(
                code="FC503",
                name="unmarked-dynamic-dim",
                where="models/vlm.py:71",
                message="the size of dimension 0 of `input_ids` varies",
                applicability="unsafe",
                assumption="every batch has at least two rows",
                strategy="mark-unbacked",
                why="Each new size compiles the function again.",
                safety="Unsafe: a size of 1 may give other strides.",
                diff=ADDED_DIFF,
            ),
        ),
        verify="TORCH_LOGS=graph_breaks fix-compile diagnose --case cases/decode.py --only breaks models",
        fate="removed",
    )


def causes() -> tuple[Cause, ...]:
    """Of each category and severity at least one."""
    shapes = ProposedFix(
        code="FC503",
        name="unmarked-dynamic-dim",
        where="models/vlm.py:71",
        message="the size of dimension 0 of `input_ids` varies",
        applicability="display-only",
        assumption="the call site is not in this repository",
    )
    return (
        rotary(),
        cause(
            2,
            category="recompilation",
            severity="high",
            title="A cache that grows is a new shape for each token",
            where="models/language_model.py:312",
            function="GroupedQueryAttention.forward",
            trigger="k = torch.cat([cache['k'], k], dim=2)",
            reason="tensor 'cache[\"k\"]' size mismatch at index 2. expected 12, actual 13",
            impact=Impact(recompiles=8, limit_hits=1, dropped_frames=1, calls=13, compile_seconds=0.0),
            cases=("decode",),
            code=((312, "\t\tk = torch.cat([cache['k'], k], dim=2)"),),
            fate="remains",
            note="It is compiled by itself only because of the graph breaks above it: mend those first.",
        ),
        cause(
            3, title="print", fate="removed", advice=rotary().advice[:1], verify="TORCH_LOGS=graph_breaks python x.py"
        ),
        cause(
            4,
            category="dynamic shape",
            severity="medium",
            title="The size of `input_ids` (dim 0)",
            where="models/vlm.py:71",
            impact=Impact(recompiles=3, calls=4),
            fixes=(shapes,),
            steady=False,
        ),
        cause(
            5,
            category="CUDA graphs",
            severity="low",
            title="Inputs that are changed in place",
            where="",
            function="",
            trigger="",
            reason="skipping cudagraphs due to mutated inputs (1 instances)",
            impact=Impact(cudagraph_skips=13),
        ),
    )


def measured() -> tuple[Results, Judgement]:
    """Two cases in two modes, of which one variant has failed."""
    decode = toy(
        "decode",
        MODES,
        oe={"warm": {"median_ms": 61.0, "low_ms": 58.0, "high_ms": 66.0}},
        oc={
            "counts": {"breaks": 13, "recompiles": 19, "dropped_frames": 1},
            "launches": 260,
            "operators": 3120,
            "breaks": BREAKS,
            "warm": {"median_ms": 82.5, "low_ms": 80.1, "high_ms": 88.0},
        },
        pc={
            "counts": {"recompiles": 2},
            "launches": 13,
            "operators": 3100,
            "warm": {"median_ms": 24.25, "low_ms": 23.9, "high_ms": 25.1},
        },
    )
    forward = toy("forward", MODES, oc={"launches": 5}, pc={"warm": {"median_ms": 9.9}})
    crash = {**failing("compile-error", "BackendCompilerFailed: no <stdint.h>"), "tail": ["Traceback:", "  File x"]}
    forward["variants"][-1] = variant("pc", "reduce-overhead", **crash)
    del forward["comparisons"][-1]
    results = from_json(document(decode, forward, modes=list(MODES), promise="tolerance"))
    return results, judge(results)


def original_only() -> Results:
    """What was measured where there was nothing to fix."""
    case = toy("decode", oc={"counts": {"breaks": 0, "recompiles": 0}, "breaks": [], "recompiles": []})
    case["variants"] = [item for item in case["variants"] if item["tree"] == "original"]
    case["comparisons"] = [item for item in case["comparisons"] if item["tree"] == "original"]
    return from_json(document(case, overlay=[]))


def diagnostics() -> tuple[Diagnostic, ...]:
    """One that went well, one that did not, and one with more tables and a graph."""
    return (
        Diagnostic(
            name="vary-batch",
            title="Other batch sizes",
            case="forward",
            columns=("marked", "sizes", "recompiles", "seconds"),
            rows=(("nothing", "2, 3, 1", "3", "14.2"), ("input_ids dim 0", "2, 3, 1", "1", "6.1")),
            conclusions=("Mark dimension 0 of `input_ids` at train.py:61.", "A batch of 1 still compiles again."),
            seconds=24.5,
        ),
        Diagnostic(
            name="ablation",
            title="Options of inductor",
            case="decode",
            status="timeout",
            message="did not end within 600 s",
            columns=("option", "warm ms"),
            rows=(("epilogue_fusion=False", "26.1"),),
            seconds=600.0,
        ),
        Diagnostic(
            name="fusions",
            title="Operators that are written by hand",
            case="forward",
            message="8 patterns are looked for in 1 graph of AOT Autograd, inference",
            columns=("operator", "written as", "at", "in", "times", "operators", "inductor"),
            rows=(
                (
                    "rms-norm",
                    "in float32, cast back, then the weight; eps 1e-05",
                    "`models/language_model.py:33-36`",
                    "`decoder.blocks.*.post_attention_layernorm` (RMSNorm)",
                    "24",
                    "8",
                    "1 kernel each",
                ),
            ),
            conclusions=("rms-norm: 24 matches at 1 place, could be `F.rms_norm`.",),
            seconds=31.0,
            tables=(
                Table(
                    "Almost a match",
                    ("operator", "at", "in", "times", "fits", "what differs, the nearest first"),
                    (
                        (
                            "silu",
                            "`models/vlm.py:47`",
                            "`decoder.blocks.*.mlp` (MLP)",
                            "24",
                            "2 of 2",
                            "`mul` with 1.702 stands between the tensor and its other use (models/vlm.py:47)",
                        ),
                    ),
                ),
            ),
            graphs=(
                GraphPair(
                    "forward-graph-1",
                    "6 operators before, 1 after, 1 match",
                    "x = input  # f32[2, 64]\npow_1 = pow(x, 2)  # f32[2, 64]  m.py:33\nreturn [pow_1]",
                    "x = input  # f32[2, 64]\nnorm = fused.rms_norm(x, w, 1e-05)  # f32[2, 64]\nreturn [norm]",
                ),
            ),
        ),
    )


def tried() -> tuple[Tried, ...]:
    """One of each kind of outcome that is common."""
    return (
        Tried(
            fixes=("FC101 data-dependent-branch",),
            where=("models/language_model.py:87",),
            outcome="kept",
            reason="without it there are 24 breaks and 247 launches more",
            diff=ROTARY_DIFF,
        ),
        Tried(
            fixes=("FC501 expanded-index",),
            where=("models/language_model.py:460",),
            outcome="not better",
            reason="without it all figures are the same",
        ),
        Tried(
            fixes=("FC301 kv-cache-mutation", "FC302 tensor-held-index"),
            where=("models/cache.py:20", "models/cache.py:44"),
            outcome="different",
            reason="decode: outputs beyond the tolerance of 0.001 (MAE 0.02)",
            diff=ADDED_DIFF,
        ),
    )


def proof() -> Proof:
    """A proof that has kept one fix of three."""
    results, judgement = measured()
    return Proof(
        tried=tried(),
        before=Totals(breaks=24, recompiles=19, launches=265, dropped_frames=1, limit_hits=1, warm_ms=92.5),
        after=Totals(breaks=0, recompiles=2, launches=14, warm_ms=34.2),
        measurements=7,
        ending="The tree holds 1 of 3 fixes. Every case is equivalent in the mode default.",
        results=results,
        judgement=judgement,
        restore="fix-compile restore .fix-compile/2026-11-21T14-00-00",
    )


def rich() -> Diagnosis:
    """All that a diagnosis without a proof can hold."""
    results, judgement = measured()
    return Diagnosis(
        title="nanoVLM: decode, forward",
        command="fix-compile diagnose --case cases/decode.py --case cases/forward.py --format html models",
        started="2026-11-21T14:00:00+00:00",
        facts=("torch 2.13.0+cpu, Python 3.11.7", "device cpu (Linux x86_64, 2 threads)", "backend inductor"),
        problems=("forward: patched compiled (reduce-overhead) does not compile: BackendCompilerFailed",),
        causes=causes(),
        static_only=(
            Remark(
                "models/vision/transformers/vit.py:68",
                "FC601: an attribute of a helper object",
                "no case came to it",
                "self.cfg.x",
            ),
        ),
        fine=(
            Remark("models/vit.py:12", "print", "in `__init__`, which is not compiled", 'print("no flash attention")'),
            Remark("models/vlm.py:52", "isinstance", "a guard that has not failed"),
        ),
        sites=(
            CompileSite(
                where="train.py:134",
                call='torch.compile(model, backend=cfg.backend, mode="max-autotune")',
                target="model",
                arguments=(("backend", "cfg.backend"), ("mode", '"max-autotune"')),
                remarks=("It is compiled before DDP wraps it, which is the right order.",),
            ),
            CompileSite(where="eval.py:9", call="model.compile()", target="model"),
        ),
        diagnostics=diagnostics(),
        results=results,
        judgement=judgement,
        trace="tlparse has written trace/decode/index.html",
    )


def proven() -> Diagnosis:
    """As ``rich``, with a proof."""
    return dataclasses.replace(rich(), proof=proof())


def empty() -> Diagnosis:
    """Nothing was found, and nothing went wrong."""
    return Diagnosis(
        title="toy",
        command="fix-compile diagnose --case toy.py toy",
        started="2026-11-21T14:00:00+00:00",
        facts=(),
        problems=(),
        causes=(),
        static_only=(),
        fine=(),
        sites=(),
        diagnostics=(),
        results=original_only(),
        judgement=None,
    )


def broken() -> Diagnosis:
    """The case did not run: there are problems and nothing else."""
    return dataclasses.replace(
        empty(),
        title="toy does not run",
        problems=(
            "toy: original eager crashed: ValueError: no weights at weights.pt",
            "toy: the second run broke at m.py:12 and the first did not",
        ),
        results=None,
    )


def unwell() -> Diagnosis:
    """Every variant of the only case has hung."""
    results = from_json(document(toy(oe=failing("timeout"), pe=failing("skipped"), oc=failing("skipped"))))
    return dataclasses.replace(broken(), results=results, judgement=judge(results))


PAYLOAD = """</pre></title></style><script>alert(1)</script><img src=x onerror="alert(2)">'"`|\\&amp;]]>-->"""


def hostile() -> Diagnosis:
    """A diagnosis with HTML in every text."""
    return cast(Diagnosis, _hostile(proven()))


def _hostile(value: Any, hint: Any = None) -> Any:
    """The same text gets the same payload, so that modes and cases are still found by their name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = get_type_hints(type(value))
        given = {field.name: (getattr(value, field.name), hints[field.name]) for field in dataclasses.fields(value)}
        changed = {name: _hostile(item, told) for name, (item, told) in given.items() if name != "document"}
        return dataclasses.replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(_hostile(item) for item in value)
    if isinstance(value, str) and get_origin(hint) is not Literal:
        lines = value.split("\n")
        heads = ("--- ", "+++ ", "@@ ", "\\ ")
        return "\n".join(line if line.startswith(heads) else line + PAYLOAD for line in lines)
    return value


SAMPLES: dict[str, Callable[[], Diagnosis]] = {
    "rich": rich,
    "proven": proven,
    "empty": empty,
    "broken": broken,
    "unwell": unwell,
    "hostile": hostile,
}
