"""FC709: timesteps that are rounded before they are embedded."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.effects.writing import Writing
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Example,
    Finding,
    Fix,
    NearMiss,
    Replace,
    Rule,
    Where,
)
from rules.fc709_reduced_timestep.casts import Cast, Casts
from rules.fc709_reduced_timestep.examples import INVALID, VALID
from rules.fc709_reduced_timestep.origins import Kind, Origin, Origins
from rules.fc709_reduced_timestep.sinks import Goes, Sinks


class ReducedTimestep(Rule):
    """A timestep that is rounded to bfloat16 or float16 before it is embedded.

    What it does:
        Keeps timesteps in float32: ``timesteps.to(weight_dtype)`` becomes ``timesteps.to(torch.float32)``,
        ``timesteps.half()`` becomes ``timesteps.float()``, and ``torch.full(shape, t, dtype=latents.dtype)`` is made in
        float32. What counts is where a value comes from (``scheduler.timesteps``, ``sigmas * num_train_timesteps``,
        ``randint`` up to how many there are, a parameter called ``timestep``) and where it goes: out of the
        function, into a model, into an embedding.

    Why it breaks compilation:
        It breaks none; it is what is lost when a script is turned to mixed precision along with compilation. Measured
        on torch 2.13: of the integers from 0 to 1000 bfloat16 tells 507 apart and is off by up to 2, and so is
        1000 times a sigma that was rounded; the sines of a sinusoidal embedding are off by 0.043 in the mean, by up
        to 1.7. float16 has all integers up to 2048 and is off by 0.25 between them, 0.006 in the mean of the sines.
        A model that casts the timestep itself loses them there: both places are reported.

    Fix safety:
        Unsafe: other numbers come out, those that were meant. The embedding has to take float32: one that casts its
        sines to the dtype of the timestep hands float32 to its first layer, which raises without autocast: where
        the project has such a one and the file says nothing of autocast, it is reported and not fixed. What is
        computed with the timestep (``sigmas = timesteps / 1000``, then noisy latents) becomes float32 as well. Left
        alone: a cast below the embedding, to another dtype or to a device alone; integers up to 256 (up to 2048 for
        float16), which are exact; sigmas that only mix noise into latents; and what goes to the scheduler.

    References:
        Source document 000 (kohya, musubi-tuner's 8e37da6); sd-scripts' ``flux_train_utils.py``.
    """

    code: ClassVar[str] = "FC709"
    name: ClassVar[str] = "reduced-timestep"
    costs: ClassVar[tuple[Cost, ...]] = ()  # no break: other numbers
    triggers: ClassVar[tuple[bytes, ...]] = (b"timestep",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    where: ClassVar[Where] = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report a cast of what comes from a timestep and goes where one is embedded."""
        cast = facts.ask(Casts).of(node) if isinstance(node, ast.Call) else None
        origin = facts.ask(Origins).of(cast.value) if cast is not None else None
        if cast is None or origin is None or _exact(cast, origin) or _is_own(cast, facts):
            return
        sinks = facts.ask(Sinks)
        if sinks.of(cast.call) < (Goes.OUT if origin.kind is Kind.TIMESTEP else Goes.IN):
            return
        rounded = f"is rounded to {cast.to}" if cast.to or cast.dtype is None else f"takes `{ast.unparse(cast.dtype)}`"
        message = f"the timestep `{ast.unparse(cast.value)}` {rounded} before it is embedded"
        if by := _cast_back_by(facts):
            why = f"{by} casts its sines to the dtype of the timestep, and nothing here is said of autocast"
            yield Finding(node, message, assumption=why)
            return
        fix = Fix((_edit(cast, facts),), Applicability.UNSAFE)
        yield Finding(node, message, fix, "what embeds it takes float32, or runs under autocast")

    invalid: ClassVar[tuple[Example, ...]] = INVALID

    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _exact(cast: Cast, origin: Origin) -> bool:
    """Whether nothing is lost: a few integers, or integers in float16."""
    return origin.kind is Kind.BOUND or origin.few or (origin.whole and cast.to == "float16")


def _is_own(cast: Cast, facts: Facts) -> bool:
    """Whether it takes the dtype of other timesteps, which is said where they are made."""
    owner = cast.dtype.value if isinstance(cast.dtype, ast.Attribute) and cast.dtype.attr == "dtype" else None
    return owner is not None and facts.ask(Origins).of(owner) is not None


def _cast_back_by(facts: Facts) -> str:
    """A function of the project that embeds in the dtype of what it gets, where nothing here turns autocast on."""
    if any("autocast" in n.attr for n in facts.syntax.by_type[ast.Attribute]) or "autocast" in facts.syntax.imports:
        return ""
    modules = sorted(facts.project.modules.values(), key=lambda m: m.path)
    found = (f"`{m.module}.{f.qualname}`" for m in modules for f in m.functions if f.casts_back)
    return next(found, "")


def _edit(cast: Cast, facts: Facts) -> Replace:
    if cast.dtype is None:
        return Replace(cast.call, Code("{0}.float()", (cast.value,)))
    return Replace(cast.dtype, Code(facts.ask(Writing).spelling("torch.float32", cast.call)))
