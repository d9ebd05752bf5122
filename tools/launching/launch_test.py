#!/usr/bin/env python3
"""Tests tools/launch with a shell script in place of `weft`, and one in place of ssh that stays on this machine.

One test trains with `weft` itself. As root, the tests run tools/launch as an ordinary user, too.
"""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))
REAL_WEFT = Path("apps/weft" if "TEST_SRCDIR" in os.environ else "bazel-bin/apps/weft").resolve()

import hosts  # noqa: E402
import restart  # noqa: E402

# The first argument selects the behaviour of the ranks.
WEFT = """#!/bin/sh
rank=$OMPI_COMM_WORLD_RANK
echo "$rank of $OMPI_COMM_WORLD_SIZE: $*"
case $1 in
  kill) touch run/config.json; [ $rank = 1 ] && kill -KILL $$; [ $OMPI_COMM_WORLD_SIZE = 1 ] || sleep 30 ;;
  stop) [ $OMPI_COMM_WORLD_SIZE = 2 ] && exit 0
        [ $rank = 1 ] && kill -STOP $$
        [ $rank = 2 ] && { sleep 1; echo 'weft: rank 1 has not answered for 1 s; ending all ranks' >&2; exit 1; }
        sleep 30 ;;
  hang) [ $OMPI_COMM_WORLD_SIZE = 1 ] && exit 0
        [ $rank = 1 ] && kill -STOP $$
        echo 'weft: a rank has not answered for 1 s while MPI started; ending all ranks' >&2; exit 1 ;;
  lose) [ $OMPI_COMM_WORLD_SIZE = 2 ] && exit 0
        [ $rank = 2 ] && { touch gone; kill -KILL $(ps -o ppid= -p $PPID); }; sleep 30 ;;
  fail) [ $rank = 1 ] && { echo 'weft: there is no data' >&2; exit 1; }; sleep 30 ;;
  usage) exit 2 ;;
  wait) trap 'touch stopped$rank; exit 1' TERM INT USR1; touch started$rank; while :; do sleep 0.1; done ;;
esac
"""
SSH = """#!/bin/sh
while [ "$1" != "${1#-}" ]; do [ "$1" = -o ] && shift; shift; done
host=$1; shift
[ "$host" != none ] || { echo 'ssh: no such host' >&2; exit 255; }
[ "$host" != b ] || [ ! -e gone ] || { echo 'ssh: connection timed out' >&2; exit 255; }
mkdir -p "$TMPDIR/$host"
TMPDIR="$TMPDIR/$host" exec sh -c "$*"
"""


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


_AS_USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class Launching(unittest.TestCase):
    as_user = False

    def setUp(self):
        # A short path, because Open MPI puts sockets into TMPDIR, that every user can read and write.
        self.folder = Path(tempfile.mkdtemp(prefix="weft-launch-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        shutil.copytree(FOLDER, self.folder / "tools" / "launching")
        shutil.copy(FOLDER.parent / "launch", self.folder / "tools" / "launch")
        for name in ("bin", "tmp", "run"):
            (self.folder / name).mkdir()
        _write(self.folder / "bin" / "weft", WEFT)
        _write(self.folder / "bin" / "ssh", SSH)
        for path in [self.folder, *(path for path in self.folder.rglob("*") if path.is_dir())]:
            path.chmod(0o777)
        self.environment = dict(os.environ, HOME=str(self.folder), TMPDIR=str(self.folder / "tmp"),
                                WEFT=str(self.folder / "bin" / "weft"),
                                # The sanitizers would report MPI's own libraries.
                                ASAN_OPTIONS="detect_leaks=0",
                                TSAN_OPTIONS="detect_deadlocks=0:ignore_noninstrumented_modules=1",
                                PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}")

    def start(self, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, str(self.folder / "tools" / "launch"), *arguments]
        if self.as_user:
            command = [*_AS_USER, *command]
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def launch(self, *arguments: str):
        """Returns the exit code, the sorted lines on stdout, and stderr."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=60)
        return process.returncode, sorted(out.splitlines()), err

    def assert_no_rank_is_left(self):
        """Waits up to 10 s until no rank runs: the launcher may end before the ranks that it has killed."""
        end = time.monotonic() + 10
        while subprocess.run(["pgrep", "-f", str(self.folder / "bin" / "weft")]).returncode == 0:
            self.assertLess(time.monotonic(), end, "a rank still runs")
            time.sleep(0.02)


class BasicTest(Launching):
    def test_runs_ranks(self):
        code, out, err = self.launch("--ranks=3", "--", "train", "gpt", "a b")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out, [f"{rank} of 3: train gpt a b" for rank in range(3)])

    def test_names_a_killed_rank(self):
        code, _, err = self.launch("--ranks=3", "--", "kill")
        self.assertEqual(code, 1)
        self.assertRegex(err, r"^launch: rank 1 on \S+ was ended by signal 9 \(SIGKILL\)\n$")
        self.assert_no_rank_is_left()


class BasicAsUserTest(BasicTest):
    as_user = True

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("the other tests run as an ordinary user already")
        if subprocess.run([*_AS_USER, sys.executable, "--version"], capture_output=True).returncode != 0:
            self.skipTest("can't start Python as an ordinary user")
        super().setUp()


class LaunchTest(Launching):
    def test_continues_without_a_killed_rank(self):
        code, out, err = self.launch("--ranks=3", "--restart-on-failure=5", "--", "kill", "--out=run", "--force=true")
        self.assertEqual(code, 0)
        self.assertEqual([line for line in out if line.startswith("0")],
                         ["0 of 1: kill --out=run --resume", "0 of 2: kill --out=run --resume",
                          "0 of 3: kill --out=run --force=true"])
        self.assertIn("launch: starting again with 2 ranks; restarts left: 4\n", err)
        self.assertIn("launch: starting again with 1 rank; restarts left: 3\n", err)

    def test_gives_up_after_the_last_restart(self):
        code, _, err = self.launch("--ranks=3", "--restart-on-failure=1", "--", "kill", "--out=run")
        self.assertEqual(code, 1)
        self.assertTrue(err.endswith("launch: the run has failed, and no restart is left\n"), err)

    def test_continues_without_a_rank_that_hangs(self):
        code, out, err = self.launch("--ranks=3", "--restart-on-failure=1", "--", "stop", "--out=run")
        self.assertEqual((code, len(out)), (0, 5), err)
        self.assertIn("launch: rank 1 has not answered for 1 s, so all ranks were ended\n", err)
        self.assertIn("launch: starting again with 2 ranks; restarts left: 0\n", err)
        self.assert_no_rank_is_left()

    def test_continues_if_a_rank_hangs_before_it_connects(self):
        code, out, err = self.launch("--ranks=2", "--restart-on-failure=1", "--", "hang", "--out=run")
        self.assertEqual(code, 0, err)
        self.assertIn("launch: a rank has not answered for 1 s while MPI started, so all ranks were ended\n", err)
        self.assertIn("launch: starting again with 1 rank; restarts left: 0\n", err)
        self.assert_no_rank_is_left()

    def test_an_error_of_weft_ends_the_run(self):
        code, out, err = self.launch("--ranks=2", "--restart-on-failure=5", "--", "fail", "--out=run")
        self.assertEqual((code, len(out)), (1, 2))
        self.assertRegex(err, r"^weft: there is no data\nlaunch: rank 1 on \S+ ended with exit code 1\n$")
        self.assertEqual(self.launch("--ranks=2", "--", "usage")[0], 2)

    def test_passes_on_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            process = self.start("--ranks=2", "--", "wait")
            while not (self.folder / "started0").exists() or not (self.folder / "started1").exists():
                time.sleep(0.05)
            process.send_signal(number)
            err = process.communicate(timeout=60)[1]
            self.assertEqual((process.returncode, err), (1, f"launch: the run was stopped by {number.name}\n"))
            for name in ("started0", "started1", "stopped0", "stopped1"):
                (self.folder / name).unlink()

    def test_runs_on_several_machines(self):
        (self.folder / "hosts").write_text("a slots=2  # the first machine\nb\n")
        code, out, err = self.launch("--hosts=hosts", "--", "train")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out, [f"{rank} of 3: train" for rank in range(3)])

    def test_continues_without_a_lost_machine(self):
        (self.folder / "hosts").write_text("a slots=2\nb\n")
        code, out, err = self.launch("--hosts=hosts", "--restart-on-failure=1", "--", "lose", "--out=run")
        self.assertEqual(code, 0, err)
        self.assertIn("launch: the connection to the machine b is lost\n", err)
        self.assertIn("launch: the machine b is left out, because it does not answer: ssh: connection timed out\n", err)
        self.assertIn("launch: starting again with 2 ranks; restarts left: 0\n", err)

    def test_machines_must_answer(self):
        (self.folder / "hosts").write_text("a\nnone\n")
        code, out, err = self.launch("--hosts=hosts", "--", "train")
        self.assertEqual((code, out), (1, []))
        self.assertEqual(err, "launch: the machine none of hosts does not answer: ssh: no such host\n")

    def test_wrong_usage(self):
        (self.folder / "bad").write_text("a slots=two\n")
        (self.folder / "two").write_text("a\nb\n")
        (self.folder / "empty").write_text("# nothing\n")
        for arguments, message in [
            (["--ranks=2"], "there is no command for weft"),
            (["--ranks=2", "--"], "there is no command for weft"),
            (["--", "train"], "--ranks is missing"),
            (["--ranks=0", "--", "train"], "--ranks: got 0, wanted at least 1"),
            (["--ranks=x", "--", "train"], "invalid int value: 'x'"),
            (["--rank=2", "--", "train"], "unrecognized arguments: --rank=2"),
            (["--ranks=2", "--restart-on-failure=-1", "--", "train"], "got -1, wanted at least 0"),
            (["--ranks=2", "--restart-on-failure=1", "--", "train"], "needs weft's flag --out=FOLDER"),
            (["--hosts=none", "--", "train"], "can't read none: No such file or directory"),
            (["--hosts=bad", "--", "train"], "bad, line 1: got 'a slots=two', wanted a name and slots"),
            (["--hosts=empty", "--", "train"], "empty names no machine"),
            (["--hosts=two", "--ranks=3", "--", "train"], "got 3, but the machines of two have 2 slots"),
        ]:
            with self.subTest(arguments):
                code, out, err = self.launch(*arguments)
                self.assertEqual((code, out), (2, []))
                self.assertIn(message, err)

    def test_missing_programs(self):
        self.environment["WEFT"] = "none"
        code, _, err = self.launch("--ranks=2", "--", "train")
        self.assertEqual(code, 1)
        self.assertRegex(err, r"^launch: there is no program /.*/none; run `bazel build -c opt //apps:weft`")
        self.environment.update(WEFT="/bin/true", PATH=str(self.folder / "bin"))
        process = subprocess.run([sys.executable, str(self.folder / "tools" / "launch"), "--ranks=2", "--", "train"],
                                 env=self.environment, capture_output=True, text=True)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(process.stderr, r"^launch: there is no mpirun; .*openmpi-bin")

    def test_help_has_examples(self):
        code, out, _ = self.launch("--help")
        self.assertEqual(code, 0)
        self.assertIn("    tools/launch --ranks=4 -- train gpt --micro-batches=8 --out=RUN", out)


@unittest.skipUnless(REAL_WEFT.exists(), f"there is no {REAL_WEFT}; run `bazel build -c opt //apps:weft`")
class TrainingTest(Launching):
    def test_a_killed_rank_changes_no_bit(self):
        arguments = ["train", "gpt", "--layers=1", "--width=16", "--heads=2", "--context=8", "--batch=4",
                     "--micro-batches=4", "--steps=1500", "--threads=1", "--checkpoint-every=50", "--eval-every=500",
                     "--rank-timeout=20", "--quiet"]
        subprocess.run([REAL_WEFT, *arguments, "--out=alone"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        self.environment["WEFT"] = str(REAL_WEFT)
        process = self.start("--ranks=3", "--restart-on-failure=1", "--", *arguments, "--out=ranks")
        while not list((self.folder / "ranks").glob("checkpoints/*")):
            self.assertIsNone(process.poll(), "the training has ended")
            time.sleep(0.01)
        ranks = subprocess.run(["pgrep", "-f", f"^{REAL_WEFT} .*--out=ranks"], capture_output=True, text=True).stdout
        os.kill(int(ranks.split()[1]), signal.SIGKILL)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(err, r"launch: rank \d on \S+ was ended by signal 9 \(SIGKILL\)\n"
                         r"launch: starting again with 2 ranks; restarts left: 0\n")
        alone, several = [(self.folder / name / "model.safetensors").read_bytes() for name in ("alone", "ranks")]
        self.assertEqual(alone, several)


class PartsTest(unittest.TestCase):
    def test_a_dead_rank_takes_its_slot(self):
        machines = {"a.net": 2, "b": 1, "10.0.0.1": 1}
        self.assertEqual(hosts.without_dead_rank(machines, "a"), {"a.net": 1, "b": 1, "10.0.0.1": 1})
        self.assertEqual(hosts.without_dead_rank(machines, "b.net"), {"a.net": 2, "10.0.0.1": 1})
        self.assertEqual(hosts.without_dead_rank(machines, "10.0.0.2"), machines)
        self.assertEqual(hosts.without_dead_rank(machines, None), machines)
        self.assertIsNone(hosts.without_dead_rank(None, "a"))

    def test_a_run_without_a_folder_starts_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            command = ["train", "gpt", "--out", folder, "--overwrite"]
            (Path(folder) / "config.json").write_text("of an older run")
            run = restart.Run(command)
            self.assertEqual(run.continued(1), command)
            (Path(folder) / "new").write_text("of this run")
            os.replace(Path(folder) / "new", Path(folder) / "config.json")
            self.assertEqual(run.continued(1), ["train", "gpt", "--out", folder, "--resume"])
            sharded = restart.Run(["train", "gpt", "--shard=gradients"])
            self.assertEqual(sharded.continued(2), ["train", "gpt", "--shard=gradients"])
            self.assertEqual(sharded.continued(1), ["train", "gpt", "--shard=gradients", "--shard=none"])
            resumed = ["train", "gpt", f"--out={folder}", "--resume"]
            self.assertEqual(restart.Run(resumed).continued(1), resumed)


if __name__ == "__main__":
    unittest.main()
