"""The trainings of docs/results.md: a row for each file of recipes/, and how its model is measured."""

import csv
import json
import re
import statistics
import sys
from dataclasses import dataclass
from typing import Callable

# Words that begin paths, besides DATA and MADE, and the programs of tools/ that fetch these files or folders. Weft knows
# a GGUF file by its ending.
FETCHED = {"MINILM": "fetch_minilm", "SMOLLM.gguf": "fetch_smollm", "CMUDICT": "fetch_cmudict",
           "DESCRIPTIONS": "fetch_descriptions"}
# Data sets that tools/task_data derives: the folder in MADE, and the arguments before the folder.
MADE = {task: [task] for task in ("copy", "reverse", "sort", "add5", "add10")}
MADE["phonemes"] = ["phonemes", "CMUDICT"]
MADE["books"] = ["lowercase", "DATA/wikitext-2/train.txt.gz", "DATA/war-and-peace/train.txt.gz"]
MADE["descriptions"] = ["descriptions", "DESCRIPTIONS/en", "DESCRIPTIONS/de"]
MADE["chat"] = ["chat", "DESCRIPTIONS/en"]
MADE["packages"] = ["packages", "DESCRIPTIONS/en"]
MADE["banking"] = ["banking", "DATA/banking77/train.csv"]
MADE["quarter"] = ["quarter", "DATA/multi30k/train.de.gz", "DATA/multi30k/train.en.gz"]


@dataclass
class Recipe:
    command: str  # the word after `weft train`
    title: str
    goal: str  # that of the project, often a published result
    measure: Callable  # (work, run, lines of metrics.jsonl) -> {metric: number}
    seeds: int = 3


def last(key: str, figure: str, factor: float = 1) -> Callable:
    """Returns a measure: the value of the last evaluation on the validation data."""
    return lambda work, run, lines: {figure: factor * next(line[key] for line in reversed(lines) if key in line)}


ACCURACY = last("val_accuracy", "accuracy %", 100)


def bleu(source: str, target: str, *flags) -> Callable:
    """Returns a measure: BLEU and chrF of the translations of a file, with a beam of 5."""
    def measure(work, run, lines) -> dict:
        figures = work.json(work.weft, "evaluate", f"--model={run}", "--beam=5", "--json", f"--source={source}",
                            f"--references={target}", *flags)
        return {"BLEU": figures["bleu"], "chrF": figures["chrf"]}
    return measure


def perplexity(work, run: str, lines) -> dict:
    """Returns the perplexity by word and the bits per byte of WikiText-2's validation text."""
    figures = work.json(work.weft, "evaluate", f"--model={run}", "--json", "DATA/wikitext-2/valid.txt")
    return {"word perplexity": figures["word_perplexity"], "bits per byte": figures["bits_per_byte"]}


def flickr(source: str, target: str) -> Callable:
    """Returns a measure: lowercased BLEU and chrF of Multi30k's test_2016_flickr."""
    test = "DATA/multi30k/test_2016_flickr"
    return bleu(f"{test}.{source}.gz", f"{test}.{target}.gz", "--lowercase")


def translate(work, run: str, task: str, part: str = "test") -> list:
    """Returns pairs of the model's greedy output for a line of this part of the task's data and the line that was
    wanted."""
    folder = work.folder / "MADE" / task
    output = work.run(work.weft, "translate", f"--model={run}", "--beam=1", stdin=folder / f"{part}.source").split("\n")
    wanted = (folder / f"{part}.target").read_text(encoding="utf-8").split("\n")
    return list(zip(output, wanted, strict=True))[:-1]


def exact(task: str) -> Callable:
    """Returns a measure: the share of fresh examples, and of longer ones than in training, that have no error."""
    def share(pairs: list) -> float:
        return 100 * sum(output == wanted for output, wanted in pairs) / len(pairs)

    def measure(work, run, lines) -> dict:
        return {"exact match %": share(translate(work, run, task)),
                "of longer inputs %": share(translate(work, run, task, "longer"))}
    return measure


def edit_distance(a: str, b: str) -> int:
    """Returns the least number of characters to insert, delete or replace that make `a` equal to `b`."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


def phonemes(work, run: str, lines) -> dict:
    """Returns the error rates of phonemes and of words, each against the closest of the word's pronunciations."""
    errors = length = wrong = 0
    pairs = translate(work, run, "phonemes")
    for output, wanted in pairs:
        _, error, size = min((edit_distance(output, one) / len(one), edit_distance(output, one), len(one))
                             for one in wanted.split("\t"))
        errors, length, wrong = errors + error, length + size, wrong + (error > 0)
    return {"phoneme error rate %": 100 * errors / length, "word error rate %": 100 * wrong / len(pairs)}


def banking(work, run: str, lines) -> dict:
    """Returns the accuracy of the classifier, and that of the label of the nearest training query by `weft embed`."""
    try:
        import numpy
    except ImportError:
        sys.exit(f"results: {sys.executable} has no module numpy; wanted Debian's python3-numpy, which tools/setup "
                 "installs for /usr/bin/python3")
    labels, vectors = {}, {}
    for part in ("train", "validation"):
        with open(work.folder / f"MADE/banking/{part}.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        texts = work.folder / f"{run}.{part}.txt"
        texts.write_text("".join(" ".join(row["text"].split()) + "\n" for row in rows), encoding="utf-8")
        vectors[part] = numpy.array([json.loads(line) for line in
                                     work.run(work.weft, "embed", f"--model={run}", stdin=texts).splitlines()])
        labels[part] = numpy.array([row["category"] for row in rows])
    nearest = (vectors["validation"] @ vectors["train"].T).argmax(axis=1)
    right = labels["train"][nearest] == labels["validation"]
    return {**ACCURACY(work, run, lines), "nearest neighbour accuracy %": 100 * float(right.mean())}


RECIPES = {
    "digits": Recipe("vit", "digits, Vision Transformer", "98.5% in two minutes", ACCURACY),
    "mnist": Recipe("vit", "mnist10k, Vision Transformer", "98.5% in two minutes", ACCURACY),
    "mnist-order": Recipe("vit", "mnist10k without labels: shuffled patches", "", last("val_loss", "loss"), 1),
    "mnist-masked": Recipe("vit", "mnist10k without labels: hidden patches", "", last("val_loss", "loss"), 1),
    "mnist-100": Recipe("vit", "100 labels of mnist10k, from random weights", "", ACCURACY),
    "mnist-100-order": Recipe("vit", "100 labels, from mnist-order", "5 points above random weights", ACCURACY),
    "mnist-100-masked": Recipe("vit", "100 labels, from mnist-masked", "5 points above random weights", ACCURACY),
    "shakespeare-cpu": Recipe("gpt", "Tiny Shakespeare, the size and steps of nanoGPT's CPU configuration",
                              "at most 1.86", last("val_loss", "validation loss")),
    "shakespeare": Recipe("gpt", "Tiny Shakespeare, 10.7M parameters, the size of nanoGPT's for a GPU",
                          "1.47 in 30 minutes", last("val_loss", "validation loss"), 1),
    "copy": Recipe("translate", "copying up to 20 digits", "100% in three minutes", exact("copy")),
    "reverse": Recipe("translate", "reversing up to 20 digits", "100% in three minutes", exact("reverse")),
    "sort": Recipe("translate", "sorting up to 20 digits", "100% in three minutes", exact("sort")),
    "add5": Recipe("translate", "adding numbers of 5 digits", "100% in three minutes", exact("add5")),
    "add10": Recipe("translate", "adding numbers of 10 digits", "100% in three minutes", exact("add10")),
    "adder-small": Recipe("translate", "adding numbers of 10 digits with 3,456 parameters",
                          "100%; AdderBoard's smallest trained model has 62 parameters", exact("add10")),
    "phonemes": Recipe("translate", "graphemes to phonemes, CMUdict", "phonemes 5.3%, words 22.5%", phonemes, 2),
    "sst2-minilm": Recipe("classify", "MiniLM on SST-2", "90%", ACCURACY),
    "sst2": Recipe("classify", "SST-2 from random weights", "75%", ACCURACY),
    "books-bert": Recipe("bert", "BERT on WikiText-2 and War and Peace in lower case", "",
                         last("val_loss", "validation loss"), 1),
    "sst2-books": Recipe("classify", "SST-2 from books-bert", "82%, 3 points above random weights", ACCURACY),
    "sst2-adapters": Recipe("classify", "adapters of MiniLM on SST-2, 1.4% of the weights",
                            "within 1 point of all weights", ACCURACY, 1),
    "wikitext2-bert": Recipe("bert", "BERT on WikiText-2, 400 steps", "below the unigram entropy, 6.5429",
                             last("val_loss", "validation loss"), 1),
    "banking": Recipe("classify", "MiniLM on banking77", "92%; nearest neighbour 91%", banking, 2),
    "wikitext2-gpt": Recipe("gpt", "GPT of 5.2M parameters on WikiText-2, byte pairs", "below PyTorch's",
                            perplexity, 1),
    "chat": Recipe("gpt", "adapters of SmolLM2-135M-Instruct on questions about Debian's packages", "",
                   last("val_loss", "validation loss"), 1),
    "chat-base": Recipe("gpt", "GPT of 5.2M parameters on Debian's package descriptions", "",
                        last("val_loss", "validation loss"), 1),
    "chat-small": Recipe("gpt", "questions about Debian's packages, from chat-base", "a chat from raw text in an hour",
                         last("val_loss", "validation loss"), 1),
    "descriptions": Recipe("translate", "Debian's package descriptions, English to German", "", bleu(
        "MADE/descriptions/test.source", "MADE/descriptions/test.target", "--truncate"), 1),
    "de-en": Recipe("translate", "Multi30k, German to English", "41 BLEU in 20 minutes", flickr("de", "en"), 2),
    "en-de": Recipe("translate", "Multi30k, English to German", "39 BLEU in 20 minutes", flickr("en", "de"), 2),
}


# Files that a training's model writes into --work, named RUN.SUFFIX: the suffix, and the command whose standard
# output is the file. RUN is the run in an argument, too.
SAMPLES = {
    "de-en": [("txt", ["translate", "--model=RUN", "--beam=5", "DATA/multi30k/test_2016_flickr.de.gz"]),
              ("html", ["attention", "--model=RUN", "--out=-",
                        "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt."])],
    "shakespeare-cpu": [("txt", ["generate", "--model=RUN", "--prompt=ROMEO:", "--length=420", "--seed=1"]),
                        ("html", ["attention", "--model=RUN", "--out=-", "ROMEO: What light is this?"])],
    "chat": [("txt", ["generate", "--model=RUN", "--temperature=0", "--length=80",
                      "--prompt=<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
                      "<|im_end|>\n<|im_start|>user\nWhat is the Debian package audacious?<|im_end|>\n"
                      "<|im_start|>assistant\n"])],
    "banking": [("html", ["attention", "--model=RUN", "--out=-", "My card has not arrived after two weeks"])],
}


def mean_and_deviation(numbers: list, digits: int) -> str:
    """Returns the mean and, of several numbers, the standard deviation."""
    mean = f"{statistics.mean(numbers):.{digits}f}"
    return mean if len(numbers) == 1 else f"{mean} ± {statistics.stdev(numbers):.{digits}f}"


def described(metric: str, numbers: list) -> str:
    """Returns "NAME MEAN ± DEVIATION", and a percent sign at the end of a metric "NAME %"."""
    name, percent = (metric[:-2], " %") if metric.endswith(" %") else (metric, "")
    return f"{name} {mean_and_deviation(numbers, 4 if 'loss' in name else 3 if 'exact' in name else 2)}{percent}"


def lines_by(pattern: str, page: str) -> dict:
    """Returns the lines of a table in Markdown that match a pattern, by the text of the pattern's group."""
    return {found[1]: line for line in page.splitlines() if (found := re.match(pattern, line))}


def table(rows: list, page: str = "") -> str:
    """Returns the table of the recipes in Markdown; "" if no recipe has results. A recipe without results among the
    rows keeps its line of the page's table."""
    kept, lines = lines_by(r".*\(\.\./recipes/(.*?)\.json\)", page), {}
    machines = set(page.partition("\nMachines: ")[2].strip().rstrip(".").split("; ")) - {""}
    for name, recipe in RECIPES.items():
        own = [row for row in rows if row.get("recipe") == name]
        if not own:
            if name in kept:
                lines[name] = kept[name]
            continue
        # Rows of an older recipe do not count, and of a seed the last row counts.
        latest = {row["seed"]: row for row in own if row.get("config") == own[-1].get("config")}
        own = [latest[seed] for seed in sorted(latest)]
        result = ", ".join(described(key, [row["metrics"][key] for row in own]) for key in own[0]["metrics"])
        minutes = mean_and_deviation([row["seconds"] / 60 for row in own], 1)
        lines[name] = (f"| {recipe.title}: [{name}](../recipes/{name}.json), [losses](results/{name}.svg) "
                       f"| {recipe.goal} | {result} | {len(own)} | {minutes} "
                       f"| {max(row['memory'] for row in own) >> 20} | `{own[0]['sha256'][:8]}` |")
        machines |= {f"{row['machine']}, --threads={row['threads']}" for row in own}
    if not lines:
        return ""
    return "\n".join(["| training, recipe, losses | goal | result | seeds | minutes | MiB | weights |",
                      "| --- | --- | --- | ---: | ---: | ---: | --- |", *lines.values(), "",
                      f"Machines: {'; '.join(sorted(machines))}.", ""])


def bits_table(rows: list, page: str = "") -> str:
    """Returns the table of the weights after the first steps of recipes, by machine; "" if there is none. A line of the
    page's table stays unless the rows have the same recipe, steps and machine."""
    lines = lines_by(r"(\| \w.*? \| \d+ \| .*?) \|", page)
    for row in (row for row in rows if "same_bits" in row):
        key = f"| {row['same_bits']} | {row['steps']} | {row['machine']}"
        lines[key] = f"{key} | {'equal' if row['equal'] else 'different'} | `{row['sha256'][:8]}` |"
    if not lines:
        return ""
    return "\n".join(["| recipe | steps | machine | 1, 2, 4 threads and 2 ranks | weights |",
                      "| --- | ---: | --- | --- | --- |", *lines.values(), ""])
