"""The first word of a command line: what it stands for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """A word that may stand first. ``flags``: the same call, spelled with options. ``tells``: what it does."""

    flags: tuple[str, ...]
    tells: str


#: Words for calls that flags spell too; each is one call with its flags.
SPELLED: Mapping[str, Word] = {
    "check": Word(("--verify-only",), "Tell what is to fix, by default in the whole project. Nothing is written."),
    "verify": Word(("--verify-only",), 'Tell what is to fix: the same as "check". Nothing is written.'),
    "diff": Word(("--dry-run",), "Show what would change as a unified diff. Nothing is written."),
    "fix": Word(
        ("--yes",), 'Write safe fixes into the files; the originals are saved first, "restore" brings them back.'
    ),
    "test": Word(("--test",), "Measure your model, original against patched; patch only when they are equivalent."),
    "judge": Word(("--test",), "Measure anybody's change (--patch, --against) on your model, and on changed inputs."),
}

#: All words with what stands behind them, and what they do: the help lists them.
LISTED: Mapping[str, tuple[str, str]] = {
    "optimize": ("-- COMMAND", "make your program faster, or say that compiling does not pay"),
    "check": ("[PATH]...", "what is to fix; writes nothing (or: --verify-only)"),
    "diff": ("[PATH]...", "the changes; writes nothing (or: --dry-run)"),
    "fix": ("[PATH]...", "make the changes (or: --yes)"),
    "test": ("[PATH]...", "your model before and after; make the changes when the results are equivalent (or: --test)"),
    "judge": ("[PATH]...", "the same for anybody's change (--patch DIFF, --against REV); nothing is changed"),
    "case": ("FILE:CLASS", "write a first case: how a model is built and called"),
    "diagnose": ("[PATH]...", "run your model; tell what costs time, and why"),
    "prove": ("[PATH]...", "keep the fixes that a run shows to help (or: --prove)"),
    "tune": ("[PATH]...", "find the call of torch.compile that is fastest"),
    "fleet": ("MANIFEST", "many models and cases, here or on many machines"),
    "integrate": ("SCRIPT...", "give a script arguments for torch.compile, and the call"),
    "restore": ("[RUN]", "put the originals of the last (or that) run back"),
    "forget": ("[RUN]", "keep the changes and remove the originals of that run"),
    "rules": ("[CODE]", "list the rules, or explain one"),
    "selftest": ("", "run the rules' examples on your PyTorch"),
    "new-rule": ("CODE", "begin a package with a rule of your own"),
    "server": ("", "be a language server, for editors"),
    "mcp": ("", "be a server for coding assistants"),
}
#: Words for calls of their own.
OTHERS = tuple(word for word in LISTED if word not in SPELLED)

#: The words that search; of ``diagnose`` some are options, too: ``diagnose --prove PATH`` is ``prove PATH``.
SEARCHES = ("optimize", "prove", "tune")
_FLAGS: Mapping[str, str] = {"--prove": "prove", "--tune": "tune"}

#: The page of docs/ that a call is described on, by its word; the others are on that of "".
PAGES: Mapping[str, str] = {
    "": "tutorial",
    **{word: word for word in ("diagnose", "fleet", "integrate", "rules", "selftest")},
    **dict.fromkeys(("check", "verify"), "ci"),
    **dict.fromkeys(("test", "judge"), "harness"),
    **dict.fromkeys(("optimize", "prove", "tune"), "optimize"),
    **{"new-rule": "own-rules", "server": "editors", "mcp": "assistants"},
}

#: What people type for an option; a file or folder of that name comes first.
_OPTIONS = {"help": "--help", "version": "--version"}


def split(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The word that ``arguments`` begin with ("" without one), and the rest of them with the word's flags."""
    first, rest = (arguments[0], list(arguments[1:])) if arguments else ("", [])
    if first in SPELLED:
        return first, [*SPELLED[first].flags, *rest]
    if first in _OPTIONS and not rest and not os.path.lexists(first):
        return "", [_OPTIONS[first]]
    word, rest = (first, rest) if first in OTHERS else ("", list(arguments))
    at = rest.index("--") if "--" in rest else len(rest)
    asked = {_FLAGS[one] for one in rest[:at] if one in _FLAGS} if word in ("", "diagnose") else set()
    if asked:
        rest = [*(one for one in rest[:at] if one not in _FLAGS), *rest[at:]]
        word = asked.pop() if len(asked) == 1 else "optimize"
    return word, rest


def is_word(text: str) -> bool:
    """Whether ``text`` means a call when it stands first."""
    return text in SPELLED or text in OTHERS
