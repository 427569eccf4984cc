"""FC709: timesteps that are rounded before they are embedded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.effects.writing import Writing
from patcher.rule import Applicability, Code, Finding, Fix, Replace, Rule, Where
from rules.fc709_reduced_timestep.casts import Cast, Casts
from rules.fc709_reduced_timestep.examples import INVALID, VALID
from rules.fc709_reduced_timestep.timesteps import Timesteps


class ReducedTimestep(Rule):
    """A timestep that is rounded to bfloat16 or float16 before it is embedded.

    What it does:
        Keeps timesteps in float32: ``timesteps.to(weight_dtype)`` becomes ``timesteps.to(torch.float32)``,
        ``timesteps.half()`` becomes ``timesteps.float()``, and ``torch.full(shape, t, dtype=latents.dtype)`` is made in
        float32. What counts is a name (``timesteps``, ``scheduler.timesteps``, a loop over them) and that the value is
        returned or given to a model.

    Why it breaks compilation:
        It breaks none; it is what is lost when a script is turned to mixed precision along with compilation. Measured
        on torch 2.13: of the integers from 0 to 1000 bfloat16 tells 507 apart and is off by up to 2, and so is
        1000 times a sigma that was rounded; the sines of a sinusoidal embedding are off by 0.043 in the mean, by up
        to 1.7. float16 has all integers up to 2048 and is off by 0.25 between them, 0.006 in the mean of the sines.
        A model that casts the timestep itself loses them there: both places are reported.

    Fix safety:
        Unsafe: other numbers come out, those that were meant. It assumes that what embeds the timestep takes float32:
        an embedding that casts its sines to the dtype of the timestep hands float32 to its first layer, which raises
        without autocast.

        Not fixed when

        - the cast is below the embedding, to another dtype or to a device alone;
        - the value only goes to the scheduler, or is mixed into latents.

    References:
        Source document 000 (kohya, musubi-tuner's 8e37da6); sd-scripts' ``flux_train_utils.py``.
    """

    code = "FC709"
    name = "reduced-timestep"
    costs = ()  # no break: other numbers
    triggers = (b"timestep",)
    listens_to = (ast.Call,)
    where = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report a cast of what comes from a timestep and goes where one is embedded."""
        cast = facts.ask(Casts).of(node) if isinstance(node, ast.Call) else None
        times = facts.ask(Timesteps)
        if cast is None or not times.holds(cast.value) or _is_own(cast, facts) or not times.goes_to_a_model(cast.call):
            return
        rounded = f"is rounded to {cast.to}" if cast.to or cast.dtype is None else f"takes `{ast.unparse(cast.dtype)}`"
        message = f"the timestep `{ast.unparse(cast.value)}` {rounded} before it is embedded"
        fix = Fix((_edit(cast, facts),), Applicability.UNSAFE)
        yield Finding(node, message, fix, "what embeds it takes float32, or runs under autocast")

    invalid = INVALID

    valid = VALID


def _is_own(cast: Cast, facts: Facts) -> bool:
    """Whether it takes the dtype of other timesteps, which is said where they are made."""
    owner = cast.dtype.value if isinstance(cast.dtype, ast.Attribute) and cast.dtype.attr == "dtype" else None
    return owner is not None and facts.ask(Timesteps).holds(owner)


def _edit(cast: Cast, facts: Facts) -> Replace:
    if cast.dtype is None:
        return Replace(cast.call, Code("{0}.float()", (cast.value,)))
    return Replace(cast.dtype, Code(facts.ask(Writing).spelling("torch.float32", cast.call)))
