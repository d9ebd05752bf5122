"""Runs small trainings of every kind, reads their run folders, and compares these with an undisturbed run."""

import json
import os
import shutil
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

STEPS = 12
TIMEOUT = 120  # seconds: a run takes less than one second, and much longer only if it hangs

# The flags of each training. Models are so small that a run takes a fraction of a second.
_MODEL = ["--width=16", "--heads=2"]
_ENCODER = ["--vocabulary=300", "--feed-forward=32", "--batch=4"] + _MODEL
FLAGS = {
    "gpt": ["--data=text.txt", "--layers=1", "--context=8", "--batch=4", "--sample-length=20", "--dropout=0.1",
            "--eval-batches=2"] + _MODEL,
    "bert": ["--data=text.txt", "--layers=1", "--context=24", "--eval-batches=2", "--next-sentence"] + _ENCODER,
    "translate": ["--source=a.txt", "--target=b.txt", "--encoder-layers=1", "--decoder-layers=1", "--dropout=0.1",
                  "--scheduled-sampling=linear", "--sampling-steps=10", "--input-noise=0.05",
                  "--bpe-dropout=0.2"] + _ENCODER,
    "classify": ["--data=labelled.tsv", "--layers=1", "--pooling=mean"] + _ENCODER,
    "vit": ["--data=pictures.csv", "--patch-size=2", "--layers=1", "--batch=4", "--shift=1", "--dropout=0.1"] + _MODEL,
}
_COMMON = [f"--steps={STEPS}", "--eval-every=4", "--checkpoint-every=2", "--warmup-steps=2", "--threads=1"]


class Broken(Exception):
    """An error: a run did not behave as expected."""


@dataclass
class Result:
    code: int
    out: str
    err: str


@dataclass
class Report:
    """The findings of a mode: figures, which the last line shows, and failures."""

    figures: dict = field(default_factory=dict)
    problems: dict = field(default_factory=dict)  # number of occurrences by message

    def count(self, name: str, number: int = 1) -> None:
        self.figures[name] = self.figures.get(name, 0) + number

    def fail(self, place: str, problem) -> None:
        """Prints a failure, unless the same problem was found at another place."""
        problem = str(problem)
        self.problems[problem] = self.problems.get(problem, 0) + 1
        if self.problems[problem] == 1:
            print(f"crash_test: failed: {place}: {problem}", flush=True)

    def end(self, mode: str) -> int:
        """Prints how often problems were found, and the figures. Returns the exit code."""
        for problem, times in self.problems.items():
            if times > 1:
                print(f"crash_test: found {times} times: {problem}")
        figures = ", ".join(f"{number} {name}" for name, number in self.figures.items())
        failures = sum(self.problems.values())
        print(f"crash_test: {mode}: {figures}, {failures} failed", flush=True)
        return 1 if failures else 0


def write_data(folder: Path) -> None:
    """Writes the data of all trainings."""
    words = "the quick brown fox jumps over a lazy dog while seven zebras watch from under an old oak".split()
    lines = [" ".join(words[(7 * i + 3 * j * j) % len(words)] for j in range(4 + i % 7)) for i in range(300)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    source, target, labelled, pictures = [], [], [], []
    for i in range(40):
        letters = ["abcdefg"[i % 7]] + ["klmno"[(i + j) % 5] for j in range(i % 9)]
        source.append(" ".join(letters))
        target.append(" ".join(reversed(letters)))
        labelled.append(f"{'a good' if i % 2 else 'the bad'} {source[-1]}\t{'pos' if i % 2 else 'neg'}")
        stripes = [9 if (pixel if i % 2 else pixel // 4) % 2 else 1 for pixel in range(16)]
        pictures.append(",".join(map(str, stripes + [i % 2])))
    for name, rows in (("a.txt", source), ("b.txt", target), ("labelled.tsv", labelled), ("pictures.csv", pictures)):
        (folder / name).write_text("\n".join(rows) + "\n")


@dataclass
class Training:
    """One kind of training, in a folder with its data."""

    name: str
    weft: str
    folder: Path
    extra: list = field(default_factory=list)  # more flags; a flag replaces an earlier flag of the same name

    def command(self, out: str, *more: str) -> list:
        flags = {}
        for flag in [*_COMMON, *FLAGS[self.name], *self.extra, *more]:
            flags[flag.split("=")[0]] = flag
        return [self.weft, "train", self.name, *flags.values(), f"--out={out}"]

    def run(self, out: str, *more: str, prefix=(), **options) -> Result:
        """Runs the training until it ends. `prefix`: a command that runs it, such as strace."""
        return run([*prefix, *self.command(out, *more)], self.folder, **options)

    def start(self, out: str, *more: str) -> subprocess.Popen:
        return subprocess.Popen(self.command(out, *more), cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def path(self, out: str) -> Path:
        return self.folder / out

    def remove(self, out: str) -> None:
        shutil.rmtree(self.path(out), ignore_errors=True)

    def undisturbed(self, *more: str) -> dict:
        """Trains without disturbance in the folder "whole", and returns its contents."""
        self.remove("whole")
        result = self.run("whole", *more)
        if result.code != 0:
            raise Broken(f"train {self.name} fails without a disturbance: {result.err.strip()}")
        return contents(self.path("whole"))

    def complete(self, out: str, *more: str) -> Result:
        """Continues the run in `out` to its end, as a user would. If the run has not begun, begins it."""
        begun = self.path(out)
        result = self.run(out, *(["--resume"] if begun.exists() else []), *more)
        if result.code == 2 and "no run to resume" in result.err:
            result = self.run(out, *more)
        if result.code != 0:
            raise Broken(f"exit code {result.code}: {result.err.strip()}")
        return result

    def complete_and_compare(self, out: str, whole: dict, *more: str) -> Result:
        """Continues the run in `out`, and expects the contents of an undisturbed run and nothing else."""
        result = self.complete(out, *more)
        differences = compare(contents(self.path(out)), whole)
        if differences:
            raise Broken("; ".join(differences))
        return result


def run(command: list, folder: Path, **options) -> Result:
    try:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT,
                              check=False, **options)
    except subprocess.TimeoutExpired as error:
        raise Broken(f"hangs: {' '.join(command)}") from error
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def contents(folder: Path) -> dict:
    """Returns the bytes of each file without times and speeds, by path. Folders have the value None."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir():
            found[name] = None
        elif path.name == "metrics.jsonl":
            found[name] = _without_times(path.read_text(errors="replace"))
        elif "tfevents" in path.name:
            found[name] = _event_fields(path.read_bytes())
        else:
            found[name] = path.read_bytes()
    return found


def compare(found: dict, wanted: dict) -> list:
    """Returns a sentence for each difference."""
    differences = [f"{name} is missing" for name in wanted if name not in found]
    differences += [f"{name} is left over" for name in found if name not in wanted]
    return differences + [f"{name} differs" for name in wanted if name in found and found[name] != wanted[name]]


def _without_times(text: str) -> list:
    lines = []
    for line in text.splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            lines.append(line)
            continue
        measured = ("seconds", "tokens_per_second", "memory")
        lines.append({key: value for key, value in values.items() if key not in measured})
    return lines


def _fields(message: bytes):
    """Yields (number, value) of each field of a protocol buffer. Numbers of 4 and 8 bytes are bytes."""
    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    at = 0
    while at < len(message):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
            continue
        size = number() if key & 7 == 2 else 8 if key & 7 == 1 else 4
        yield key >> 3, message[at:at + size]
        at += size


def _event_fields(data: bytes) -> list:
    """Returns the events of an event file without wall times, and without the values of speed and memory."""
    events, at = [], 0
    while at + 12 <= len(data):
        size = struct.unpack_from("<Q", data, at)[0]
        event = [each for each in _fields(data[at + 12:at + 12 + size]) if each[0] != 1]
        for i, (key, value) in enumerate(event):
            if key == 5:  # a summary; its values begin with their tag
                values = [dict(_fields(each)) for _, each in _fields(value)]
                event[i] = [each if each[1] not in (b"tokens_per_second", b"memory") else each[1] for each in values]
        events.append(event)
        at += 12 + size + 4
    return events


def checkpoint_steps(folder: Path) -> list:
    """Returns the steps of the checkpoints that have their final name, newest first."""
    try:
        return sorted((int(name) for name in os.listdir(folder / "checkpoints") if name.isdigit()), reverse=True)
    except FileNotFoundError:
        return []
