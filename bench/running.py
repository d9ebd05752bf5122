"""What the scripts of this folder share: running a program that prints JSON, and the types of flags."""
import argparse
import json
import subprocess


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
