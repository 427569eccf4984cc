"""Every rule is tested by its own examples: rewritten exactly, then stable, and run before and after."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections import Counter
from dataclasses import replace

import pytest

from docs.generate import HEADINGS, sections
from patcher.edit.engine import patch
from patcher.results import PatchResult
from patcher.rule import Example, NearMiss, Rule
from patcher.settings import Extent, Settings, Varied
from rules import load_rules
from tests.dynamo import INSTALLED, PREAMBLE, Raised, lost, run_example

OLDEST_TORCH = (2, 6)  # there, no rule rests because its pattern no longer breaks
RULES = tuple(load_rules())
EXAMPLES = [pytest.param(rule, e, id=f"{rule.code}-{e.title}") for rule in RULES for e in rule.invalid]
REWRITTEN = [
    pytest.param(rule, e, id=f"{rule.code}-{e.title}") for rule in RULES for e in rule.invalid if e.after is not None
]
#: What stands in a class body does not see its neighbours by name, so only an example that is one class can go there.
SINGLE_CLASSES = [
    pytest.param(rule, e, id=f"{rule.code}-{e.title}")
    for rule in RULES
    for e in rule.invalid
    if [type(statement) for statement in ast.parse(e.before).body] == [ast.ClassDef]
]
NEAR_MISSES = [pytest.param(rule, n, id=f"{rule.code}-{n.title}") for rule in RULES for n in rule.valid]
each_rule = pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.code) for rule in RULES])


def settings_for(rule: Rule, example: Example, scope: str = "") -> Settings:
    return Settings(
        switches=frozenset({rule.switch} - {""}),
        unsafe=example.unsafe,
        strategies=example.strategies,
        target_torch=OLDEST_TORCH,
        evidence=evidence_of(example, scope),
        extents=extents_of(example, scope),
        torch_settings=example.torch_settings,
    )


def evidence_of(case: Example | NearMiss, scope: str = "") -> tuple[Varied, ...]:
    return tuple(replace(v, path="example.py", function=f"{scope}{v.function}") for v in case.evidence)


def extents_of(case: Example | NearMiss, scope: str = "") -> tuple[Extent, ...]:
    return tuple(e._replace(path="example.py", function=f"{scope}{e.function}") for e in case.extents)


def patched(text: str, rules: tuple[Rule, ...], settings: Settings) -> PatchResult:
    result = patch(text, "example.py", rules, settings)
    assert result.bugs == ()
    return result


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


@each_rule
def test_a_rule_is_complete(rule: Rule) -> None:
    assert isinstance(rule, Rule)
    assert re.fullmatch(r"FC[1-9]\d\d", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert rule.listens_to
    assert rule.triggers
    assert vars(rule) == {}, "a rule holds no state"
    assert len(rule.invalid) >= 6
    assert len(rule.valid) >= 6
    for cases in (rule.invalid, rule.valid):
        titles = [case.title for case in cases]
        assert len(set(titles)) == len(titles)


@each_rule
def test_only_an_unsafe_fix_may_round_in_another_way(rule: Rule) -> None:
    assert all(example.unsafe and 0 < example.tolerance <= 1e-2 for example in rule.invalid if example.tolerance)


@each_rule
def test_a_rule_is_documented(rule: Rule) -> None:
    said = sections(rule)
    assert [heading for heading in HEADINGS if not said.get(heading)] == []
    assert [name for name in said if name] == list(HEADINGS), "in this order"


def test_codes_and_names_are_unique() -> None:
    assert RULES
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_example_is_found_and_rewritten(rule: Rule, example: Example) -> None:
    before = PREAMBLE + example.before
    result = patched(before, (rule,), settings_for(rule, example))
    assert result.found
    assert {reported.code for reported in result.found} == {rule.code}
    assert any(trigger in before.encode() for trigger in rule.triggers)
    assert result.text == (before if example.after is None else PREAMBLE + example.after)
    assert bool(result.fixed) == (example.after is not None)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_unsafe_and_unfixed_examples_are_left_alone_by_default(rule: Rule, example: Example) -> None:
    if example.unsafe or example.after is None:
        before = PREAMBLE + example.before
        result = patched(before, (rule,), replace(settings_for(rule, example), unsafe=False))
        assert result.text == before
        assert result.remaining
        assert all(reported.assumption for reported in result.remaining), "it says what it takes for granted"


@pytest.mark.parametrize(("rule", "example"), REWRITTEN)
def test_rewritten_example_is_stable_under_all_rules(rule: Rule, example: Example) -> None:
    after = PREAMBLE + str(example.after)
    assert patched(after, RULES, settings_for(rule, example)).text == after


@pytest.mark.parametrize(("rule", "example"), REWRITTEN)
def test_comments_survive(rule: Rule, example: Example) -> None:
    text = patched(PREAMBLE + example.before, (rule,), settings_for(rule, example)).text
    assert comments(example.before) - comments(text) == Counter()


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_example_is_found_one_block_deeper(rule: Rule, example: Example) -> None:
    def deeper(source: str) -> str:
        return f"{PREAMBLE}\nif True:\n{textwrap.indent(source, '    ')}"

    result = patched(deeper(example.before), (rule,), settings_for(rule, example))
    assert result.found
    assert result.text == deeper(example.before if example.after is None else example.after)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_example_is_found_inside_a_function(rule: Rule, example: Example) -> None:
    text = f"{PREAMBLE}\ndef enclosing():\n{textwrap.indent(example.before, '    ')}"
    result = patched(text, (rule,), settings_for(rule, example, "enclosing."))
    assert result.found
    ast.parse(result.text)


@pytest.mark.parametrize(("rule", "example"), SINGLE_CLASSES)
def test_example_is_found_inside_a_class(rule: Rule, example: Example) -> None:
    text = f"{PREAMBLE}\nclass Enclosing:\n{textwrap.indent(example.before, '    ')}"
    result = patched(text, (rule,), settings_for(rule, example, "Enclosing."))
    assert result.found
    ast.parse(result.text)


@pytest.mark.parametrize(("rule", "miss"), NEAR_MISSES)
def test_near_miss_is_left_alone(rule: Rule, miss: NearMiss) -> None:
    source = PREAMBLE + miss.source
    ast.parse(source)
    for unsafe in (False, True):
        settings = Settings(
            switches=frozenset({rule.switch} - {""}),
            unsafe=unsafe,
            target_torch=OLDEST_TORCH,
            evidence=evidence_of(miss),
            extents=extents_of(miss),
            torch_settings=miss.torch_settings,
        )
        result = patched(source, (rule,), settings)
        if unsafe and miss.instead:
            assert miss.instead in result.text
            assert miss.instead not in source
            continue
        assert result.text == source
        if not miss.reported:
            assert result.found == ()


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_example_runs_the_same_and_compiles_better(rule: Rule, example: Example) -> None:
    after_text = example.before if example.after is None else example.after
    compared = run_example(example.before, after_text, example.run, example.tolerance)
    if example.raises:
        assert compared.raised == len(compared.before.outputs)
        assert not any(isinstance(out, Raised) for out in compared.after.outputs), str(compared)
        assert compared.after.graphs > 0
        assert compared.compiled_difference is None, str(compared)
        return
    assert compared.difference is None, str(compared)
    assert compared.aliasing is None, str(compared)
    assert compared.drawn is None or example.unsafe, str(compared)
    assert compared.compiled_difference is None, str(compared)
    assert compared.raised < len(compared.before.outputs), "every call raised"
    before, after = (example.cost(counts.figures) for counts in (compared.before, compared.after))
    here = replace(settings_for(rule, example), target_torch=INSTALLED)
    if not patched(PREAMBLE + example.before, (rule,), here).found:  # what this torch takes is not told for it
        assert (before, compared.before.breaks) == (after, 0), str(compared)
    elif example.after is None:
        assert not example.gain or max(before[:2]) > 0, str(compared)
    else:
        assert after <= before, str(compared)
        assert after < before or not example.gain, str(compared)


@pytest.mark.parametrize(("rule", "example"), [p for p in REWRITTEN if not p.values[1].unsafe])
def test_a_safe_example_loses_no_mode(rule: Rule, example: Example) -> None:
    found = lost(example.before, str(example.after), example.run)
    assert set(found) <= {"script"}
    if found:  # code is presumed not to be scripted where nothing prepares it for that
        scripted = f"{PREAMBLE}{example.before}\n\ndef _scripting():\n    return torch.jit.is_scripting()\n"
        assert patched(scripted, (rule,), settings_for(rule, example)).text == scripted
