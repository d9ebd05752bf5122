"""Comparisons on docs/results.md: trainings that differ from a recipe by a few flags, with one seed each."""

from dataclasses import dataclass

from recipes import RECIPES, lines_by


@dataclass
class Variant:
    label: str
    flags: list
    recipe: str = "shakespeare-cpu"


# nanoGPT's CPU configuration with its optimizer.
ADAMW = ["--steps=1000", "--eval-every=1000", "--optimizer=adamw", "--learning-rate=1e-3", "--min-learning-rate=1e-4"]
RATES = {"adamw": (1e-3, 3e-3, 6e-3, 1e-2), "lion": (3e-4, 6e-4, 1e-3, 2e-3), "muon": (5e-3, 1e-2, 2e-2, 4e-2),
         "adafactor": (1e-2, 2e-2, 4e-2, 8e-2)}
# Each of modded-nanogpt's ideas is added to those before it.
IDEAS = [("nanoGPT's options", []),
         ("rotary positions, RMSNorm, no biases", ["--rotary=halves", "--norm=rms-norm", "--no-bias"]),
         ("learning rate 3e-3", ["--learning-rate=3e-3", "--min-learning-rate=0"]),
         ("Muon, 0.02", ["--optimizer=muon", "--learning-rate=0.02"]),
         ("norms of queries and keys", ["--query-key-norm=head"]), ("ReLU²", ["--activation=relu2"]),
         ("outputs begin with zeros", ["--zero-output"]), ("logits capped at 15", ["--logits-cap=15"]),
         ("value embeddings", ["--value-embeddings"]), ("skip connections", ["--skip-connections"])]

SHORT = ["--steps=1000", "--eval-every=1000", "--min-learning-rate=0"]

STUDIES = {
    "optimizers": [Variant(f"{name}, {rate:g}", [*SHORT, "--steps=500", "--eval-every=500", f"--optimizer={name}",
                                                 f"--learning-rate={rate}"])
                   for name, rates in RATES.items() for rate in rates],
    "ideas": [Variant(label, ADAMW + [flag for _, flags in IDEAS[:i + 1] for flag in flags])
              for i, (label, _) in enumerate(IDEAS)],
    "schedules": [Variant(label, [*SHORT, "--optimizer=adamw", "--learning-rate=6e-3", f"--schedule={schedule}"])
                  for label, schedule in [("cosine", "cosine"), ("linear", "linear"), ("constant", "constant"),
                                          ("WSD, decay over the last fifth", "wsd"),
                                          ("Noam, the root of the step after the warm-up", "inverse-sqrt")]],
    "precision": [Variant(f"{title}, {precision}", [*flags, f"--precision={precision}"], recipe)
                  for title, recipe, flags in [("shakespeare-cpu", "shakespeare-cpu", []),
                                               ("sst2-minilm", "sst2-minilm", [])]
                  for precision in ("f32", "bf16")],
}


def train(work) -> None:
    """Trains the variants that results.jsonl lacks, and appends a row for each."""
    for study, variants in STUDIES.items():
        for i, variant in enumerate(variants):
            if work.has(study=study, variant=variant.label):
                continue
            work.prepare(variant.recipe)
            # Later values of a flag replace earlier ones.
            flags = {flag.split("=")[0]: flag for flag in variant.flags}.values()
            run = f"{study}-{i}"
            work.run(work.weft, "train", RECIPES[variant.recipe].command, f"--config=recipes/{variant.recipe}.json",
                     f"--out={run}", "--overwrite", f"--threads={work.threads}", *flags)
            last = next(line for line in reversed(work.metrics(run)) if "val_loss" in line)
            work.append({"study": study, "variant": variant.label, "seconds": round(last["seconds"]),
                         **{key: last[key] for key in ("val_loss", "val_accuracy") if key in last}})


def table(study: str, rows: list, page: str = "") -> str:
    """Returns the validation losses and times of a study as a table in Markdown; "" if there is none. A variant without
    results among the rows keeps its line of the page's table."""
    lines = lines_by(r"\| (.*?) \|", page)
    for row in (row for row in rows if row.get("study") == study):
        accuracy = f" ({100 * row['val_accuracy']:.2f}%)" if "val_accuracy" in row else ""
        lines[row["variant"]] = f"| {row['variant']} | {row['val_loss']:.4f}{accuracy} | {row['seconds']} |"
    found = [lines[variant.label] for variant in STUDIES[study] if variant.label in lines]
    return "\n".join(["| variant | validation loss | seconds |", "| --- | ---: | ---: |", *found, ""]) if found else ""
