"""Runs the cells of a notebook in their order as one program, and checks that the file is a notebook without outputs."""
import json
import os
import sys


def main():
    path = os.path.abspath(sys.argv[1])
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
    if notebook["nbformat"] != 4:
        sys.exit(f"{path}: nbformat {notebook['nbformat']}, wanted 4")
    names = {"__name__": "__main__"}
    ran = 0
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        if cell["outputs"] or cell["execution_count"] is not None:
            sys.exit(f"{path}: cell {number} has outputs; clear them before a commit")
        exec(compile("".join(cell["source"]), f"{path}, cell {number}", "exec"), names)
        ran += 1
    if ran < 15:
        sys.exit(f"{path}: {ran} cells of code, wanted at least 15")


if __name__ == "__main__":
    main()
