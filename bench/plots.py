"""Plots as SVG, written by hand: horizontal bars with whiskers, and lines over a logarithmic axis.

One accent for Colibri, grey for everyone else; the colours follow the reader's light or dark mode.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, ROW = 760, 200, 110, 46, 26
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 15px }
  .quiet { fill: #57606a; font-size: 12px }
  .bar { fill: #afb8c1 } .ours { fill: #0b7a75 }
  .whisker, .axis { stroke: #57606a; stroke-width: 1; fill: none }
  .line { stroke: #afb8c1; stroke-width: 1.5; fill: none }
  .line.ours { stroke: #cf222e; fill: none; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #8d96a0 } .bar { fill: #57606a }
    .ours { fill: #39c5bb } .whisker, .axis { stroke: #8d96a0 } .line { stroke: #57606a }
    .line.ours { stroke: #ff7b72 }
  }
"""


@dataclass(frozen=True)
class Row:
    """One bar: a median with the quartiles around it."""

    label: str
    low: float
    median: float
    high: float
    ours: bool


def bars(title: str, subtitle: str, rows: Sequence[Row]) -> str:
    """A bar per row, from zero; the whisker spans the quartiles."""
    top = max(row.high for row in rows) or 1
    scale = (WIDTH - LEFT - RIGHT) / top
    parts = []
    for number, row in enumerate(rows):
        y = TOP + number * ROW
        end, middle = LEFT + row.median * scale, y + 10
        low, high = LEFT + row.low * scale, LEFT + row.high * scale
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(row.label)}</text>'
            f'<rect class="{"ours" if row.ours else "bar"}" x="{LEFT}" y="{y + 2}"'
            f' width="{max(row.median * scale, 1):.1f}" height="16" rx="2"/>'
            f'<path class="whisker" d="M{low:.1f} {middle}H{high:.1f}'
            f'M{low:.1f} {middle - 4}v8M{high:.1f} {middle - 4}v8"/>'
            f'<text class="quiet" x="{max(end, high) + 6:.1f}" y="{y + 14}">'
            f"{number_(row.median)}</text>"
        )
    return _picture(title, subtitle, TOP + len(rows) * ROW + 10, parts)


def lines(
    title: str,
    subtitle: str,
    sizes: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    bad: set[str],
) -> str:
    """A line per curve over sizes on a logarithmic axis; bad ones are labelled and coloured."""
    height, base = 300, 250
    least, most = math.log10(sizes[0]), math.log10(sizes[-1])
    top = max(2.5, *(max(values) for values in curves.values())) * 1.05

    def x(size: float) -> float:
        return 60 + (math.log10(size) - least) / (most - least) * (WIDTH - 330)

    def y(value: float) -> float:
        return base - value / top * (base - TOP)

    parts = [f'<path class="axis" d="M60 {TOP}V{base}H{WIDTH - 270}"/>']
    for size in sizes:
        parts.append(
            f'<text class="quiet" x="{x(size):.1f}" y="{base + 18}" text-anchor="middle">'
            f"{size:,}</text>"
        )
    for mark in (1, 2):
        parts.append(
            f'<path class="axis" stroke-dasharray="2 4" d="M60 {y(mark):.1f}H{WIDTH - 270}"/>'
            f'<text class="quiet" x="52" y="{y(mark) + 4:.1f}" text-anchor="end">{mark} ×</text>'
        )
    free = TOP - 14.0
    for name, values in sorted(curves.items(), key=lambda curve: -curve[1][-1]):
        path = "L".join(f"{x(size):.1f} {y(v):.1f}" for size, v in zip(sizes, values, strict=True))
        parts.append(f'<path class="line{" ours" if name in bad else ""}" d="M{path}"/>')
        if name in bad:
            free = max(free + 15, y(values[-1]) + 4)
            parts.append(
                f'<text class="quiet" x="{WIDTH - 264}" y="{free:.1f}">'
                f"{escape(name)} {number_(values[-1])} ×</text>"
            )
    return _picture(title, subtitle, height, parts)


def number_(value: float) -> str:
    """A number with three significant digits."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 3)}f}"


def _picture(title: str, subtitle: str, height: int, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" role="img">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n'
        f'<text class="title" x="8" y="20">{escape(title)}</text>\n'
        f'<text class="quiet" x="8" y="37">{escape(subtitle)}</text>\n{body}\n</svg>\n'
    )
