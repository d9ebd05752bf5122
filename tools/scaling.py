"""How the loss of recipes/shakespeare-cpu.json falls with compute: by steps, by data and by width, four points each."""

import math
from pathlib import Path

import plot

RECIPE = "shakespeare-cpu"
STEPS, WIDTH, HEAD = 2000, 128, 32
# Each point: a series, what it varies, and its flags. The text grows with the steps, so that all points of the series
# "data" see it equally often.
SERIES = {
    "steps": [(steps, [f"--steps={steps}"]) for steps in (250, 500, 1000, 2000)],
    "data": [(part, [f"--steps={STEPS // part}", f"--data=MADE/shakespeare/train-{part}.txt"])
             for part in (8, 4, 2, 1)],
    "width": [(width, [f"--width={width}", f"--heads={width // HEAD}"]) for width in (32, 64, 128, 256)],
}


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
            figures = work.json(work.weft, "evaluate", f"--model={out}", "--json", "MADE/shakespeare/validation.txt")
            flops = work.json(work.weft, "summary", out, "--json")["training_flops_per_token"]
            tokens = work.metrics(out)[-1]["tokens"]
            work.append({"series": series, "value": value, "flops": flops * tokens, "loss": figures["loss"]})


def fit(points: list) -> tuple:
    """Returns a, b of the power law loss = a · C^b through points (C, loss), by least squares of the logarithms."""
    xs, ys = ([math.log(point[i]) for point in points] for i in (0, 1))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    b = sum((u - x) * (v - y) for u, v in zip(xs, ys)) / sum((u - x) ** 2 for u in xs)
    return math.exp(y - b * x), b


def table(rows: list) -> str:
    """Returns the fits and their points as a table in Markdown."""
    text = "| varied | values | loss | fitted: loss = a · C^b |\n| --- | --- | --- | --- |\n"
    for series, points in SERIES.items():
        own = [row for value, _ in points for row in rows if row.get("series") == series and row["value"] == value]
        a, b = fit([(row["flops"], row["loss"]) for row in own])
        values = ", ".join(f"1/{row['value']}" if series == "data" and row["value"] > 1 else str(row["value"])
                           for row in own)
        losses = ", ".join(f"{row['loss']:.3f}" for row in own)
        text += f"| {series} | {values} | {losses} | {a:.1f} · C^{b:.3f} |\n"
    return text


def draw(rows: list) -> str:
    """Returns an SVG of the points and fits: the loss by compute, both on logarithmic axes."""
    series = []
    for (name, points), colour in zip(SERIES.items(), (plot.BLUE, plot.ORANGE, plot.GREEN)):
        own = sorted((row["flops"], row["loss"]) for row in rows if row.get("series") == name)
        a, b = fit(own)
        series.append(plot.Series(f"{name}: C^{b:.3f}", colour, own, [(x, a * x ** b) for x, _ in own], dashed=True))
    return plot.plot(series, "C, FLOP of the training", log=True)
