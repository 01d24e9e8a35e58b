"""Writes docs/story.md: its text is in page.md, its figures and lines are those of figures.json and overlap.json.

python -m tests.story.page
"""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TEXT, FIGURES, OVERLAP = HERE / "page.md", HERE / "figures.json", HERE / "overlap.json"
PAGE = HERE.parents[1] / "docs" / "story.md"


def main() -> None:
    """Write the page."""
    PAGE.write_text(made())


def made() -> str:
    """The page as the figures have it. Raises KeyError where its text names what they do not have."""
    figures, overlap = json.loads(FIGURES.read_text()), json.loads(OVERLAP.read_text())
    values = {**_of_campaign(figures), **_of_overlap(overlap)}
    values |= {f"lines {name}": "\n".join(lines) for name, lines in figures["lines"].items()}
    return re.sub(r"\{\{(.+?)\}\}", lambda found: values[found[1]], TEXT.read_text())


def _of_campaign(figures: dict[str, Any]) -> dict[str, str]:
    checked, blind, saved = figures["checked"], figures["unchecked"], figures["saved"]
    early = [one for one in saved["each"].values() if not one["ready"]]
    return {
        "speed": f"{figures['speed']}",
        "cores": f"{figures['cores']}",
        "mean load": f"{checked['mean_load_s']:.1f}",
        "others": f"{checked['others_busy']:.0%}",
        **{f"tok/s {name}": f"{value:.1f}" for name, value in checked["tok_s"].items()},
        "tasks": ", ".join(f"{count} {kind}" for kind, count in checked["tasks"].items()),
        "row checked": _row("as it ships", checked),
        "row unchecked": _row("without looking first", blind),
        "saved loads": f"{saved['loads']}",
        "estimate loads": f"{saved['estimate_loads']}",
        "estimate hours": f"{saved['estimate_hours']:.1f}",
        "paid hours": f"{saved['paid_hours']:.1f}",
        "early": f"{len(early)}",
        "saved rows": "\n".join(_saved_row(name, one) for name, one in saved["each"].items()),
    }


def _row(name: str, plan: dict[str, Any]) -> str:
    hours = " | ".join(f"{plan['hours'][what]:.1f} h" for what in ("loading", "stopping", "preparing", "all"))
    return f"| {name} | {plan['loads']} | {plan['ready']} | {hours} |"


def _saved_row(name: str, one: dict[str, Any]) -> str:
    end = "got ready, and was measured" if one["ready"] else "died"
    return f"| {name} | {one['estimate_min']:.1f} min | {one['paid_min']:.1f} min | {end} |"


def _of_overlap(overlap: dict[str, Any]) -> dict[str, str]:
    low, high = sorted(overlap["machine"]["load_average"])
    told = {
        "overlap launches": f"{overlap['launches']}",
        "overlap speed": f"{overlap['speed']:g}",
        "overlap cores": f"{overlap['machine']['cores']}",
        "overlap load": f"{low:.1f} to {high:.1f}",
        "overlap research": f"{overlap['research']['done']}",
    }
    for who in ("tunebot", "plain script"):
        one = overlap[who]
        times = " | ".join(f"{one[what]:.1f} s" for what in ("took_s", "steps_s", "between_s"))
        told[f"row {who}"] = f"| {who} | {times} | {one['ratio']:.3f} | {one['ratio_at_speed_1']:.4f} |"
    return told


if __name__ == "__main__":
    main()
