"""Trains on several ranks through tools/launch, and compares the results with those of one process."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
LAUNCH = str(ROOT / "tools" / "launch")
MICRO_BATCHES = 8

# The number of steps of each training, and its flags. gpt is the default model on the default text.
STEPS = {"gpt": 300, "translate": 30, "bert": 30}
_FLAGS = {
    "gpt": ["--eval-batches=4", "--sample-length=100"],
    "translate": ["--source=train.de.gz", "--target=train.en.gz", "--validation-source=val.de.gz",
                  "--validation-target=val.en.gz", "--vocabulary=2000", "--batch=16"],
    "bert": ["--vocabulary=2000", "--batch=16", "--eval-batches=4"],
}
_RESULTS = ("metrics.jsonl", "model.safetensors")  # of a run's folder
_TIMES = ("seconds", "tokens_per_second", "memory")  # of a line of metrics.jsonl


class Failed(Exception):
    """An error: a program ended with an unexpected exit code, or did not end."""


def data_problem(kind: str):
    """Returns an error message if the data of this kind of training are missing, and None otherwise."""
    if kind != "translate" or (_multi30k() / "train.de.gz").is_file():
        return None
    return "translate needs Multi30k: set WEFT_DATA to a folder that contains multi30k/train.de.gz"


def _multi30k() -> Path:
    return Path(os.environ.get("WEFT_DATA", "")) / "multi30k"


def flags(kind: str, steps: int) -> list:
    """Returns the flags of a training with evaluations and checkpoints, without --out."""
    own = []
    for flag in _FLAGS[kind]:
        name, _, value = flag.partition("=")
        own.append(f"{name}={_multi30k() / value}" if value.endswith(".gz") else flag)
    every = max(1, steps // 3)
    return [kind, *own, f"--steps={steps}", f"--micro-batches={MICRO_BATCHES}", f"--eval-every={every}",
            f"--checkpoint-every={every}", "--log-every=1"]


class Runs:
    """Runs of `weft train` in a folder of their own. `weft` is the path of the program."""

    def __init__(self, weft: str, folder: Path):
        self.weft = weft
        self.folder = folder

    def path(self, out: str) -> Path:
        return self.folder / out

    def remove(self, out: str) -> None:
        shutil.rmtree(self.path(out), ignore_errors=True)

    def command(self, arguments: list, out: str, ranks: int = 0, launch=()) -> list:
        """Returns the command of a training on `ranks` ranks, or on one process without MPI if `ranks` is 0."""
        program = [LAUNCH, f"--ranks={ranks}", *launch, "--"] if ranks > 0 else [self.weft]
        return [*program, "train", *arguments, f"--out={self.path(out)}"]

    def start(self, command: list) -> subprocess.Popen:
        """Starts a command, whose stderr is a pipe of text."""
        # Open MPI puts sockets into TMPDIR, and the path of a socket has at most 107 bytes.
        environment = dict(os.environ, WEFT=self.weft, TMPDIR="/tmp")
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")

    def run(self, command: list) -> float:
        """Runs a command to its end, and returns its duration in seconds."""
        begin = time.monotonic()
        process = self.start(command)
        error = process.communicate()[1]
        if process.returncode != 0:
            raise Failed(f"exit code {process.returncode}: {last_error(error)}")
        return time.monotonic() - begin

    def names(self, out: str) -> set:
        """Returns the paths of all files and folders of a run."""
        return {str(path.relative_to(self.path(out))) for path in self.path(out).rglob("*")}

    def metrics(self, out: str) -> list:
        """Returns the lines of metrics.jsonl without times."""
        return _content(self.path(out) / "metrics.jsonl")

    def results(self, out: str) -> dict:
        """Returns the weights and the metrics, by the names of their files. Metrics are lines without times."""
        return {name: _content(self.path(out) / name) for name in _RESULTS}


def last_error(text: str) -> str:
    """Returns the last line of `text` that is not progress."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("step ")]
    return lines[-1] if lines else "no message"


def _content(path: Path):
    if path.suffix != ".jsonl":
        return path.read_bytes()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in _TIMES} for line in lines]


def difference(found: dict, wanted: dict) -> str:
    """Describes the first differences between the results of two runs. Returns "" if they are equal."""
    texts = []
    for name, value in wanted.items():
        if found[name] == value:
            continue
        if name != "metrics.jsonl":
            texts.append(f"{name} differs")
        elif len(found[name]) != len(value):
            texts.append(f"{name} has {len(found[name])} lines, wanted {len(value)}")
        else:
            line, other = next(pair for pair in zip(found[name], value) if pair[0] != pair[1])
            keys = [key for key in {**line, **other} if line.get(key) != other.get(key)]
            texts.append(f"{name} differs first at step {line['step']} in {', '.join(keys)}")
    return "; ".join(texts)


def find_weft(path) -> str:
    """Returns the path of the program: `path`, the environment variable WEFT or bazel-bin/apps/weft."""
    weft = Path(path or os.environ.get("WEFT") or ROOT / "bazel-bin" / "apps" / "weft").resolve()
    if not weft.is_file():
        raise Failed(f"there is no program {weft}; run `bazel build -c opt //apps:weft`, or name it with --weft")
    return str(weft)


class Folder:
    """A folder for runs: `path`, or a temporary folder if `path` is None."""

    def __init__(self, path):
        self._temporary = None if path else tempfile.TemporaryDirectory(prefix="weft-ranks-")
        self._path = Path(path or self._temporary.name).absolute()

    def __enter__(self) -> Path:
        self._path.mkdir(parents=True, exist_ok=True)
        return self._path

    def __exit__(self, *_) -> None:
        if self._temporary:
            self._temporary.cleanup()
