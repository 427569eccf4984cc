"""What is kept is made less: fixes that change no count, and those with which changed inputs give other results, go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from patcher.diagnose.better import Standing
from patcher.diagnose.groups import groups
from patcher.diagnose.relations import Bundle, findings, related
from patcher.harness.measured import Replayed
from patcher.search.candidates import Candidates
from patcher.search.judged import NOT_TRIED, Configuration, Reason, is_less, is_verified
from patcher.search.session import RESERVED
from patcher.settings import TorchSetting

_PRUNED = 0.15  # of the time, where all counts are the same: less is the machine's doing
_TURNS = 2  # until something is taken for slower although all its counts are the same
_MOST_PRUNED = 16  # fixes that are left out one by one
_REPLAYED, _MOST_REPLAYED = 0.05, 20.0  # of the budget, and seconds: for changed inputs
_NOT_COMPARED = Reason("not compared with changed inputs, for want of time", "not tried")


@dataclass
class Reducing(Candidates):
    """A search that leaves out what is not needed, or not right."""

    def _prune(self) -> None:
        """Without the fixes that change no count: one that does not help is not kept."""
        if self.best is None or self.counted is None:
            return
        whole = self._without_settings(self.best.configuration)
        kept = self._needed(whole) if len(whole.bundles) > 1 else whole.bundles
        one = whole if len(kept) == len(whole.bundles) else self._of(kept, whole)
        if one == self.best.configuration:
            return
        for _ in range(0 if self._is_over(RESERVED) else _TURNS):
            state = self._time(one)
            now = self._span(state, "patched")
            if is_verified(state) and now is not None and not is_less(self.best.span, now, _PRUNED):
                self._keep(one, state, now)
                return
        if self._is_over(RESERVED):
            self._note("fewer fixes and settings", NOT_TRIED)

    def _needed(self, whole: Configuration) -> Sequence[Bundle]:
        """Return the fixes that a cause explains, without those whose removal changes no count."""
        kept = self._with_reason(whole)
        usual = self._standing(whole)
        if len(kept) == len(whole.bundles) or self._standing(self._of(kept, whole)) > usual:
            kept = list(whole.bundles)
        for bundle in whole.bundles:
            if bundle not in kept:
                self._drop_bundle(bundle, "no run showed a cost there")
        return self._without_unneeded(kept, whole, usual)

    def _without_settings(self, whole: Configuration) -> Configuration:
        """Return the configuration without settings that were tried together, where no count changes without one."""
        usual = self._standing(whole)
        for setting in [one for one in whole.settings if one in self._together]:
            others = tuple(other for other in whole.settings if other != setting)
            rest = self._of(whole.bundles, replace(whole, settings=others))
            if self._is_over(RESERVED + 0.1):
                self._note("each setting alone", NOT_TRIED)
            elif self._standing(rest) <= usual:
                whole = rest
                self._note(setting.told, "no count changes without it")
        return whole

    def _without_unneeded(self, kept: list[Bundle], whole: Configuration, usual: Standing) -> list[Bundle]:
        """Return the fixes without those whose removal changes no count; what is not proven is left out first."""
        kept = sorted(kept, key=lambda bundle: bundle.proven)
        if self._is_wide and len(kept) > 1:
            rests = [self._of(_other_than(bundle, kept), whole) for bundle in kept[:_MOST_PRUNED]]
            self._count_all(rests, RESERVED + 0.1)
        for bundle in kept[:_MOST_PRUNED]:
            if len(kept) < 2:
                break
            if self._is_over(RESERVED + (0.1 if self._is_wide else 0.25)):
                self._note("each fix alone", NOT_TRIED)
                break
            rest = self._of(_other_than(bundle, kept), whole)
            if self._standing(rest) <= usual:
                kept = list(rest.bundles)
                self._drop_bundle(bundle, "no count changes without it")
        return kept

    def _with_reason(self, whole: Configuration) -> list[Bundle]:
        """The fixes that a cause in the original explains."""
        assert self.counted is not None
        places, costs = self.bench.places, {rule.code: rule.costs for rule in self.analysis.rules}
        found = findings(whole.files)
        causes = groups(self.counted.before, places)
        units = {one.unit for group in causes for one in related(group, found, costs, places)}
        return [bundle for bundle in whole.bundles if bundle.units & units]

    def _replay(self) -> None:
        """Drop fixes and settings with which changed inputs give other results; others that raise are told."""
        if self.best is None or self.best.configuration == self._replayed_with:
            return
        whole = self.best.configuration
        own = tuple(each for each in whole.settings if each.kind in ("config", "member"))
        if not whole.bundles and not own:
            return  # how it is compiled is no matter of inputs
        told = None if (over := self._is_over(RESERVED)) else self._replayed(whole)
        one = self.leave_out_uncompared(over) if told is None else whole
        if told is None or not told.different:
            self.replayed, self._replayed_with = told, whole
        else:
            self.best = None
            own = self._wrong_settings(whole, own, Reason(told.different[0], "different"))
            rest = replace(whole, settings=tuple(each for each in whole.settings if each not in own))
            why = told.different[0]
            one = self._of([bundle for bundle in whole.bundles if self._is_right(bundle, rest, why)], rest)
        if one is not whole and (one.changed or one.settings) and not over:
            state = self._time(one)
            if is_verified(state) and self._consider(one, state):
                self.replayed, self._replayed_with = self._replayed(one), one
        if self.replayed is not None and self.replayed.different:
            self._drop_fixes(one, Reason(self.replayed.different[0], "different"))
            self.best = self.replayed = None

    def leave_out_uncompared(self, over: bool = True) -> Configuration:
        """Return the best configuration without fixes that only changed inputs can show to be right.

        Where it has some and was not compared with changed inputs, it is no longer the best. ``over``: nothing else
        is measured.
        """
        one = self.best.configuration if self.best else Configuration()
        right = [bundle for bundle in one.bundles if not bundle.compared]
        if one == self._replayed_with or len(right) == len(one.bundles):
            return one
        self.best = None
        for bundle in one.bundles:
            if bundle.compared:
                self._drop_for(bundle, _NOT_COMPARED)
        rest = self._of(right, one)
        if over and (rest.bundles or rest.settings):
            self._drop(rest, Reason("not measured by itself, for want of time", "not tried"))
        return rest

    def _wrong_settings(
        self, whole: Configuration, own: tuple[TorchSetting, ...], why: Reason
    ) -> tuple[TorchSetting, ...]:
        """Those of the whole process, where changed inputs give other results with them alone."""
        plain = replace(whole, bundles=(), files=(), strategies=())
        told = None if not own or self._is_over(RESERVED) else self._replayed(plain)
        if not own or (told is not None and not told.different):
            return ()
        for setting in own:
            self._note(setting.told, why if told is None else Reason(told.different[0], "different"))
        return own

    def _is_right(self, bundle: Bundle, whole: Configuration, together: str) -> bool:
        """Whether changed inputs give the same with this fix alone; one that is not is dropped.

        ``together``: what was different with all of them.
        """
        told = None if self._is_over(RESERVED) else self._replayed(self._of([bundle], whole))
        if told is None or told.different:
            unknown = Reason(f"not compared alone, for want of time; with the others: {together}", "not tried")
            self._drop_for(bundle, unknown if told is None else Reason(told.different[0], "different"))
        return told is not None and not told.different

    def _replayed(self, one: Configuration) -> Replayed | None:
        """What changed inputs give, over all cases; None where that could not be had."""
        self.say(f"comparing {one.told} on changed inputs")
        seconds = min(_MOST_REPLAYED, _REPLAYED * self.budget)
        until, limit = self.began + self.budget * (1 - RESERVED), max(1.0, self._left(RESERVED))
        options = replace(self.options, quick=True, alone=True, replay=seconds, until=until)
        options = replace(options, seconds=min(options.seconds, limit))
        state = self.bench.measure(one.changed, options, settings=one.settings)
        found = [case.replayed for case in state.results.cases]
        known = [each for each in found if each is not None and not each.message]
        if not known or len(known) < len(found):
            return None
        raising, failing, zeros, different = (
            tuple(name for each in known for name in getattr(each, part))
            for part in ("raising", "failing", "zeros", "different")
        )
        inputs = sum(each.inputs for each in known)
        return Replayed(inputs, raising, failing, zeros, different) if inputs or different else None


def _other_than(bundle: Bundle, kept: Sequence[Bundle]) -> list[Bundle]:
    return [other for other in kept if other is not bundle]
