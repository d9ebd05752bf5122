#!/usr/bin/env python3
"""Tests tools/results: its usage, its figures, and that each recipe gives the same bits on threads and ranks.

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

WEFT = str(Path(sys.argv.pop(1)).absolute())


def results(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run([FOLDER / "results", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, **variables})


class Figures(unittest.TestCase):
    def test_distance(self):
        for a, b, wanted in [("", "", 0), ("", "ab", 2), ("kitten", "sitting", 3), ("abc", "acb", 2), ("abc", "", 3)]:
            self.assertEqual(recipes.distance(a, b), wanted, (a, b))

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
            figures = recipes.phonemes(Work(), "run", [])
        self.assertAlmostEqual(figures["phoneme error %"], 100 / 6)
        self.assertEqual(figures["word error %"], 50)

    def test_the_table_has_means_and_deviations(self):
        row = {"recipe": "digits", "sha256": "0123456789abcdef", "memory": 3 << 20, "threads": 1, "seconds": 60}
        text = recipes.table([{**row, "seed": seed, "figures": {"accuracy %": figure}}
                              for seed, figure in [(2, 98), (1, 96), (3, 97)]])
        self.assertIn("97.00 ± 1.00 accuracy %", text)
        self.assertIn("`0123456789ab`", text)

    def test_the_fit_finds_a_power_law(self):
        a, b = scaling.fit([(flops, 7 * flops ** -0.1) for flops in (1e9, 3e9, 2e10, 1e11)])
        self.assertAlmostEqual(a, 7)
        self.assertAlmostEqual(b, -0.1)

    def test_each_recipe_has_a_row(self):
        self.assertEqual({path.stem for path in FOLDER.parent.glob("recipes/*.json")}, set(recipes.RECIPES))


class Usage(unittest.TestCase):
    def test_errors_say_what_is_wanted(self):
        for arguments, message in [(["--data=/", f"--weft={WEFT}", "dijits"], "'dijits' is none of digits,"),
                                   (["--data=/", f"--weft={WEFT}", "--seeds=0"], "--seeds=0: wanted at least 1"),
                                   (["--data=missing"], "wanted --data=FOLDER"),
                                   (["--data=/", "--weft=missing"], "missing does not exist; wanted the program weft")]:
            done = results(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(message, done.stderr)


@unittest.skipUnless(os.environ.get("WEFT_DATA"), "WEFT_DATA names no folder")
class Trainings(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp()

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
        self.assertGreater(row["figures"]["accuracy %"], 97)
        self.assertEqual(self.run_on("--seeds=1", "digits").stderr, "")


if __name__ == "__main__":
    unittest.main(argv=["results_test", "-v"])
