"""Comparisons on docs/results.md: trainings that differ from a recipe by a few flags, with one seed each."""

from dataclasses import dataclass
from typing import Callable

from recipes import RECIPES, bleu, lines_by


@dataclass
class Variant:
    label: str
    flags: list
    recipe: str = "shakespeare-cpu"
    measure: Callable = lambda work, run, lines: {}  # as in recipes.Recipe


# nanoGPT's CPU configuration with its optimizer.
ADAMW = ["--steps=1000", "--eval-every=1000", "--optimizer=adamw", "--learning-rate=1e-3", "--min-learning-rate=1e-4"]
RATES = {"adamw": (1e-3, 3e-3, 6e-3, 1e-2), "lion": (3e-4, 6e-4, 1e-3, 2e-3), "muon": (5e-3, 1e-2, 2e-2, 4e-2),
         "adafactor": (1e-2, 2e-2, 4e-2, 8e-2)}
TRANSLATION_RATES = {"adamw": (2.5e-3, 5e-3, 1e-2), "lion": (3e-4, 6e-4, 1.2e-3), "muon": (1e-2, 2e-2, 4e-2),
                     "adafactor": (2e-2, 4e-2, 8e-2)}
GPT_RATES = {"adamw": (1e-3, 2e-3, 4e-3), "lion": (2e-4, 4e-4, 8e-4), "muon": (1e-2, 2e-2, 4e-2),
             "adafactor": (1e-2, 2e-2, 4e-2)}
# Each of modded-nanogpt's ideas is added to those before it.
IDEAS = [("nanoGPT's options", []),
         ("rotary positions, RMSNorm, no biases", ["--rotary=halves", "--norm=rms-norm", "--no-bias"]),
         ("learning rate 3e-3", ["--learning-rate=3e-3", "--min-learning-rate=0"]),
         ("Muon, 0.02", ["--optimizer=muon", "--learning-rate=0.02"]),
         ("norms of queries and keys", ["--query-key-norm=head"]), ("ReLU²", ["--activation=relu2"]),
         ("outputs begin with zeros", ["--zero-output"]), ("logits capped at 15", ["--logits-cap=15"]),
         ("value embeddings", ["--value-embeddings"]), ("skip connections", ["--skip-connections"])]

SHORT = ["--steps=1000", "--eval-every=1000", "--min-learning-rate=0"]

# The recipe de-en on a quarter of its data, with a third of its epochs. Each trick is added to the options of the first.
QUARTER = ["--source=MADE/quarter/train.source", "--target=MADE/quarter/train.target", "--epochs=10",
           "--warmup-steps=100", "--ema=0.99", "--precision=f32"]
TRICKS = [("AdamW, 0.005", []), ("Muon, 0.02", ["--optimizer=muon", "--learning-rate=0.02"]),
          ("BPE dropout, 0.1", ["--bpe-dropout=0.1"]),
          ("6 + 2 blocks", ["--encoder-layers=6", "--decoder-layers=2"]),
          ("WSD", ["--schedule=wsd"]), ("R-Drop, 5", ["--r-drop=5"])]
VALIDATION_BLEU = bleu("DATA/multi30k/val.de.gz", "DATA/multi30k/val.en.gz", "--lowercase")


def optimizers(rates: dict, recipe: str, flags: list) -> list:
    """Returns a variant for each optimizer and each of its learning rates."""
    return [Variant(f"{name}, {rate:g}", [*flags, f"--optimizer={name}", f"--learning-rate={rate}"], recipe)
            for name in rates for rate in rates[name]]


STUDIES = {
    "optimizers": optimizers(RATES, "shakespeare-cpu", [*SHORT, "--steps=500", "--eval-every=500"]),
    "translation-optimizers": optimizers(
        TRANSLATION_RATES, "de-en", ["--steps=200", "--warmup-steps=50", "--eval-every=200", "--ema=0",
                                     "--precision=f32"]),
    "gpt-optimizers": optimizers(GPT_RATES, "shakespeare", ["--steps=100", "--warmup-steps=20", "--eval-every=100"]),
    "translation": [Variant(label, QUARTER + flags, "de-en", VALIDATION_BLEU) for label, flags in TRICKS],
    "ideas": [Variant(label, ADAMW + [flag for _, flags in IDEAS[:i + 1] for flag in flags])
              for i, (label, _) in enumerate(IDEAS)],
    "schedules": [Variant(label, [*SHORT, "--optimizer=adamw", "--learning-rate=6e-3", f"--schedule={schedule}"])
                  for label, schedule in [("cosine", "cosine"), ("linear", "linear"), ("constant", "constant"),
                                          ("WSD, decay over the last fifth", "wsd"),
                                          ("Noam, the root of the step after the warm-up", "inverse-sqrt")]],
    "precision": [Variant(f"{recipe}, {precision}", [f"--precision={precision}"], recipe, *measure)
                  for recipe, *measure in [("shakespeare-cpu",), ("shakespeare",), ("de-en", VALIDATION_BLEU),
                                           ("sst2-minilm",)]
                  for precision in ("f32", "bf16")],
}

# Further figures of a row, and how a table shows them after the loss.
MORE = {"ema_val_loss": "of averages {:.4f}", "val_accuracy": "{:.2%}", "BLEU": "BLEU {:.2f}"}


def train(work) -> None:
    """Trains the variants that results.jsonl lacks, and appends a row for each."""
    for study, variants in STUDIES.items():
        for i, variant in enumerate(variants):
            if work.has(study=study, variant=variant.label):
                continue
            work.prepare(variant.recipe, variant.flags)
            # Later values of a flag replace earlier ones.
            flags = {flag.split("=")[0]: flag for flag in variant.flags}.values()
            run = f"{study}-{i}"
            work.run(work.weft, "train", RECIPES[variant.recipe].command, f"--config=recipes/{variant.recipe}.json",
                     f"--out={run}", "--overwrite", f"--threads={work.threads}", *flags)
            lines = work.metrics(run)
            last = next(line for line in reversed(lines) if "val_loss" in line)
            work.append({"study": study, "variant": variant.label, "seconds": round(last["seconds"]),
                         **{key: last[key] for key in ("val_loss", "ema_val_loss", "val_accuracy") if key in last},
                         **variant.measure(work, run, lines)})


def table(study: str, rows: list, page: str = "") -> str:
    """Returns the validation losses and times of a study as a table in Markdown; "" if there is none. A variant without
    results among the rows keeps its line of the page's table."""
    lines = lines_by(r"\| (.*?) \|", page)
    for row in (row for row in rows if row.get("study") == study):
        more = ", ".join(text.format(row[key]) for key, text in MORE.items() if key in row)
        figures = f"{row['val_loss']:.4f}" + (f" ({more})" if more else "")
        lines[row["variant"]] = f"| {row['variant']} | {figures} | {row['seconds']} |"
    found = [lines[variant.label] for variant in STUDIES[study] if variant.label in lines]
    return "\n".join(["| variant | validation loss | seconds |", "| --- | ---: | ---: |", *found, ""]) if found else ""
