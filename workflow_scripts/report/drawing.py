"""Charts: plain data in, SVG out.

Colours are the page's CSS variables `--c0` … `--c11`, so that a drawing follows light and dark mode;
text and axes take the classes `tick`, `axis` and `grid` that the page styles.
"""

import math
from html import escape
from typing import Any

COLOURS = 12
"""Readers can distinguish this many lines; the last colour is that of backbones."""

Point = tuple[float, float]


def line_chart(
    title: str, series: list[dict[str, Any]], x_label: str, y_label: str, *, width: int = 540, height: float = 300, legend: bool = True
) -> str:
    """Lines over a common x axis.

    Each of `series` has a `name`, a `colour` (index) and `lines` (lists of (x, y), one a seed). It may
    have `dashed` lines, and `labels` for lines of a single point. Empty series are left out; a chart without points says so.
    Without a `legend`, the page says which colour is what. The axes end where the data do. A series' name stands where its last line
    ends, too, and a point says its values when the mouse is over it.
    """
    points = [p for s in series for line in [*s["lines"], *s.get("dashed", [])] for p in line]
    if not points:
        return _svg(title, width, 60, [_text(width / 2, 35, "no evaluations", "middle")])
    xs, ys = (
        ticks(min(0.0, *(x for x, _ in points)), max(0.0, *(x for x, _ in points)), whole=all(float(x).is_integer() for x, _ in points)),
        ticks(min(y for _, y in points), max(y for _, y in points)),
    )
    drawn = [s for s in series if any(len(line) > 1 for line in [*s["lines"], *s.get("dashed", [])])] if legend else []
    left, right, bottom = 58, 16 + max((7 * len(s["name"]) for s in drawn), default=0), 44
    names, below = _legend([s for s in series if s["lines"] or s.get("dashed")] if legend else [], left, 16, width - right)
    top = below + 2 if names else 12
    height += max(0.0, top - 34)
    most = max(x for x, _ in points)
    ends = max(most, xs[-2]) if drawn and len(xs) > 2 else xs[-1]
    x_at = _scale(xs[0], ends, left, width - right)
    xs = [x for x in xs if x <= ends]
    y_at = _scale(ys[0], ys[-1], height - bottom, top)
    parts = [_line(left, y_at(y), width - right, y_at(y), "grid") + _text(left - 6, y_at(y) + 4, label(y, ys), "end") for y in ys]
    parts += [_line(x_at(x), height - bottom, x_at(x), height - bottom + 4, "axis") for x in xs]
    parts += [_text(x_at(x), height - bottom + 17, label(x, xs), "middle") for x in xs]
    parts += [_line(left, height - bottom, width - right, height - bottom, "axis")]
    parts += [_text((left + width - right) / 2, height - 8, x_label, "middle")]
    parts += [f'<g transform="translate(13 {(top + height - bottom) / 2}) rotate(-90)">{_text(0, 0, y_label, "middle")}</g>']
    for s in series:
        parts.append(f'<g class="series" data-name="{escape(s["name"])}">')
        names_of = s.get("labels", [""] * len(s["lines"]))
        solid = [(line, name, "") for line, name in zip(s["lines"], names_of, strict=True)]
        for line, name, dash in [*solid, *((line, "", ' stroke-dasharray="5 3"') for line in s.get("dashed", []))]:
            path = " ".join(f"{x_at(x):.1f},{y_at(y):.1f}" for x, y in line)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{_colour(s)}" stroke-width="1.8"{dash}/>')
            if len(line) == 1 and name:
                (x, y) = line[0]
                parts.append(f'<circle cx="{x_at(x):.1f}" cy="{y_at(y):.1f}" r="4.5" fill="{_colour(s)}"/>')
                parts.append(_text(x_at(x) + 8, y_at(y) + 4, name, "start"))
            elif len(line) <= DOTS:
                where = [(f"{x_at(x):.1f}", f"{y_at(y):.1f}", f"{s['name']}, {_value(x)}: {_value(y)}") for x, y in line]
                dot = f'r="2.4" fill="{_colour(s)}"'
                parts += [f'<circle cx="{x}" cy="{y}" {dot}><title>{escape(said)}</title></circle>' for x, y, said in where]
        parts.append("</g>")
    last = {s["name"]: (s["lines"] or s["dashed"])[-1][-1] for s in drawn}
    heights = spread_out([y_at(y) for _, y in last.values()], 13, top + 6)
    parts += [_text(x_at(x) + 5, height + 4, name, "start") for (name, (x, _)), height in zip(last.items(), heights, strict=True)]
    return _svg(title, width, height, parts + names)


DOTS = 60
"""Points of a line that are marked each by itself."""


def _value(number: float) -> str:
    """A number with at most four digits that count."""
    return f"{number:,.0f}" if abs(number) >= 1000 else _with_minus(f"{number:.4g}")


def _with_minus(number: str) -> str:
    """The number with a true minus, as `outcomes.signed` has."""
    return number.replace("-", "−")


def spread_out(wanted: list[float], apart: float, least: float) -> list[float]:
    """Heights near those `wanted`, at least so far `apart` and at `least` or below it, in the order in which they were given."""
    found = list(wanted)
    order = sorted(range(len(found)), key=wanted.__getitem__)
    before = least - apart
    for at in order:
        found[at] = before = max(found[at], before + apart)
    over = min(max((found[at] - wanted[at] for at in order), default=0.0) / 2, min(found, default=least) - least)
    return [height - over for height in found]


def dot_chart(title: str, rows: list[dict[str, Any]], x_label: str, *, line: tuple[str, float] | None = None, width: int = 540) -> str:
    """One dot per row, with the row's name on the left and its number on the right.

    Each of `rows` has `name`, `colour`, `value` and may have `low` and `high` (drawn as a bar) and
    `values` (small dots, one per seed). `line` is the name and the position of a dashed line.
    """
    every = [v for r in rows for v in (r["value"], r.get("low"), r.get("high"), *r.get("values", [])) if v is not None]
    if not every:
        return _svg(title, width, 60, [_text(width / 2, 35, "no numbers", "middle")])
    every += [line[1]] if line else []
    xs = ticks(min(every), max(every))
    left, right, step = 24 + 7 * max(len(r["name"]) for r in rows), 70, 26
    width = max(width, left + 200 + right)
    bottom = 12 + step * len(rows)
    at = _scale(xs[0], xs[-1], left, width - right)
    parts = [_line(at(x), 8, at(x), bottom, "grid") + _text(at(x), bottom + 16, label(x, xs), "middle") for x in xs]
    parts.append(_text((left + width - right) / 2, bottom + 36, x_label, "middle"))
    if line:
        x = at(line[1])
        parts.append(f'<line x1="{x:.1f}" y1="8" x2="{x:.1f}" y2="{bottom}" class="axis" stroke-dasharray="5 3"/>')
        parts.append(
            _text(
                x,
                bottom + 56,
                f"dashed: {line[0]}, {line[1]:.2f}",
                "middle" if left + 60 < x < width - 90 else "start" if x < width / 2 else "end",
            )
        )
    for index, row in enumerate(rows):
        y = 8 + step * (index + 0.5)
        parts += [
            _text(left - 10, y + 4, row["name"], "end"),
            _text(width - right + 10, y + 4, _with_minus(f"{row['value']:.2f}"), "start"),
        ]
        if row.get("low") is not None:
            parts.append(
                f'<line x1="{at(row["low"]):.1f}" y1="{y}" x2="{at(row["high"]):.1f}" y2="{y}" stroke="{_colour(row)}" stroke-width="2"/>'
            )
        parts += [f'<circle cx="{at(v):.1f}" cy="{y}" r="2.5" fill="{_colour(row)}" opacity=".6"/>' for v in row.get("values", [])]
        parts.append(f'<circle cx="{at(row["value"]):.1f}" cy="{y}" r="5" fill="{_colour(row)}"/>')
    return _svg(title, width, bottom + (66 if line else 46), parts)


def forest(title: str, rows: list[dict[str, Any]], x_label: str, sides: tuple[str, str], *, width: float = 480) -> str:
    """Differences with their intervals around a line at zero, each below its name and its words.

    Each of `rows` has `name`, `words`, `colour`, `value`, `low`, `high`, and `values` (small dots, one per seed). `sides` says what lies
    below zero, and above; a side with too little room says nothing. There must be a row.
    """
    xs = ticks(*(pick([0.0, *(v for r in rows for v in (r["low"], r["high"], r["value"], *r["values"]))]) for pick in (min, max)))
    step, edge = 38, 14
    # letters are larger where the window is narrow
    width = max(width, 2 * edge + 8 * max(len(f"{r['name']}: {r['words']}") for r in rows))
    bottom, at = step * len(rows) + 8, _scale(xs[0], xs[-1], edge + 8, width - edge - 8)
    parts = [_text(at(x), bottom + 16, label(x, xs), "middle") for x in xs]
    for index, row in enumerate(rows):
        y = step * index + 26
        parts += [_line(at(x), y - 7, at(x), y + 9, "grid") for x in xs]
        parts.append(f'<line x1="{at(0):.1f}" y1="{y - 7}" x2="{at(0):.1f}" y2="{y + 9}" class="axis" stroke-width="1.5"/>')
        said = f"<tspan>{escape(row['name'])}:</tspan> {escape(row['words'])}"
        parts.append(f'<text x="{edge}" y="{y - 12}" text-anchor="start" class="tick">{said}</text>')
        ends = f'x1="{at(row["low"]):.1f}" y1="{y}" x2="{at(row["high"]):.1f}" y2="{y}"'
        parts.append(f'<line {ends} stroke="{_colour(row)}" stroke-width="2"/>')
        parts += [f'<circle cx="{at(v):.1f}" cy="{y}" r="2.5" fill="{_colour(row)}" opacity=".6"/>' for v in row["values"]]
        parts.append(f'<circle cx="{at(row["value"]):.1f}" cy="{y}" r="5" fill="{_colour(row)}"/>')
    for words, way, anchor in ((sides[0], -1, "end"), (sides[1], 1, "start")):
        room = at(0) - edge if way < 0 else width - edge - at(0)
        if room >= 24 + 8 * len(words):
            arrow = [(4, 0), (17, 0), (13, -3), (17, 0), (13, 3)]
            path = " ".join(f"{at(0) + way * x:.1f},{bottom + 32 + y}" for x, y in arrow)
            parts.append(f'<path d="M{path}" fill="none" class="axis"/>')
            parts.append(_text(at(0) + way * 22, bottom + 36, words, anchor))
    parts.append(_text(width / 2, bottom + 58, x_label, "middle"))
    return _svg(title, width, bottom + 66, parts)


def histogram(title: str, values: list[float], x_label: str, *, width: int = 540, height: float = 190) -> str:
    """How often values lie in ranges of one width, those below zero in another colour than those above."""
    if not values:
        return _svg(title, width, 60, [_text(width / 2, 35, "no numbers", "middle")])
    ranges = counted(values)
    edges = [low for low, _, _ in ranges] + [ranges[-1][1]]
    step = edges[1] - edges[0]
    ys = ticks(0, max(count for _, _, count in ranges), about=4, whole=True)
    left, right, bottom, top = 58, 16, 44, 12
    x_at, y_at = _scale(edges[0], edges[-1], left, width - right), _scale(0, ys[-1], height - bottom, top)
    parts = [_line(left, y_at(y), width - right, y_at(y), "grid") + _text(left - 6, y_at(y) + 4, label(y, ys), "end") for y in ys]
    for edge, end, count in ranges:
        x, colour = x_at(edge), "var(--c1)" if edge >= -1e-9 else "var(--c2)"
        said = f"{_value(edge)} to {_value(end)}: {count:,}"
        size = f'width="{x_at(edge + step) - x - 1:.1f}" height="{height - bottom - y_at(count):.1f}"'
        parts.append(f'<rect class="bar" x="{x:.1f}" y="{y_at(count):.1f}" {size} fill="{colour}"><title>{said}</title></rect>')
    marks = ticks(edges[0], edges[-1])
    parts += [_text(x_at(x), height - bottom + 17, label(x, marks), "middle") for x in marks if edges[0] - 1e-9 <= x <= edges[-1] + 1e-9]
    parts += [_line(left, height - bottom, width - right, height - bottom, "axis")]
    parts += [_text((left + width - right) / 2, height - 8, x_label, "middle")]
    return _svg(title, width, height, parts)


def counted(values: list[float]) -> list[tuple[float, float, int]]:
    """Ranges of one round width that hold all values and zero as an edge: from, to, and how many values; the last has its end, too."""
    edges = ticks(min([0.0, *values]), max([0.0, *values]), about=20)
    counts = [0] * (len(edges) - 1)
    for value in values:
        counts[min(int((value - edges[0]) / (edges[1] - edges[0]) + 1e-9), len(counts) - 1)] += 1
    return list(zip(edges, edges[1:], counts, strict=False))


def scatter(title: str, source: list[Point], target: list[Point], names: tuple[str, str], half: float, *, size: int = 260) -> str:
    """Two clouds of points in a square from −`half` to `half`. A thin line joins the i-th points of both."""
    half = max(half, 1e-9) * 1.05
    x_at, y_at = _scale(-half, half, 6, size - 6), _scale(-half, half, size + 20, 32)
    parts = [f'<rect x="1" y="27" width="{size - 2}" height="{size - 2}" fill="none" class="grid"/>']
    parts += [_line(x_at(a), y_at(b), x_at(c), y_at(d), "join") for (a, b), (c, d) in zip(source, target, strict=True)]
    for colour, cloud in ((4, source), (5, target)):
        parts += [f'<circle cx="{x_at(x):.1f}" cy="{y_at(y):.1f}" r="2.2" fill="var(--c{colour})" fill-opacity=".75"/>' for x, y in cloud]
    return _svg(title, size, size + 28, parts + _legend([{"name": names[0], "colour": 4}, {"name": names[1], "colour": 5}], 8, 16, size)[0])


def heat_map(title: str, rows: list[str], columns: list[str], cells: dict[tuple[int, int], float | None], *, digits: int = 2) -> str:
    """A number in each cell, on a ground whose colour is the stronger the nearer it is to 1 (or, in another colour, to −1).

    It is never so strong that the number on it would be hard to read.

    `cells` maps (row, column) to a number; without one the cell has a dash. Names of columns that are wider than a cell are written aslant.
    """
    wide, high = 46, 24
    longest = max((len(column) for column in columns), default=0)
    aslant = 7 * longest > wide - 4
    left, top = 18 + 7 * max((len(row) for row in rows), default=0), 42 + (int(5.2 * longest) if aslant else 0)
    parts = [_text(0, 12, title, "start")]
    for number, column in enumerate(columns):
        x = left + wide * (number + 0.5)
        turned = f'<g transform="translate({x + 2:.1f} {top - 8}) rotate(-45)">{_text(0, 0, column, "start")}</g>'
        parts.append(turned if aslant else _text(x, top - 8, column, "middle"))
    for place, row in enumerate(rows):
        y = top + high * place
        parts.append(_text(left - 8, y + high / 2 + 4, row, "end"))
        for number in range(len(columns)):
            value = cells.get((place, number))
            strength, x = min(1.0, abs(value or 0.0)) / 2, left + wide * number
            colour = f"var(--c{1 if (value or 0.0) >= 0 else 2})"
            words = "–" if value is None else _with_minus(f"{value:.{digits}f}")
            parts.append(
                f'<rect x="{x}" y="{y}" width="{wide - 1}" height="{high - 1}" fill="{colour}" fill-opacity="{strength:.3f}" class="grid"/>'
                f'<text x="{x + wide / 2 - 0.5:.1f}" y="{y + high / 2 + 4:.1f}" text-anchor="middle" font-size="12" '
                f'fill="var(--text)">{words}</text>'
            )
    beyond = int(5.2 * len(columns[-1])) if aslant else 0
    return _svg(title, max(left + wide * len(columns) + beyond, 7 * len(title)), top + high * len(rows) + 4, parts)


def ticks(low: float, high: float, about: int = 5, whole: bool = False) -> list[float]:
    """Round numbers from at most `low` to at least `high`, in steps of 1, 2 or 5 times a power of ten (1 or more if `whole`)."""
    if high - low < 1e-12:
        low, high = low - (abs(low) or 1) * 0.1, high + (abs(high) or 1) * 0.1
    raw = (high - low) / about
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
    step = max(step, 1.0) if whole else step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * i, 12) for i in range(first, last + 1)]


def label(value: float, among: list[float]) -> str:
    """`value` as text, with as many decimals as the distance between the ticks `among` needs."""
    return _with_minus(f"{value:,.{max(0, -math.floor(math.log10(among[1] - among[0]) + 1e-9))}f}")


def _scale(low: float, high: float, start: float, end: float):
    return lambda value: start + (value - low) / (high - low) * (end - start)


def colour_of(number: int) -> str:
    """The colour of what has this place on a page, as CSS."""
    return f"var(--c{number % COLOURS})"


def _colour(item: dict[str, Any]) -> str:
    return colour_of(item["colour"])


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="tick">{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _legend(series: list[dict[str, Any]], left: float, y: float, right: float) -> tuple[list[str], float]:
    """The names of series beside their colours, in lines between `left` and `right`, and where the next line would be."""
    parts, x = [], left
    for s in series:
        wide = 34 + 7 * len(s["name"])
        if x > left and x + wide > right:
            x, y = left, y + 16
        swatch = f'<rect x="{x:.0f}" y="{y - 9:.0f}" width="12" height="9" rx="2" fill="{_colour(s)}"/>'
        parts.append(f'<g class="key" data-name="{escape(s["name"])}">{swatch}{_text(x + 17, y, s["name"], "start")}</g>')
        x += wide
    return parts, y + 16


PHONE = 360
"""A chart that is wider, in pixels, shrinks on a phone, so its text is larger there."""


def _svg(title: str, width: float, height: float, parts: list[str]) -> str:
    shrinks = ' class="shrinks"' if width > PHONE else ""
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}"{shrinks} role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
