"""The looks: two palettes with the same names, and one sheet. Colour never says anything that a word does not."""

from __future__ import annotations

from collections.abc import Mapping

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


_RULES = """
*, *::before, *::after { box-sizing: border-box; }
html { scroll-padding-top: 3.25rem; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 0 1.25rem 4rem; max-width: 75rem; background: var(--ground); color: var(--ink);
  font: 0.9375rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
  overflow-wrap: break-word;
}
code, pre, .listing, .diff {
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
}
code { font-size: 0.875em; overflow-wrap: anywhere; }
h1, h2, h3, h4, h5 { line-height: 1.25; font-weight: 650; text-wrap: balance; }
h1 { font-size: 1.75rem; margin: 0.25rem 0 0.5rem; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.3125rem; margin: 0 0 0.75rem; letter-spacing: -0.005em; }
h3 { font-size: 1.0625rem; margin: 1.75rem 0 0.5rem; overflow-wrap: anywhere; }
h4, h5 { font-size: 0.9375rem; margin: 1.25rem 0 0.375rem; }
h5 { color: var(--quiet); margin-top: 0.875rem; }
p, ul { margin: 0.5rem 0; }
p, li { max-width: 72ch; }
ul { padding-left: 1.25rem; }
a { color: var(--link); text-underline-offset: 0.15em; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
main:focus { outline: none; }
.skip { position: absolute; left: -100vw; top: 0; padding: 0.5rem 0.75rem; background: var(--ground); z-index: 2; }
.skip:focus { left: 0; }
.top { padding-top: 1.75rem; }
.kind, .quiet { color: var(--quiet); margin: 0; }
.lead { font-size: 1.0625rem; }
nav { border-block: 1px solid var(--line); margin: 1.25rem 0 0; background: var(--ground); }
nav ul { display: flex; flex-wrap: wrap; gap: 0 1.125rem; margin: 0; padding: 0.25rem 0; list-style: none; }
nav a { display: inline-block; padding: 0.375rem 0; text-decoration: none; }
nav a:hover { text-decoration: underline; }
main > section { padding-top: 2rem; }
main > section + section { margin-top: 2.25rem; border-top: 1px solid var(--line); }
#problems { margin-top: 1.25rem; padding: 1rem 1.25rem; background: var(--alarm); border: 2px solid var(--high); }
#problems h2 { color: var(--high); }
#problems + section { border-top: 0; margin-top: 0; }

.terms { margin: 0.75rem 0; }
.terms > div { display: grid; grid-template-columns: 8.5rem minmax(0, 1fr); column-gap: 1rem; padding: 0.1875rem 0; }
.terms dt { color: var(--quiet); }
.terms dd { margin: 0; max-width: 80ch; }
.terms ul { list-style: none; padding: 0; margin: 0; }
.terms .terms { margin: 0; }
.terms .terms > div { grid-template-columns: 6.5rem minmax(0, 1fr); padding: 0; }
.figures { display: flex; flex-wrap: wrap; gap: 0.5rem 2rem; margin: 0.75rem 0; }
.figures > div { display: flex; flex-direction: column-reverse; }
.figures dt { color: var(--quiet); font-size: 0.8125rem; }
.figures dd { margin: 0; font-size: 1.375rem; font-weight: 600; line-height: 1.2; font-variant-numeric: tabular-nums; }

.scroll { overflow-x: auto; margin: 0.75rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3125rem 0.875rem 0.3125rem 0; text-align: left; vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
thead th { color: var(--quiet); font-weight: 500; font-size: 0.8125rem; vertical-align: bottom; white-space: nowrap; }
thead tr { border-bottom: 1px solid var(--ink); }
tbody tr { border-bottom: 1px solid var(--line); }
tbody th { font-weight: inherit; }
.figure { text-align: right; white-space: nowrap; }
.counts tbody tr:last-child, .counts tbody tr:last-child th { font-weight: 650; }
.counts th, .counts td { padding-right: 1.75rem; }
.dense { font-size: 0.875rem; }
.dense tbody th, .dense tbody td { white-space: nowrap; }
.long, .list { width: 100%; min-width: 44rem; }
.wide { display: block; min-width: 18rem; }
td .whole { white-space: nowrap; }
.place, td code, th code { overflow-wrap: break-word; }
.dense thead th { white-space: normal; }
.row { display: block; }

.mark {
  display: inline-block; border: 1px solid currentColor; border-radius: 3px; padding: 0 0.4375rem; font-size: 0.8125rem;
  line-height: 1.35; max-width: 100%; overflow-wrap: anywhere; color: var(--quiet);
}
table .mark { white-space: nowrap; }
.mark.high, .bad { color: var(--high); }
.mark.medium { color: var(--medium); }
.mark.low { color: var(--low); }
.mark.high, .mark.kept { font-weight: 650; }
.mark.kept { color: var(--good); }
.marks { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem; margin: 0; color: var(--quiet); }
article > header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.25rem 0.875rem; margin-top: 1.75rem; }
article > header h3 { margin: 0; }
.cause + .cause { margin-top: 2.5rem; padding-top: 0.25rem; border-top: 1px solid var(--line); }
.note { padding: 0.5rem 0.75rem; background: var(--raised); width: fit-content; }
.cause h3 { font-size: 1.1875rem; }
.cause .number { color: var(--quiet); font-weight: 400; }

details { margin: 0.625rem 0; }
summary { cursor: pointer; width: fit-content; max-width: 100%; padding: 0.125rem 0; overflow-wrap: anywhere; }
summary > h4 { display: inline; }
.fix { margin: 1.25rem 0 0.75rem; }
pre {
  margin: 0.5rem 0; padding: 0.625rem 0.75rem; background: var(--raised); line-height: 1.45; tab-size: 4;
  white-space: pre-wrap; overflow-wrap: anywhere;
}
pre code { font-size: 0.8125rem; }
.listing, .diff { margin: 0.5rem 0; line-height: 1.5; tab-size: 4; }
.listing { background: var(--raised); padding: 0.375rem 0; }
.line {
  display: block; position: relative; padding: 0 0.75rem 0 calc(4.75rem + var(--hang)); font-size: 0.8125rem;
  text-indent: calc(-1 * var(--hang)); white-space: pre-wrap; overflow-wrap: anywhere;
}
.line::before, .line::after { text-indent: 0; }
.line::before {
  content: attr(data-n); position: absolute; left: 0; width: 3rem; text-align: right; color: var(--quiet);
  white-space: nowrap;
}
.line.here { background: var(--here); }
.line.here::after { content: "\\25b8"; position: absolute; left: 3.5rem; top: 0; }
.ending { margin-left: 1ch; color: var(--quiet); font-style: italic; }
.diff { border: 1px solid var(--line); }
.heads { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); border-bottom: 1px solid var(--line); }
.head { margin: 0; padding: 0.25rem 0.75rem; font-size: 0.8125rem; color: var(--quiet); overflow-wrap: anywhere; }
.hunk { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); padding: 0.25rem 0; }
.hunk + .hunk { border-top: 1px dashed var(--line); }
.side { display: block; text-decoration: none; }
.side.void { background: var(--raised); }
.old { background: var(--old); }
.new { background: var(--new); }
.heads .old, .heads .new { background: none; }
.old .line::after, .new .line::after { position: absolute; left: 3.5rem; top: 0; color: var(--ink); }
.old .line::after { content: "\\2212"; }
.new .line::after { content: "+"; }
mark { color: inherit; }
.old mark { background: var(--old-mark); }
.new mark { background: var(--new-mark); }

.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1.5rem 3rem; }
figure { margin: 0; min-width: 0; }
figure h3 { margin-top: 0; }
figcaption p { color: var(--quiet); margin: 0 0 0.75rem; }
svg { display: block; overflow: hidden; }
svg text { fill: var(--ink); font-size: 0.8125rem; font-variant-numeric: tabular-nums; }
svg .name { font-weight: 600; }
svg rect { shape-rendering: crispEdges; }
svg .eager { fill: var(--bar-eager); }
svg .before { fill: var(--bar-before); }
svg .after { fill: var(--bar-after); }
svg .quartiles { stroke: var(--ink); stroke-width: 1.5; }

@media screen and (min-width: 70rem) {
  html { scroll-padding-top: 4.75rem; }
  nav { position: sticky; top: 0; z-index: 1; font-size: 0.875rem; }
  nav a { padding: 0.125rem 0; }
}
@media (max-width: 47rem) {
  body { padding-inline: 0.875rem; }
  html { scroll-padding-top: 0.5rem; }
  .terms > div { grid-template-columns: minmax(0, 1fr); padding: 0.3125rem 0; }
  .counts th, .counts td { padding-right: 0.875rem; }
  .heads, .hunk { grid-template-columns: minmax(0, 1fr); }
  .side.copy, .side.void, .head.new { display: none; }
  .line { padding-left: calc(3.75rem + var(--hang)); }
  .line::before { width: 2.25rem; }
  .line.here::after, .old .line::after, .new .line::after { left: 2.625rem; }
}
@media screen and (max-width: 47rem) {
  .stacked, .stacked tbody, .stacked tr, .stacked tbody th, .stacked tbody td { display: block; }
  .stacked { min-width: 0; width: 100%; }
  .stacked thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table:not(.stacked) :is(th, td) { overflow-wrap: anywhere; white-space: normal; }
  .stacked tbody tr { padding: 0.5rem 0; }
  .stacked tbody th, .stacked tbody td {
    position: relative; padding: 0.0625rem 0 0.0625rem 8.5rem; text-align: left; white-space: normal;
    overflow-wrap: anywhere;
  }
  .stacked tbody :is(th, td)::before {
    content: attr(data-name); position: absolute; left: 0; width: 8rem; color: var(--quiet); font-size: 0.8125rem;
    font-weight: 400;
  }
  .stacked tbody :is(th, td):empty { display: none; }
  .stacked :is(.wide, .whole, .mark) { min-width: 0; white-space: normal; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  nav, .skip { display: none; }
  details::details-content { content-visibility: visible; }
  .scroll { overflow: visible; }
  td .whole, .place, td code { white-space: normal; overflow-wrap: anywhere; }
  .long, .list, .wide { min-width: 0; }
  .dense { font-size: 7pt; }
  .dense th, .dense td, .dense thead th, .dense tbody th, .dense tbody td { white-space: normal; }
  h2, h3, h4, summary { break-after: avoid; }
  tr, figure, pre, .listing { break-inside: avoid; }
  a[href^="http"]::after { content: " (" attr(href) ")"; }
  .side, mark, .here, rect { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

SHEET = (
    f":root {{ color-scheme: light dark; {_palette(LIGHT)}}}\n"
    f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_palette(DARK)}}} }}{_RULES}"
)
