#!/usr/bin/env python3
"""Compares Weft's tokenizers with Hugging Face's, for the tokenizer.json of each published family.

Usage: python3 compare.py FAMILIES TOKENIZE_LINES TEXT...    (tokenizers 0.23.3)

`FAMILIES` is the folder that families.py wrote, and `TOKENIZE_LINES` the program //tests/tokenizers:tokenize_lines. Takes
the first 5,000 lines of each text, which gzip may have compressed, and 500 odd lines (odd_lines.py). Compares the ids
with and without special tokens, the texts that they are decoded to, and the text that they are decoded to one by one.
"""
import gzip
import json
import os
import subprocess
import sys

from tokenizers import Tokenizer

from odd_lines import odd_lines

LINES = 5000


def first_lines(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for line, _ in zip(file, range(LINES))]


def differences(folder, program, lines):
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    run = subprocess.run([program, folder], input="".join(json.dumps(line) + "\n" for line in lines),
                         capture_output=True, text=True, check=True)
    found = {}
    for line, row in zip(lines, map(json.loads, run.stdout.rstrip("\n").split("\n")), strict=True):
        ids, wrapped = tokenizer.encode(line, add_special_tokens=False).ids, tokenizer.encode(line).ids
        text = tokenizer.decode(ids)
        wanted = {"ids": ids, "wrapped": wrapped, "shown": text, "streamed": text,
                  "all": tokenizer.decode(wrapped, skip_special_tokens=False)}
        for key, value in wanted.items():
            if row.get(key) != value:
                found.setdefault(key, []).append((line, row.get(key, row.get("error")), value))
    return found


def main():
    families, program, texts = sys.argv[1], sys.argv[2], sys.argv[3:]
    lines = [line for path in texts for line in first_lines(path)] + odd_lines()
    failed = False
    for name in sorted(os.listdir(families)):
        found = differences(os.path.join(families, name), program, lines)
        failed = failed or bool(found)
        print(f"{name}: {len(lines)} lines, {sum(map(len, found.values()))} differences", flush=True)
        for key, rows in found.items():
            print(f"  {key} of {len(rows)} lines, such as {rows[0][0]!a}: {rows[0][1]!a}, wanted {rows[0][2]!a}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
