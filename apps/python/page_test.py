"""Runs the blocks of Python of a page, one after the other, as one program in an empty folder."""
import os
import re
import sys
import tempfile


def main():
    page = os.path.abspath(sys.argv[1])
    with open(page, encoding="utf-8") as file:
        text = file.read()
    os.chdir(tempfile.mkdtemp())
    names = {"__name__": "page"}
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], page, "exec"), names)
    if len(blocks) < 4:
        sys.exit(f"{page}: {len(blocks)} blocks of Python, wanted at least 4")


if __name__ == "__main__":
    main()
