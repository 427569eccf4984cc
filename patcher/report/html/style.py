"""The looks: two palettes with the same names, and the sheet style.css. Colour says nothing that a word does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# Text on any of its grounds has a contrast of at least 4.5, bars and focus of at least 3; a test works it out.
LIGHT: Mapping[str, str] = {
    "ground": "#ffffff",
    "raised": "#f4f5f7",
    "line": "#d5d9de",
    "ink": "#1a1e23",
    "quiet": "#565e68",
    "link": "#0b529c",
    "high": "#a3201a",
    "medium": "#8a4b00",
    "low": "#3f5a76",
    "good": "#1c6a38",
    "old": "#fdeceb",
    "old-mark": "#f6c9c5",
    "new": "#e8f5ea",
    "new-mark": "#bde5c5",
    "here": "#fff3d0",
    "alarm": "#fdeceb",
    "bar-eager": "#868d96",
    "bar-before": "#b8722a",
    "bar-after": "#2c6fb0",
}
DARK: Mapping[str, str] = {
    "ground": "#14171b",
    "raised": "#1d2126",
    "line": "#363c44",
    "ink": "#dfe3e8",
    "quiet": "#a0a8b2",
    "link": "#84b9f2",
    "high": "#ff9c92",
    "medium": "#e8b36b",
    "low": "#a6bfd9",
    "good": "#86d49c",
    "old": "#34201f",
    "old-mark": "#6b302c",
    "new": "#182b1e",
    "new-mark": "#24562f",
    "here": "#3a3115",
    "alarm": "#34201f",
    "bar-eager": "#868d96",
    "bar-before": "#d2934f",
    "bar-after": "#5c9fe0",
}


def _palette(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}: {colour}; " for name, colour in colours.items())


_RULES = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
SHEET = (
    f":root {{ color-scheme: light dark; {_palette(LIGHT)}}}\n"
    f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_palette(DARK)}}} }}\n{_RULES}"
)
