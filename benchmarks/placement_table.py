"""The figures of programs/placement.py as tables."""

import math
import re

PLACERS = ("one device", "round robin", "by layers", "m-TOPO", "m-ETF", "m-SCT", "thalweg", "bound")
SIMPLE, BAECHI = PLACERS[:3], PLACERS[3:6]
_ROW = re.compile(r"(.*), (\d+), (ample|limited): (.*)")


def table(figures):
    """Markdown, from {metric: value}: step times in ms, a dash where the step doesn't fit into memory."""
    rows = {}
    for metric, value in figures.items():
        match = _ROW.fullmatch(metric)
        if match:
            rows.setdefault((match[1], int(match[2]), match[3]), {})[match[4]] = value
    heads = ("graph", "devices", "memory", *PLACERS, "thalweg / best simple", "/ best of Baechi")
    lines = [
        "| " + " | ".join(heads) + " |",
        "|---|---|---|" + "---|" * (len(PLACERS) + 2),
    ]
    for (graph, count, memory), row in rows.items():
        cells = [_cell(row[p]) for p in PLACERS]
        ratios = [_ratio(row["thalweg"], min(row[p] for p in names)) for names in (SIMPLE, BAECHI)]
        lines.append(f"| {graph} | {count} | {memory} | " + " | ".join(cells + ratios) + " |")
    lines += ["", "| problem, 8 devices | thalweg | bound | thalweg / bound |", "|---|---|---|---|"]
    for metric, value in figures.items():
        name, _, what = metric.rpartition(": ")
        if what == "thalweg" and not _ROW.fullmatch(metric):
            bound = figures[f"{name}: bound"]
            lines.append(f"| {name} | {_cell(value)} | {_cell(bound)} | {value / bound:.3f} |")
    return "\n".join(lines)


def _cell(value):
    return "-" if math.isinf(value) else f"{value:.2f}"


def _ratio(mine, other):
    return "-" if math.isinf(mine) else "only it fits" if math.isinf(other) else f"{mine / other:.2f}"
