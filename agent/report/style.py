"""The look of the page: on a screen of any width, light or dark, and on paper. No external resource."""

STYLE = """\
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f6f7f9; --ink: #1b1f24; --faint: #57606a; --line: #d0d7de; --accent: #0b5cad;
  --good: #116329; --bad: #a40e26; --warn: #7a4d00;
  --starting: #9cc3ee; --dist-init: #5b9bd9; --load-weights: #1f6fc0; --memory: #8250df; --graphs: #bf3989;
  --warmup: #d4a72c; --measuring: #1a7f37; --stopping: #8c959f; --preparing: #bc4c00; --idle: #e4e8ec; --away: #ffffff;
  --check: #0e7c86; --look: #1f6fc0; --probe: #bc4c00; --ask: #bf3989;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1419; --card: #181e25; --ink: #e6e9ed; --faint: #a2abb6; --line: #39424d; --accent: #79b8ff;
    --good: #56d364; --bad: #ff8f87; --warn: #e3b341;
    --starting: #2d4f73; --dist-init: #3b78b5; --load-weights: #69aef5; --memory: #b08cff; --graphs: #f778ba;
    --warmup: #e3b341; --measuring: #3fb950; --stopping: #7d8690; --preparing: #f0883e; --idle: #2a323b;
    --away: #0f1419;
    --check: #39c5cf; --look: #69aef5; --probe: #f0883e; --ask: #f778ba;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  overflow-wrap: break-word;
  margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 66rem; background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .7rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 0 0 .4rem; overflow-wrap: anywhere; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
a { color: var(--accent); }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: .8rem 0 0; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .8rem 0; }
dl.facts dt { color: var(--faint); }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.notice {
  border: 2px solid var(--warn); color: var(--warn); border-radius: .4rem; padding: .5rem .8rem; font-weight: 600;
}
.faint { color: var(--faint); }
.scroll { overflow-x: auto; margin: .6rem 0; }
.scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
figure { margin: .6rem 0; }
figcaption { color: var(--faint); font-size: .92rem; }
figure > .scroll { margin-top: .1rem; }
th, td { text-align: left; vertical-align: top; padding: .32rem .7rem .32rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--faint); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 600; white-space: nowrap; }
tr.place th { color: var(--faint); letter-spacing: .05em; padding-top: .8rem; font-size: .82rem; }
td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.text { min-width: 18rem; overflow-wrap: anywhere; }
td.note { min-width: 10rem; }
td.path { min-width: 12rem; overflow-wrap: anywhere; }
td.word { white-space: nowrap; }
.unbroken span { display: inline-block; max-width: 100%; overflow-wrap: anywhere; }
.keep, .fine { color: var(--good); } .worse, .failed, .ruled-out, .fails, .no-effect { color: var(--bad); }
.inconclusive, .invalid, .timeout, .needs-key { color: var(--warn); }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .86rem; }
pre {
  background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .8rem; margin: .6rem 0;
  white-space: pre-wrap; overflow-wrap: anywhere;
}
.quotes b { color: var(--faint); font-weight: 400; }
article { border: 1px solid var(--line); border-radius: .5rem; padding: .8rem 1rem; margin: .8rem 0; }
article > :last-child { margin-bottom: 0; }
ul.changes { list-style: none; padding: 0; margin: .5rem 0; }
ul.changes code { overflow-wrap: anywhere; }
.timeline svg { display: block; width: 100%; min-width: 47rem; height: auto; }
.timeline text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.timeline text.lane { text-anchor: end; }
.timeline text.time { text-anchor: middle; fill: var(--faint); font-size: 11px; }
.timeline text.number { font-weight: 600; }
.timeline .tick { stroke: var(--line); stroke-width: 1; }
.timeline .pivot { stroke: currentColor; stroke-width: 1.5; stroke-dasharray: 4 2; }
.timeline .bar { stroke: var(--page); stroke-width: .4; }
.timeline .bar.away { stroke: var(--faint); stroke-dasharray: 3 2; }
ul.legend { list-style: none; padding: 0; margin: .5rem 0; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; }
ul.legend li { display: flex; align-items: center; gap: .4rem; font-size: .9rem; }
.swatch { width: .95rem; height: .95rem; border-radius: .2rem; border: 1px solid var(--faint); flex: none; }
@media (max-width: 32rem) {
  body { padding: 1rem .75rem 2rem; }
  dl.facts { grid-template-columns: 1fr; gap: 0; }
  dl.facts dd { margin-bottom: .4rem; }
  article { padding: .7rem .75rem; }
  th, td { padding-right: .5rem; }
  tbody th, td.word { white-space: normal; overflow-wrap: break-word; }
  td.word { min-width: 5.8rem; }
  td.text { min-width: 20rem; }
}
@page { size: A4; margin: 14mm; }
@media print {
  :root {
    --page: #ffffff; --card: #f6f7f9; --ink: #000000; --faint: #444c56; --line: #b5bcc4; --accent: #000000;
    --good: #0a4d1c; --bad: #82071e; --warn: #633c01;
    --starting: #9cc3ee; --dist-init: #5b9bd9; --load-weights: #1f6fc0; --memory: #8250df; --graphs: #bf3989;
    --warmup: #d4a72c; --measuring: #1a7f37; --stopping: #8c959f; --preparing: #bc4c00; --idle: #e4e8ec;
    --away: #ffffff; --check: #0e7c86; --look: #1f6fc0; --probe: #bc4c00; --ask: #bf3989;
  }
  html { font-size: 9pt; }
  body { max-width: none; padding: 0; }
  nav { display: none; }
  .scroll { overflow: visible; }
  .timeline svg { min-width: 0; }
  .timeline rect, .swatch { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2, h3, figcaption { break-after: avoid; }
  tr, pre, svg { break-inside: avoid; }
  td.text, td.note, td.path { min-width: 0; overflow-wrap: anywhere; }
  td.text { width: 42%; }
  thead th, tbody th { white-space: normal; }
}
"""


def colours(names: tuple[str, ...]) -> str:
    """The rules that give bars and swatches of these classes their colour."""
    return "".join(
        f".bar.{name} {{ fill: var(--{name}); }} .swatch.{name} {{ background: var(--{name}); }}\n" for name in names
    )
