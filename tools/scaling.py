"""How the loss of recipes/shakespeare-cpu.json falls with compute: by steps, by data and by width, four points each."""

import json
import math
from pathlib import Path

RECIPE = "shakespeare-cpu"
STEPS, WIDTH, HEAD = 2000, 128, 32
# Each point: a series, what it varies, and its flags. The text grows with the steps, so that all points of the series
# "data" see it equally often.
SERIES = {
    "steps": [(steps, [f"--steps={steps}"]) for steps in (250, 500, 1000, 2000)],
    "data": [(part, [f"--steps={STEPS // part}", f"--data=MADE/shakespeare/train-{part}.txt"]) for part in (8, 4, 2, 1)],
    "width": [(width, [f"--width={width}", f"--heads={width // HEAD}"]) for width in (32, 64, 128, 256)],
}
COLOURS = {"steps": "#2b6cb0", "data": "#dd6b20", "width": "#2f855a"}


def prepare(folder: Path) -> None:
    """Writes the first half, quarter and eighth of the first nine tenths of the text, and its last tenth."""
    made = folder / "MADE/shakespeare"
    made.mkdir(parents=True, exist_ok=True)
    text = (folder / "DATA/tinyshakespeare/input.txt").read_text(encoding="utf-8")
    end = len(text) * 9 // 10
    (made / "validation.txt").write_text(text[end:], encoding="utf-8")
    for part, _ in SERIES["data"]:
        (made / f"train-{part}.txt").write_text(text[:end // part], encoding="utf-8")


def train(work) -> None:
    """Trains the points that results.jsonl lacks, and appends a row for each."""
    prepare(work.folder)
    for series, points in SERIES.items():
        for value, flags in points:
            if any(row.get("series") == series and row["value"] == value for row in work.read()):
                continue
            out = f"scaling-{series}-{value}"
            work.run(work.weft, "train", "gpt", f"--config=recipes/{RECIPE}.json", "--eval-every=0", f"--out={out}",
                     "--data=MADE/shakespeare/train-1.txt", "--validation=MADE/shakespeare/validation.txt",
                     "--overwrite", f"--threads={work.threads}", *flags)
            # The whole validation text: a few random windows would hide the differences.
            loss = work.json(work.weft, "evaluate", f"--model={out}", "--json", "MADE/shakespeare/validation.txt")["loss"]
            lines = (work.folder / out / "metrics.jsonl").read_text().splitlines()
            flops = work.json(work.weft, "summary", out, "--json")["training_flops_per_token"]
            tokens = json.loads(lines[-1])["tokens"]
            work.append({"series": series, "value": value, "flops": flops * tokens, "loss": loss})


def fit(points: list) -> tuple:
    """Returns a, b of the power law loss = a · flops^b by least squares of the logarithms."""
    xs, ys = ([math.log(row[key]) for row in points] for key in ("flops", "loss"))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    b = sum((u - x) * (v - y) for u, v in zip(xs, ys)) / sum((u - x) ** 2 for u in xs)
    return math.exp(y - b * x), b


def table(rows: list) -> str:
    """Returns the fits and their points as a table in Markdown."""
    text = "| varied | values | loss | fitted: loss = a · C^b |\n| --- | --- | --- | --- |\n"
    for series, points in SERIES.items():
        own = [row for value, _ in points for row in rows if row.get("series") == series and row["value"] == value]
        a, b = fit(own)
        values = ", ".join(f"1/{row['value']}" if series == "data" and row["value"] > 1 else str(row["value"])
                           for row in own)
        losses = ", ".join(f"{row['loss']:.3f}" for row in own)
        text += f"| {series} | {values} | {losses} | {a:.1f} · C^{b:.3f} |\n"
    return text


def draw(rows: list) -> str:
    """Returns an SVG of the points and fits: the loss by compute, both on logarithmic axes."""
    rows = [row for row in rows if "series" in row]
    left, right, top, bottom = 52, 470, 16, 262
    exponents = [math.log10(row["flops"]) for row in rows]
    low, high = min(exponents) - 0.1, max(exponents) + 0.1
    losses = [math.log(row["loss"]) for row in rows]
    least, most = min(losses) - 0.03, max(losses) + 0.03

    def x(flops: float) -> float:
        return left + (math.log10(flops) - low) / (high - low) * (right - left)

    def y(loss: float) -> float:
        return bottom - (math.log(loss) - least) / (most - least) * (bottom - top)

    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 300" width="640" height="300" '
           'font-family="sans-serif" font-size="12" fill="#444">', '<rect width="640" height="300" fill="#fff"/>']
    for exponent in range(math.ceil(low), math.floor(high) + 1):
        at = x(10 ** exponent)
        out.append(f'<path d="M{at:.1f} {top}V{bottom}" stroke="#ddd"/>'
                   f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">1e{exponent}</text>')
    for loss in (1.5, 1.6, 1.8, 2, 2.2, 2.5, 3):
        if least <= math.log(loss) <= most:
            out.append(f'<path d="M{left} {y(loss):.1f}H{right}" stroke="#ddd"/>'
                       f'<text x="{left - 6}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss}</text>')
    out.append(f'<text x="{(left + right) / 2}" y="{bottom + 34}" text-anchor="middle">FLOP of the training</text>')
    for i, (series, points) in enumerate(SERIES.items()):
        own = sorted((row for row in rows if row["series"] == series), key=lambda row: row["flops"])
        a, b = fit(own)
        line = " ".join(f"{x(row['flops']):.1f},{y(a * row['flops'] ** b):.1f}" for row in own)
        out.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[series]}" stroke-dasharray="5 3"/>')
        out += [f'<circle cx="{x(row["flops"]):.1f}" cy="{y(row["loss"]):.1f}" r="4" fill="{COLOURS[series]}"/>'
                for row in own]
        out.append(f'<circle cx="490" cy="{30 + 20 * i}" r="4" fill="{COLOURS[series]}"/>'
                   f'<text x="502" y="{34 + 20 * i}">{series}: C^{b:.3f}</text>')
    return "\n".join(out + ["</svg>", ""])
