"""A placement as a picture: the time lines of the devices in one simulated step, as SVG."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from thalweg.plan.placement.report import NodeRow, Placement
from thalweg.tools.placement import seconds, short_names, size

_LEFT, _WIDTH, _ROW, _BAR, _TOP = 150, 850, 46, 22, 34
#: an accessible palette (Okabe and Ito); a kind of op keeps its colour
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
#: bars narrower than this (in pixels) are drawn together with their neighbours
_THIN = 0.7


def draw(placement: Placement, title: str = "") -> str:
    """The picture: a line for each device that works, a bar for each node, an arc for each transfer."""
    names = [row.name for row in placement.devices if row.nodes]
    short = short_names([row.name for row in placement.devices])
    y_of = {name: _TOP + _ROW * i for i, name in enumerate(names)}
    end = max(placement.simulated, 1e-12)
    colours = _colours(placement.nodes)
    height = _TOP + _ROW * len(names) + 56
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 20}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<text x="{_LEFT}" y="18">{escape(title or "One step")}: {seconds(placement.simulated)}</text>',
    ]
    for name in names:
        y = y_of[name]
        out.append(f'<text x="4" y="{y + 15}">{escape(short[name])}</text>')
        out.append(f'<rect x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_BAR}" fill="#eeeeee"/>')
        rows = [row for row in placement.nodes if row.device == name and row.time > 0]
        out += _bars(rows, y, end, colours)
    out += _transfers(placement, y_of, end)
    out += _axis(_TOP + _ROW * len(names), end)
    out += _legend(colours, height - 12)
    return "\n".join([*out, "</svg>", ""])


def _x(time: float, end: float) -> float:
    return _LEFT + _WIDTH * time / end


def _colours(nodes: Iterable[NodeRow]) -> dict[str, str]:
    """The ops that take most time, each with a colour; all others have the last one."""
    spent: dict[str, float] = {}
    for row in nodes:
        spent[row.op] = spent.get(row.op, 0.0) + row.time
    most = sorted((op for op in spent if spent[op] > 0), key=lambda op: (-spent[op], op))
    found = dict(zip(most, _COLOURS[:-1], strict=False))
    if len(most) >= len(_COLOURS):
        found["others"] = _COLOURS[-1]
    return found


def _bars(rows: list[NodeRow], y: int, end: float, colours: dict[str, str]) -> list[str]:
    out: list[str] = []
    drawn_to = 0.0
    for row in sorted(rows, key=lambda r: (r.start, r.name)):
        x, right = _x(row.start, end), _x(row.start + row.time, end)
        if right - drawn_to < _THIN:
            continue
        x = max(x, drawn_to)
        drawn_to = right
        colour = colours.get(row.op, _COLOURS[-1])
        out.append(
            f'<rect x="{x:.1f}" y="{y}" width="{right - x:.1f}" height="{_BAR}" fill="{colour}">'
            f"<title>{escape(row.name)} ({row.op}) {seconds(row.time)}: {escape(row.reason)}</title></rect>"
        )
    return out


def _transfers(placement: Placement, y_of: dict[str, int], end: float) -> list[str]:
    out = []
    for name, source, target, bytes_, start, arrival in placement.transfers:
        down = y_of[target] > y_of[source]
        y1, y2 = y_of[source] + (_BAR if down else 0), y_of[target] + (0 if down else _BAR)
        width = 0.6 if bytes_ < 1e4 else 1.2
        x1, x2 = _x(start, end), _x(arrival, end)
        out.append(
            f'<line x1="{x1:.1f}" y1="{y1}" x2="{x2:.1f}" y2="{y2}" stroke="#444444" stroke-width="{width}" '
            f'stroke-opacity="0.6"><title>{escape(name)}: {size(bytes_)}</title></line>'
        )
    return out


def _axis(y: int, end: float) -> list[str]:
    out = [f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _WIDTH}" y2="{y}" stroke="black"/>']
    for i in range(6):
        x = _LEFT + _WIDTH * i / 5
        out.append(f'<line x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 4}" stroke="black"/>')
        out.append(f'<text x="{x:.1f}" y="{y + 17}" text-anchor="middle">{seconds(end * i / 5)}</text>')
    return out


def _legend(colours: dict[str, str], y: int) -> list[str]:
    out, x = [], float(_LEFT)
    for op, colour in colours.items():
        out.append(f'<rect x="{x:.0f}" y="{y - 10}" width="11" height="11" fill="{colour}"/>')
        out.append(f'<text x="{x + 15:.0f}" y="{y}">{escape(op)}</text>')
        x += 30 + 7 * len(op)
    return out
