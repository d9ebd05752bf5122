"""How the loss of recipes/shakespeare-cpu.json falls with compute: by steps, by data and by width, four points each."""

import math
from pathlib import Path

import plot

RECIPE = "shakespeare-cpu"
STEPS, WIDTH, HEAD = 2000, 128, 32  # of the recipe; HEAD: the width of a head
# Each point: (steps, part, width); its training reads the first 1 / part of the text. In the series "data", the number
# of steps falls with the text, so that each training reads its text equally often.
SERIES = {
    "steps": [(steps, 1, WIDTH) for steps in (250, 500, 1000, STEPS)],
    "data": [(STEPS // part, part, WIDTH) for part in (8, 4, 2, 1)],
    "width": [(STEPS, 1, width) for width in (32, 64, 96, WIDTH)],
}


def prepare(folder: Path) -> None:
    """Writes the first half, quarter and eighth of the first nine tenths of the text, and its last tenth."""
    made = folder / "MADE/shakespeare"
    made.mkdir(parents=True, exist_ok=True)
    text = (folder / "DATA/tinyshakespeare/input.txt").read_text(encoding="utf-8")
    end = len(text) * 9 // 10
    (made / "validation.txt").write_text(text[end:], encoding="utf-8")
    for _, part, _ in SERIES["data"]:
        (made / f"train-{part}.txt").write_text(text[:end // part], encoding="utf-8")


def train(work) -> None:
    """Trains the points that results.jsonl lacks, and appends a row for each."""
    prepare(work.folder)
    for point in (point for points in SERIES.values() for point in points):
        steps, part, width = point
        if work.has(scaling=list(point)):
            continue
        out = f"scaling-{steps}-{part}-{width}"
        work.run(work.weft, "train", "gpt", f"--config=recipes/{RECIPE}.json", f"--out={out}", "--overwrite",
                 f"--steps={steps}", f"--data=MADE/shakespeare/train-{part}.txt", "--eval-every=0",
                 "--validation=MADE/shakespeare/validation.txt", f"--width={width}", f"--heads={width // HEAD}",
                 f"--threads={work.threads}")
        # The whole validation text: a few random windows would hide the differences.
        figures = work.json(work.weft, "evaluate", f"--model={out}", "--json", "MADE/shakespeare/validation.txt")
        flops = work.json(work.weft, "summary", out, "--json")["training_flops_per_token"]
        work.append({"scaling": list(point), "flops": flops * work.metrics(out)[-1]["tokens"], "loss": figures["loss"]})


def fit_power_law(points: list) -> tuple:
    """Returns a, b of the power law loss = a · C^b through points (C, loss), by least squares of the logarithms."""
    xs, ys = ([math.log(point[i]) for point in points] for i in (0, 1))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    b = sum((u - x) * (v - y) for u, v in zip(xs, ys)) / sum((u - x) ** 2 for u in xs)
    return math.exp(y - b * x), b


def curves(rows: list) -> dict:
    """Returns the points (C, loss) of each series; nothing unless all points are trained."""
    found = {tuple(row["scaling"]): (row["flops"], row["loss"]) for row in rows if "scaling" in row}
    if any(point not in found for points in SERIES.values() for point in points):
        return {}
    return {series: [found[point] for point in points] for series, points in SERIES.items()}


def table(rows: list) -> str:
    """Returns the points and their fits as a table in Markdown; "" unless all points are trained."""
    text = "| varied | values | loss | fitted: loss = a · C^b |\n| --- | --- | --- | --- |\n"
    names = {"steps": lambda point: str(point[0]), "width": lambda point: str(point[2]),
             "data": lambda point: "all" if point[1] == 1 else f"1/{point[1]}"}
    found = curves(rows)
    for series, points in found.items():
        values = ", ".join(map(names[series], SERIES[series]))
        a, b = fit_power_law(points)
        text += f"| {series} | {values} | {', '.join(f'{loss:.3f}' for _, loss in points)} | {a:.1f} · C^{b:.3f} |\n"
    return text if found else ""


def draw(rows: list) -> str:
    """Returns an SVG of the points and fits: the loss by compute, both on logarithmic axes."""
    series = []
    for (name, points), colour in zip(curves(rows).items(), (plot.BLUE, plot.ORANGE, plot.GREEN)):
        a, b = fit_power_law(points)
        line = [(x, a * x ** b) for x, _ in points]
        series.append(plot.Series(f"{name}: C^{b:.3f}", colour, points, line, dashed=True))
    return plot.plot(series, "C, FLOP of the training", log=True)
