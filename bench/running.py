"""What the scripts of this folder share: running a program that prints JSON, rounds that count, and types of flags."""
import argparse
import json
import pathlib
import subprocess
import sys

PROBE = pathlib.Path(__file__).resolve().parent.parent / "bazel-bin" / "bench" / "probe"


class Failed(Exception):
    pass


def run(command, parse=lambda text: json.loads(text.splitlines()[-1])):
    """Runs a program and returns what `parse` reads from its output: by default, the object in the last line."""
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode == 0:
            return parse(result.stdout)
        problem = f"exit code {result.returncode}: {result.stderr.strip()[-2000:]}"
    except OSError as error:
        problem = str(error)
    except (IndexError, json.JSONDecodeError):
        problem = "it printed no JSON"
    raise Failed(f"{' '.join(map(str, command))}\n  {problem}")


class Rounds:
    """Rounds of turns, of which only those count that began and ended at the machine's full speed.

    The probe (bench/probe.cc) decides that. Without a probe, every round counts.

        rounds = Rounds(flags, flags.threads)
        while rounds.go_on():
            ...  # a turn of each program, which appends a result to a list
        rounds.report("gpt2-f32")
        results = [result for result, counts in zip(results, rounds.counted()) if counts]
    """

    def __init__(self, flags, threads):
        self.wanted, self.program, self.begun, self.answer, self.process = flags.rounds, flags.probe, 0, {}, None
        if not flags.probe:
            return
        try:
            self.process = subprocess.Popen([flags.probe, f"--threads={threads}", f"--rounds={flags.rounds}"],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        except OSError as error:
            raise Failed(f"{flags.probe}: {error}") from error

    def go_on(self):
        """Ends a round, if one has begun, and tells whether another one is needed."""
        if not self.process:
            self.begun += 1
            return self.begun <= self.wanted
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            self.answer = json.loads(self.process.stdout.readline())
            go_on = self.answer["go_on"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Failed(f"{self.program}: it did not answer as bench/probe.cc does: {error!r}") from error
        if not go_on:
            self.process.stdin.close()
            self.process.wait()
        return go_on

    def counted(self):
        """Returns for each round whether it counts."""
        return self.answer.get("counted", [True] * self.wanted)

    def report(self, row):
        if self.process:
            print(f"{row}: {self.answer['report']}", file=sys.stderr)


def add_rounds(parser):
    """Adds the flags of Rounds."""
    parser.add_argument("--rounds", type=whole_number(1), default=5,
                        help="number of turns of each program that must count; default: 5")
    parser.add_argument("--probe", default=PROBE, metavar="PATH",
                        help="measures the machine's speed between rounds; '': all rounds count")


def output_file(path):
    """The type of a flag that names an output file. Checks before anything is measured that the file can be written."""
    try:
        with open(path, "a", encoding="utf-8"):
            return path
    except OSError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def whole_number(low):
    """The type of a flag whose value is at least `low`."""
    def parse(text):
        if not text.isdecimal() or int(text) < low:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least {low}")
        return int(text)
    return parse


def words(known):
    """The type of a flag whose value is a comma-separated list of words in `known`."""
    def parse(text):
        for word in text.split(","):
            if word not in known:
                raise argparse.ArgumentTypeError(f"'{word}' is not one of {', '.join(known)}")
        return text.split(",")
    return parse
