"""Draws panels of lines as SVG, for the benchmarks that draw their tables. Both axes are logarithmic."""
import html
import math

PANEL, HEIGHT, MARGIN = 260, 220, 50  # pixels
ROW = 3  # panels beside each other: their text stays readable in a column of text
COLOURS = ("#1f6feb", "#d1242f", "#8c959f", "#1a7f37", "#8250df", "#bf8700", "#0a7ea4", "#e16f24", "#6e7781", "#953800")


def short(number):
    return f"{number / 1000:.2g}k" if number >= 1000 else f"{number:.0f}"


def panel(title, lines, left, kilo):
    """Returns one panel: `lines` has the points (size, speed) of each line by its name, "" for a line without a name.
    `kilo` sizes are printed as "1k".

    The first line has a number at each point. A line whose name ends in "limit" has no dots.
    """
    sizes = sorted({size for points in lines.values() for size, _ in points})
    speeds = [speed for points in lines.values() for _, speed in points]
    low, high = min(speeds) / 1.3, max(speeds) * 1.3
    span = math.log(sizes[-1] / sizes[0]) or 1

    def x(size):
        return left + MARGIN + (PANEL - MARGIN - 30) * math.log(size / sizes[0]) / span

    def y(speed):
        return 30 + HEIGHT * (1 - math.log(speed / low) / math.log(high / low))

    parts = [f'<text x="{left + PANEL / 2 + 10:.0f}" y="18" class="title">{html.escape(title)}</text>',
             f'<rect x="{left + MARGIN - 12}" y="30" width="{PANEL - MARGIN}" height="{HEIGHT}" class="frame"/>']
    for size in sizes:
        parts.append(f'<text x="{x(size):.1f}" y="{HEIGHT + 46}">{size if size < 1000 else f"{size / kilo:.3g}k"}</text>')
    for i, (name, points) in enumerate(lines.items()):
        limit = name.endswith("limit")
        dashes = ' stroke-dasharray="4 3"' if limit else ""
        parts.append(f'<polyline fill="none" stroke="{COLOURS[i]}" stroke-width="2"{dashes} '
                     f'points="{" ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in points)}"/>')
        for size, speed in () if limit else points:
            parts.append(f'<circle cx="{x(size):.1f}" cy="{y(speed):.1f}" r="3" fill="{COLOURS[i]}"/>')
            if i == 0:
                parts.append(f'<text x="{x(size):.1f}" y="{y(speed) - 8:.1f}">{short(speed)}</text>')
        if name:
            parts.append(f'<text x="{left + PANEL - 16}" y="{HEIGHT + 20 - 15 * (len(lines) - 1 - i)}" '
                         f'style="text-anchor:end;fill:{COLOURS[i]}">{html.escape(name)}</text>')
    return "\n".join(parts)


def picture(panels, kilo=1024):
    """Returns a picture of `panels`, three in a row: the title and the lines of each."""
    width, height = PANEL + 20, HEIGHT + 60
    rows = []
    for top in range(0, len(panels), ROW):
        row = [panel(*each, i * width, kilo) for i, each in enumerate(panels[top:top + ROW])]
        rows.append("\n".join([f'<g transform="translate(0 {top // ROW * height})">', *row, "</g>"]))
    style = ("text{font:11px sans-serif;text-anchor:middle;fill:#444;paint-order:stroke;stroke:white;stroke-width:3}"
             ".title{font-size:13px;font-weight:bold}.frame{fill:none;stroke:#ccc}")
    size = f'width="{width * min(len(panels), ROW)}" height="{height * len(rows)}"'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{style}</style>\n'
            '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(rows) + "\n</svg>\n")
