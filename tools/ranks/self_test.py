#!/usr/bin/env python3
"""Tests tools/same_bits and tools/kill_ranks: their help, wrong usage, and that they find a difference between runs."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import rank_trainings as trainings  # noqa: E402

# Writes results that are wrong on three ranks.
WEFT = """#!/bin/sh
for argument; do case $argument in --out=*) out=${argument#--out=} ;; esac; done
mkdir -p "$out"
loss=2; [ "$OMPI_COMM_WORLD_SIZE" = 3 ] && loss=3
echo "{\\"step\\": 6, \\"train_loss\\": $loss, \\"seconds\\": $$}" > "$out/metrics.jsonl"
echo weights > "$out/model.safetensors"
"""


def run(tool: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(FOLDER.parent / tool), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)


class ToolsTest(unittest.TestCase):
    def test_help_has_examples(self):
        for tool in ("same_bits", "kill_ranks"):
            done = run(tool, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(f"    tools/{tool} --", done.stdout)

    def test_wrong_usage(self):
        for tool, flag, message in (("same_bits", "--train=vit", "'vit' is none of gpt, translate, bert"),
                                    ("same_bits", "--ranks=9", "wanted numbers from 1 to 8"),
                                    ("kill_ranks", "--signals=TERM", "'TERM' is none of KILL, STOP"),
                                    ("kill_ranks", "--ranks=1", "got 1, wanted 2 to 8")):
            done = run(tool, flag)
            self.assertEqual(done.returncode, 2, flag)
            self.assertIn(message, done.stderr)

    @unittest.skipIf(shutil.which("mpirun.openmpi") is None, "mpirun.openmpi is not installed; tools/setup installs it")
    def test_finds_a_difference(self):
        with tempfile.TemporaryDirectory() as folder:
            weft = Path(folder) / "weft"
            weft.write_text(WEFT)
            os.chmod(weft, stat.S_IRWXU)
            done = run("same_bits", f"--weft={weft}", "--train=gpt", "--format=f32", "--shard=none", "--ranks=2,3",
                       "--threads=1", "--resume-on=")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("2 ranks x 1 threads: equal", done.stdout)
        self.assertIn("3 ranks x 1 threads: DIFFERENT: metrics.jsonl differs first at step 6 in train_loss\n",
                      done.stdout)
        self.assertTrue(done.stdout.endswith("same_bits: 1 equal, 1 different\n"), done.stdout)


class DifferenceTest(unittest.TestCase):
    def test_names_files_and_lengths(self):
        first = {"metrics.jsonl": [{"step": 1}], "model.safetensors": b"a"}
        self.assertEqual(trainings.difference(first, first), "")
        second = {"metrics.jsonl": [], "model.safetensors": b"b"}
        self.assertEqual(trainings.difference(second, first),
                         "metrics.jsonl has 0 lines, wanted 1; model.safetensors differs")


if __name__ == "__main__":
    unittest.main()
