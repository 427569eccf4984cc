"""FC707: checkpoints that carry the names which the wrapper of torch.compile has made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.rule import Applicability, Finding, Fix, Rule, Where
from rules.fc707_prefixed_checkpoint.examples import INVALID, VALID
from rules.fc707_prefixed_checkpoint.places import Place, Places
from rules.fc707_prefixed_checkpoint.writing import can_be_written, edits


class PrefixedCheckpoint(Rule):
    """A checkpoint with the names that the wrapper of ``torch.compile`` gives to parameters.

    What it does:
        Saves the state of a model that may be wrapped with the names of the model itself, and matches names where it
        is loaded. ``maybe_uncompile_state_dict(...)`` is written around what is saved, in ``torch.save``,
        ``save_file``, ``save_pretrained(state_dict=...)`` or as a value of a dictionary that is saved;
        ``match_state_dict(..., model)`` around what is loaded into such a model. Both functions are written into the
        file once; one that is there or imported is used. All places of a file are changed together. Reported, and left
        to you: what is given the model itself and writes the names that it has (``save_model``, and
        ``save_pretrained`` of a model whose blocks are wrapped).

    Why it breaks compilation:
        ``torch.compile(model)`` is a module around the model, and ``_orig_mod`` becomes a part of the name of
        each of its parameters: at the root, in the middle where blocks are wrapped, both, and behind ``module.``
        under DistributedDataParallel. What is saved that way does not load into the model itself. With
        ``strict=False`` it loads nothing, and nobody is told (seen on torch 2.13; of 23 parameters 0 changed).
        ``accelerator.unwrap_model`` keeps the wrapper unless it is told not to, ``get_state_dict`` and
        ``save_model`` keep the names (accelerate 1.15). No graph is different. ``Module.compile``, in place, makes no
        such names: where FC703 can write it, that is the better remedy, and this is made only when it was not.

    Fix safety:
        Unsafe: files have other names than before, so what reads ``_orig_mod.`` in them by itself has to know;
        and a load that raised may go through. Parts of a name that are ``_orig_mod`` are taken out wherever they
        are, ``_metadata`` stays, two names that become one are an error, and a state dict without the part is the same
        object. Other files of the project are known as far as they tell accelerate to compile what it prepares
        (``Accelerator(dynamo_backend=...)``; what its own configuration says is not seen), or have a function that
        wraps what it is given. Where accelerate is told so, a model that a function is handed over by other files may
        be wrapped, and what saves its state is found. Left alone: models that are sharded and functions of
        ``torch.distributed``, which know the wrapper; ``unwrap_model(keep_torch_compile=False)``,
        ``getattr(model, "_orig_mod", model)`` and what a test for the wrapper guards; state that is stripped by
        whatever loop, function or comprehension; state that goes from a model to another one without a file.

    References:
        Source document 000 (kohya), musubi-tuner's key stripping; PyTorch, "Where to apply torch.compile".
    """

    code = "FC707"
    name = "prefixed-checkpoint"
    costs = ()  # the graphs are the same
    triggers = (b"torch.compile", b"import compile", b"state_dict(", b"save_model(")
    listens_to = (ast.Module,)
    where = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the state dicts that are saved or loaded with names of the wrapper; the first one changes them all."""
        every = facts.ask(Places).all
        heard = [p for p in every if not facts.silenced(self.code, facts.syntax.statement_of(p.node))]
        for place in every:  # what is silenced is told, and said to be
            yield _finding(place, heard if place in heard else [place], facts)

    invalid = INVALID

    valid = VALID


def _finding(place: Place, places: list[Place], facts: Facts) -> Finding:
    changed = [p for p in places if can_be_written(p)]
    if place not in changed:
        return Finding(place.at, _message(place), assumption=_by_hand(place))
    first, made = changed[0], edits(changed, facts)
    if not made:
        return Finding(place.at, _message(place), assumption="the names of the functions that would do it are taken")
    if place is not first:
        return Finding(place.at, _message(place), assumption=f"changed together with line {first.at.lineno}")
    return Finding(place.at, _message(place), Fix(made, Applicability.UNSAFE, last=True), _assumption(changed))


def _message(place: Place) -> str:
    first = min(place.wraps, key=lambda w: (bool(w.where), w.line, w.where))
    what = "it" if not all(w.inside for w in place.wraps) else "parts of it"
    by = f"{first.where} wraps {what}" if first.where else f"`torch.compile` wraps {what} (line {first.line})"
    model = f"`{ast.unparse(place.model)}`"
    if first.handed:
        return f"the names of {model} are saved with `_orig_mod` in them where {first.where} wraps what is handed over"
    if place.how != "loaded":
        return f"the names of {model} are saved with `_orig_mod` in them: {by}"
    told = ", and nobody is told: `strict=False`" if place.silent else ""
    return f"a checkpoint of the model itself loads nothing into {model}{told}: {by}"


def _assumption(places: list[Place]) -> str:
    what = "files get the names of the model itself: nothing that reads them counts on `_orig_mod`"
    if all(p.how == "loaded" for p in places):
        what = "what does not load today may"
    return f"{what}; compiled in place (`Module.compile`), no name would change"


def _by_hand(place: Place) -> str:
    if place.how == "written":
        return "compile in place (`Module.compile`), or save a state dict without the part"
    return "give the model a name, so that what is loaded can be matched with it"
