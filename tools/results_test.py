#!/usr/bin/env python3
"""Tests tools/results: its usage, its metrics, and that each recipe gives the same bits on threads and ranks.

    results_test.py WEFT

The trainings need the folder WEFT_DATA and, for some recipes, WEFT_MINILM; without them, their tests skip.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import recipes  # noqa: E402
import scaling  # noqa: E402
import studies  # noqa: E402

WEFT = str(Path(sys.argv.pop(1)).absolute())


def results(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run([FOLDER / "results", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, **variables})


class Metrics(unittest.TestCase):
    def test_distance(self):
        for a, b, wanted in [("", "", 0), ("", "ab", 2), ("kitten", "sitting", 3), ("abc", "acb", 2), ("abc", "", 3)]:
            self.assertEqual(recipes.edit_distance(a, b), wanted, (a, b))

    def test_phonemes_count_against_the_closest_pronunciation(self):
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, "MADE/phonemes")
            made.mkdir(parents=True)
            (made / "test.source").write_text("ab\ncd\n")
            (made / "test.target").write_text("xyz\tAB\nCDEF\n")

            class Work:
                weft = "weft"

                def __init__(self):
                    self.folder = Path(folder)

                def run(self, *command, stdin):
                    return "AB\nCDE\n"
            metrics = recipes.phonemes(Work(), "run", [])
        self.assertAlmostEqual(metrics["phoneme error rate %"], 100 / 6)
        self.assertEqual(metrics["word error rate %"], 50)

    def test_the_table_has_means_and_deviations(self):
        row = {"recipe": "digits", "sha256": "0123456789abcdef", "memory": 3 << 20, "threads": 1, "seconds": 60,
               "machine": "CPU, 2 cores"}
        text = recipes.table([{**row, "seed": seed, "metrics": {"accuracy %": figure}}
                              for seed, figure in [(2, 98), (1, 96), (3, 97)]])
        self.assertIn("accuracy 97.00 ± 1.00 %", text)
        self.assertIn("`01234567`", text)
        older = [{**row, "config": "older", "seed": seed, "metrics": {"accuracy %": 10}} for seed in (1, 2)]
        newer = [{**row, "config": "newer", "seed": 1, "metrics": {"accuracy %": figure}} for figure in (20, 30)]
        self.assertIn("| accuracy 30.00 % | 1 |", recipes.table(older + newer))  # the last one of the newest recipe
        row = {**row, "seed": 1, "machine": "new", "metrics": {"accuracy %": 99}}
        other = recipes.table([{**row, "recipe": "mnist"}], text)
        self.assertEqual(text.splitlines()[:3], other.splitlines()[:3])  # the page's line of digits stays
        self.assertIn("accuracy 99.00 %", other)
        self.assertIn("Machines: CPU, 2 cores, --threads=1; new, --threads=1.\n", other)
        self.assertEqual(recipes.table([row], other).count("/digits.json"), 1)

    def test_the_tables_of_bits_and_studies_keep_their_lines(self):
        bits = {"same_bits": "digits", "steps": 200, "machine": "one", "equal": True, "sha256": "0123456789abcdef"}
        first = recipes.bits_table([bits])
        both = recipes.bits_table([{**bits, "machine": "two", "equal": False}], first)
        self.assertEqual(both.splitlines()[:3], first.splitlines())
        self.assertIn("| digits | 200 | two | different | `01234567` |\n", both)
        self.assertEqual(recipes.bits_table([bits], both), both)
        labels = [variant.label for variant in studies.STUDIES["ideas"][:2]]
        rows = [{"study": "ideas", "variant": label, "val_loss": 2, "seconds": 9} for label in labels]
        rows[0].update(ema_val_loss=1.5, val_accuracy=0.25, BLEU=30)
        self.assertIn(f"| {labels[0]} | 2.0000 (of averages 1.5000, 25.00%, BLEU 30.00) | 9 |\n",
                      studies.table("ideas", rows))
        self.assertEqual(studies.table("ideas", rows[1:], studies.table("ideas", rows[:1])),
                         studies.table("ideas", rows))

    def test_the_fit_finds_a_power_law(self):
        self.assertEqual(scaling.table([]), "")
        a, b = scaling.fit_power_law([(flops, 7 * flops ** -0.1) for flops in (1e9, 3e9, 2e10, 1e11)])
        self.assertAlmostEqual(a, 7)
        self.assertAlmostEqual(b, -0.1)

    def test_each_recipe_has_a_row(self):
        self.assertEqual({path.stem for path in FOLDER.parent.glob("recipes/*.json")}, set(recipes.RECIPES))


class TaskData(unittest.TestCase):
    def run_on(self, *arguments) -> subprocess.CompletedProcess:
        return subprocess.run([FOLDER / "task_data", *arguments], capture_output=True, text=True)

    def test_tasks_of_digits(self):
        for task, solve in [("sort", lambda text: "".join(sorted(text))), ("copy", str), ("reverse", lambda s: s[::-1]),
                            ("add5", lambda text: f"{sum(map(int, text.split('+'))):0{len(text) // 2 + 1}}"[::-1])]:
            with tempfile.TemporaryDirectory() as folder:
                self.assertEqual(self.run_on(task, folder).returncode, 0)
                parts = {}
                longer = Path(folder, "longer.source").read_text().split()
                self.assertTrue(all(len(text) in ({13} if task == "add5" else range(21, 26)) for text in longer))
                self.assertEqual([solve(text) for text in longer], Path(folder, "longer.target").read_text().split())
                for part, count in [("train", 200_000), ("validation", 1000), ("test", 10_000)]:
                    source, target = (Path(folder, f"{part}.{end}").read_text().split() for end in ("source", "target"))
                    self.assertEqual((len(source), target), (count, [solve(text) for text in source]), task)
                    parts[part] = set(source)
                self.assertFalse(parts["test"] & (parts["train"] | parts["validation"]))

    def test_phonemes(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "dict").write_text("hello HH AH0 L OW1\nhello(2) HH EH0 L OW1\n'em AH0 M # a comment\n3d D\n")
            self.assertEqual(self.run_on("phonemes", f"{folder}/dict", folder).returncode, 0)
            pairs = dict(zip(*(Path(folder, f"test.{end}").read_text().splitlines() for end in ("source", "target"))))
        self.assertEqual(pairs, {"hello": "hAlo\thElo", "'em": "Am"})

    def test_descriptions(self):
        entry = "Package: {}\nDescription-md5: {}\nDescription-{}: {}\n\n"
        english = "title one\n First text. Second\n text.\n .\n  * item\n    of a list"
        german = "Titel eins\n Erster Text. Zweiter Text.\n .\n  - Punkt einer Liste"
        texts = {"en": entry.format("tool", 1, "en", english) + entry.format("other", 2, "en", "same"),
                 "de": entry.format("tool", 1, "de", german) + entry.format("other", 2, "de", "same")
                 + entry.format("gone", 3, "de", "Fehlt")}
        with tempfile.TemporaryDirectory() as folder:
            for language, text in texts.items():
                Path(folder, language).write_text(text)
            self.assertEqual(self.run_on("descriptions", f"{folder}/en", f"{folder}/de", folder).returncode, 0)
            found = [(a, b) for part in ("train", "validation", "test") for a, b in
                     zip(*(Path(folder, f"{part}.{end}").read_text().splitlines() for end in ("source", "target")))]
            self.assertEqual(found, [("title one", "Titel eins"), ("First text.", "Erster Text."),
                                     ("Second text.", "Zweiter Text."), ("item of a list", "Punkt einer Liste")])
            self.assertEqual(self.run_on("chat", f"{folder}/en", folder).returncode, 0)
            self.assertEqual(Path(folder, "train.txt").read_text() + Path(folder, "validation.txt").read_text(),
                             "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
                             "<|im_end|>\n<|im_start|>user\nWhat is the Debian package tool?<|im_end|>\n"
                             "<|im_start|>assistant\nTitle one. First text. Second text.<|im_end|>\n")
            again = entry.format("again", 3, "en", "title two\n First text. Second text.\n .\n Third text.")
            Path(folder, "en").write_text(texts["en"] + again)
            self.assertEqual(self.run_on("packages", f"{folder}/en", folder).returncode, 0)
            found = [Path(folder, f"{part}.txt").read_text() for part in ("base-train", "base-validation", "train")]
            self.assertEqual(found, [
                "other: same\n\nagain: title two\nThird text.\n\n",
                "tool: title one\nFirst text. Second text.\nitem of a list\n\n",
                "Question: What is the Debian package tool?\nAnswer: Title one. First text. Second text.\n\n"
                "Question: What is the Debian package again?\nAnswer: Title two. First text. Second text.\n\n"])

    def test_quarter(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in "ab":
                Path(folder, name).write_text("".join(f"{name}{i}\n" for i in range(9)))
            self.assertEqual(self.run_on("quarter", f"{folder}/a", f"{folder}/b", folder).returncode, 0)
            for name, end in [("a", "source"), ("b", "target")]:
                self.assertEqual(Path(folder, f"train.{end}").read_text(), f"{name}0\n{name}4\n{name}8\n")

    def test_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in [("a", "1\n2\n"), ("b", "1\n")]:
                Path(folder, name).write_text(text)
            done = self.run_on("translations", f"{folder}/a", f"{folder}/b")
        self.assertIn("a has 3 lines, but", done.stderr)
        self.assertIn("No such file or directory: 'missing'", self.run_on("names", "missing").stderr)
        self.assertEqual(self.run_on("nothing").returncode, 2)


class Usage(unittest.TestCase):
    def test_errors_say_what_is_wanted(self):
        for arguments, message in [(["--data=/", f"--weft={WEFT}", "dijits"], "'dijits' is none of digits,"),
                                   (["--data=/", f"--weft={WEFT}", "--seeds=0"], "--seeds=0: wanted at least 1"),
                                   (["--data=missing"], "data sets is missing; wanted --data=FOLDER"),
                                   (["--data=/", f"--weft={WEFT}", "--page", "--scaling"], "wanted one of --same-bits"),
                                   (["--data=/", "--weft=missing"], "missing does not exist; wanted the program weft")]:
            done = results(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(message, done.stderr)


@unittest.skipUnless(os.environ.get("WEFT_DATA"), "WEFT_DATA names no folder")
class Trainings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = folder.name

    def run_on(self, *arguments: str) -> subprocess.CompletedProcess:
        done = results(f"--work={self.work}", f"--weft={WEFT}", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_the_same_bits_on_threads_and_ranks(self):
        names = ["de-en", "wikitext2-bert", "sst2", "digits", "shakespeare-cpu"]  # one of each command
        names += ["sst2-minilm"] if os.environ.get("WEFT_MINILM") else []
        lines = self.run_on("--same-bits=2", *names).stdout.splitlines()
        self.assertEqual(len(lines), 4 * len(names))
        for name in names:
            self.assertEqual(len({line.split("\t")[2] for line in lines if line.split("\t")[0] == name}), 1, name)

    def test_a_finished_training_is_not_repeated(self):
        self.run_on("--seeds=1", "digits")
        row = json.loads(Path(self.work, "results.jsonl").read_text())
        self.assertGreater(row["metrics"]["accuracy %"], 97)
        self.assertEqual(self.run_on("--seeds=1", "digits").stderr, "")


if __name__ == "__main__":
    unittest.main(argv=["results_test", "-v"])
