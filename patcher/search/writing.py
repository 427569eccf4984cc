"""Write the settings that a search has kept into the source, where the model is compiled."""

from __future__ import annotations

from dataclasses import replace

from patcher.analysis import Analysis
from patcher.diagnose.places import Places
from patcher.diagnose.relations import bundles
from patcher.results import FileResult
from patcher.search.optimizing import Configuration
from patcher.settings import Settings, TorchSetting, Unit

_RULE = ("FC710", "compile-setting")  # the rule that writes settings of PyTorch


def written(
    analysis: Analysis, settings: Settings, places: Places, one: Configuration
) -> tuple[tuple[FileResult, ...], tuple[TorchSetting, ...]]:
    """Return the files with the fixes and settings of a configuration, and the settings that no file has a place for.

    ``settings``: what rules are told of it (``Optimizer.told``). A setting holds for the whole process, which is an
    assumption: without that grade, none is written.
    """
    if not one.settings or not settings.unsafe or not settings.wants(*_RULE):
        return one.changed, one.settings

    def units(some: tuple[TorchSetting, ...]) -> frozenset[Unit]:
        made = bundles(analysis.again(replace(settings, torch_settings=some, select=_RULE[:1])), places)
        return frozenset(unit for bundle in made for unit in bundle.units if unit.code == _RULE[0])

    left = tuple(setting for setting in one.settings if not units((setting,)))
    kept = frozenset(unit for bundle in one.bundles for unit in bundle.units)
    wanted = tuple(setting for setting in one.settings if setting not in left)
    if not wanted:
        return one.changed, left
    files = analysis.again(replace(settings, torch_settings=wanted, only=kept | units(wanted)))
    return tuple(file for file in files if file.changed), left
