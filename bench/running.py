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

    A probe (bench/probe.cc) measures multiply-adds and read bandwidth before the first round and after each one. A round
    counts if both figures of the probes before and after it reach MIN_SHARE of the best ones of the run. Rounds go on until
    enough count, or until MAX_FACTOR times as many have passed. Then the rounds with the best probes are taken.

        rounds = Rounds(flags, flags.threads)
        while rounds.go_on():
            ...  # a turn of each program, which appends a result to a list
        rounds.report("gpt2-f32")
        results = [result for result, counts in zip(results, rounds.counted()) if counts]
    """

    MIN_SHARE, MAX_FACTOR = 0.95, 4

    def __init__(self, flags, threads):
        self.wanted, self.program, self.probes, self.process = flags.rounds, flags.probe, [], None
        if not flags.probe:
            return
        try:
            self.process = subprocess.Popen([flags.probe, f"--threads={threads}"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        except OSError as error:
            raise Failed(f"{flags.probe}: {error}") from error

    def measure(self):
        """Returns the figures of the probe, or none if there is no probe."""
        if not self.process:
            return {}
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError) as error:
            raise Failed(f"{self.program}: it did not answer with JSON: {error}") from error

    def go_on(self):
        """Ends a round, if one has begun, and tells whether another one is needed."""
        self.probes.append(self.measure())
        done = len(self.probes) - 1
        if sum(self.good()) < self.wanted and done < (self.MAX_FACTOR if self.process else 1) * self.wanted:
            return True
        if self.process:
            self.process.stdin.close()
            self.process.wait()
        return False

    def quality(self):
        """Returns for each round the lowest share of the best speed that a probe before or after it reached."""
        best = {key: max(probe[key] for probe in self.probes) for key in self.probes[0]}
        shares = [min([probe[key] / best[key] for key in best if best[key] > 0], default=1) for probe in self.probes]
        return [min(pair) for pair in zip(shares, shares[1:])]

    def good(self):
        return [quality >= self.MIN_SHARE for quality in self.quality()]

    def counted(self):
        """Returns for each round whether it counts."""
        if sum(self.good()) >= self.wanted:
            return self.good()
        least = sorted(self.quality(), reverse=True)[:self.wanted][-1]
        return [quality >= least for quality in self.quality()]

    def report(self, row):
        if self.process:
            lowest = {key: min(probe[key] for probe in self.probes) / max(probe[key] for probe in self.probes)
                      for key in self.probes[0]}
            print(f"{row}: {sum(self.good())} of {len(self.quality())} rounds ran at {self.MIN_SHARE:.0%} of the best speed "
                  f"or above; the slowest probe: " + ", ".join(f"{key} {share:.0%}" for key, share in lowest.items()),
                  file=sys.stderr)


def add_rounds(parser):
    """Adds the flags of Rounds."""
    parser.add_argument("--rounds", type=whole_number(1), default=3,
                        help="number of turns of each program that must count; default: 3")
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
