"""What the scripts of this folder have in common: running a program that prints JSON, and flags that name files."""
import argparse
import json
import subprocess


class Failed(Exception):
    pass


def run(command):
    """The object that a program prints in its last line."""
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode == 0:
            return json.loads(result.stdout.splitlines()[-1])
        problem = f"exit code {result.returncode}: {result.stderr.strip()[-2000:]}"
    except OSError as error:
        problem = str(error)
    except (IndexError, json.JSONDecodeError):
        problem = "it printed no JSON"
    raise Failed(f"{' '.join(map(str, command))}\n  {problem}")


def output_file(path):
    """A flag's file, which can be written: said before anything is measured."""
    try:
        with open(path, "a", encoding="utf-8"):
            return path
    except OSError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def whole_number(least):
    """A flag's value, of at least so much."""
    def parse(text):
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least {least}")
        return int(text)
    return parse
