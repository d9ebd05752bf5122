"""Draws lines and points on axes as an SVG, for the pages of docs/."""

import math
from dataclasses import dataclass

BLUE, ORANGE, GREEN, GREY = "#2b6cb0", "#dd6b20", "#2f855a", "#a0aec0"
WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 470, 16, 254  # the edges of the axes; the legend is to their right


@dataclass
class Series:
    label: str
    colour: str
    points: list  # (x, y) of each circle
    line: list = None  # (x, y) of each corner of a line; None: there is no line
    dashed: bool = False


class Axis:
    """Maps numbers to pixels, on a linear or a logarithmic scale."""

    def __init__(self, values: list, pixels: tuple, log: bool) -> None:
        self.log, (self.first, self.last) = log, pixels
        scaled = [self.scale(value) for value in values]
        low, high = min(scaled), max(scaled)
        margin = 0.04 * (high - low or 1)
        self.low, self.high = (low - margin if log else min(low, 0)), high + margin

    def scale(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def __call__(self, value: float) -> float:
        return self.first + (self.scale(value) - self.low) / (self.high - self.low) * (self.last - self.first)

    def ticks(self) -> list:
        """Returns about five round numbers; on a logarithmic axis powers of ten, if there are two of them."""
        if self.log:
            powers = [10.0 ** exponent for exponent in range(math.ceil(self.low), math.floor(self.high) + 1)]
            if len(powers) > 1:
                return powers
        low, high = (10 ** self.low, 10 ** self.high) if self.log else (self.low, self.high)
        step = 10.0 ** math.floor(math.log10((high - low) / 3))
        step *= next((factor for factor in (1, 2, 5) if (high - low) / (step * factor) <= 6), 10)
        return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def number(value: float) -> str:
    return f"{value:g}".replace("e+", "e")


def plot(series: list, x_label: str, log: bool = False) -> str:
    """Returns the SVG. `x_label` stands below the axis."""
    points = [point for one in series for point in one.points + (one.line or [])]
    x = Axis([point[0] for point in points], (LEFT, RIGHT), log)
    y = Axis([point[1] for point in points], (BOTTOM, TOP), log)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12" fill="#444">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    for tick in x.ticks():
        out.append(f'<path d="M{x(tick):.1f} {TOP}V{BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{x(tick):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{number(tick)}</text>')
    for tick in y.ticks():
        out.append(f'<path d="M{LEFT} {y(tick):.1f}H{RIGHT}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{number(tick)}</text>')
    out.append(f'<text x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 36}" text-anchor="middle">{x_label}</text>')
    for i, one in enumerate(series):
        if one.line:
            line = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in one.line)
            dashes = ' stroke-dasharray="5 3"' if one.dashed else ""
            out.append(f'<polyline points="{line}" fill="none" stroke="{one.colour}" stroke-width="1.5"{dashes}/>')
        out += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" fill="{one.colour}"/>'
                for a, b in one.points]
        out.append(f'<circle cx="486" cy="{30 + 20 * i}" r="4" fill="{one.colour}"/>'
                   f'<text x="497" y="{34 + 20 * i}">{one.label}</text>')
    return "\n".join(out + ["</svg>", ""])


def losses(lines: list) -> str:
    """Returns the SVG of the losses by step in the lines of a run's metrics.jsonl."""
    trained = [(line["step"], line["train_loss"]) for line in lines if "train_loss" in line]
    span = max(1, len(trained) // 150)  # number of steps whose mean loss is one corner of the line
    means = [(group[-1][0], sum(loss for _, loss in group) / len(group))
             for group in (trained[i:i + span] for i in range(0, len(trained), span))]
    validated = [(line["step"], line["val_loss"]) for line in lines if "val_loss" in line]
    return plot([Series("training" + (f", {span} steps" if span > 1 else ""), BLUE, [], means),
                 Series("validation", ORANGE, validated, validated)], "step")
