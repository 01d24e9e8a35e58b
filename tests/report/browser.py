"""`python -m tests.report.browser [FOLDER]`: the page of logs/sample in a real Chromium.

At the width of a desk and of a phone, light and dark: no console message, nothing that is wider than the screen outside
of a box that scrolls, every text at least 4.5 to 1 against what is behind it and at least 10 px high, and a PDF of it.
Pictures and the PDF are left in FOLDER.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path
from typing import Any

from agent.report_command import read_report, written

SAMPLE = Path(__file__).parent.parent.parent / "logs" / "sample"
LEAST_CONTRAST, LEAST_PX = 4.5, 10
DEADLINE_S = 120

FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--virtual-time-budget=2000", "--hide-scrollbars"),
    *("--enable-logging=stderr", "--no-pdf-header-footer"),
]

PROBE = """
<script>
const shown = (colour) => {
  const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
  return {a, light: [r, g, b].map((c) => c / 255).map((c) => (c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0)};
};
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const found = shown(getComputedStyle(e).backgroundColor);
    if (found.a) return found;
  }
  return shown("rgb(255, 255, 255)");
};
const found = {width: innerWidth, page: document.documentElement.scrollWidth, wide: [], contrast: 99, px: 99, boxes: 0};
for (const element of document.body.querySelectorAll("*")) {
  const text = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && !element.closest("script");
  const style = getComputedStyle(element), box = element.getBoundingClientRect();
  if (element.matches(".scroll") && element.scrollWidth > element.clientWidth) found.boxes += 1;
  if (box.right > innerWidth + 1 && !element.closest(".scroll")) found.wide.push(element.tagName);
  if (!text || element.matches("title, desc")) continue;
  const svg = element.ownerSVGElement;
  const [one, two] = [shown(svg ? style.fill : style.color), behind(element)].map((c) => c.light + .05);
  found.contrast = Math.min(found.contrast, Math.max(one, two) / Math.min(one, two));
  const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
  found.px = Math.min(found.px, parseFloat(style.fontSize) * scale);
}
parent.postMessage(JSON.stringify(found), "*");
</script>
"""

FRAME = """<!doctype html><title>frame</title><body style="margin:0"><pre id="probe"></pre>
<script>onmessage = (event) => { document.getElementById("probe").textContent = event.data; };</script>
<iframe src="probed.html" style="border:0" width="%d" height="2000"></iframe>
"""
"""No window is narrower than 500 px, but a frame is."""


def chromium(browser: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """One run of the browser, with a profile of its own."""
    with tempfile.TemporaryDirectory() as profile:
        run = [browser, *FLAGS, f"--user-data-dir={profile}", *words]
        return subprocess.run(run, capture_output=True, text=True, check=True, timeout=DEADLINE_S)


def probed(browser: str, page: Path, width: int, look: list[str]) -> dict[str, Any]:
    """What the page says of itself, and the messages of its console."""
    spied, frame = page.with_name("probed.html"), page.with_name("frame.html")
    spied.write_text(page.read_text().replace("</body>", f"{PROBE}</body>"))
    frame.write_text(FRAME % width)
    run = chromium(browser, *look, "--dump-dom", frame.as_uri())
    spied.unlink()
    frame.unlink()
    told = re.search(r'<pre id="probe">(.+?)</pre>', run.stdout)
    assert told, "the page said nothing of itself"
    console = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    return {**json.loads(unescape(told[1])), "console": console}


def problems(found: dict[str, Any], width: int) -> list[str]:
    """What is wrong with a page at this width, in words."""
    told = list(found["console"])
    if found["width"] != width:
        told.append(f"looked at {found['width']} px instead of {width}")
    if found["page"] > width or found["wide"]:
        told.append(f"wider than the screen: {found['page']} px, {found['wide'][:5]}")
    if found["contrast"] < LEAST_CONTRAST:
        told.append(f"contrast {found['contrast']:.2f}")
    if found["px"] < LEAST_PX:
        told.append(f"text of {found['px']:.1f} px")
    return told


def main() -> int:
    """Exit code 0: all is well."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("there is no Chromium here")
        return 2
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tunebot-report-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "report.html"
    page.write_text(written(read_report(SAMPLE), "html"))
    failed = False
    for width in (1200, 375):
        for scheme, setting in (("light", 1), ("dark", 0)):
            look = [f"--window-size={width},2400", f"--blink-settings=preferredColorScheme={setting}"]
            found = probed(browser, page, width, look)
            chromium(browser, *look, f"--screenshot={folder / f'{width}-{scheme}.png'}", page.as_uri())
            wrong = problems(found, width)
            failed = failed or bool(wrong)
            said = (
                f"contrast {found['contrast']:.1f}, smallest text {found['px']:.1f} px, {found['boxes']} boxes scroll"
            )
            print(f"{width} px {scheme}: {'; '.join(wrong) or 'fine'} ({said})")
    chromium(browser, f"--print-to-pdf={folder / 'report.pdf'}", page.as_uri())
    pages = len(re.findall(rb"/Type\s*/Page\b", (folder / "report.pdf").read_bytes()))
    print(f"printed on {pages} pages")
    print(f"pictures in {folder}")
    return int(failed or not pages)


if __name__ == "__main__":
    sys.exit(main())
