"""Writes the type stubs of the compiled module weft._weft, from the signatures that pybind11 gives its functions.

    make_stubs.py _weft.so _weft/__init__.pyi _weft/_models.pyi ...
"""
import contextlib
import importlib.util
import re
import sys


def signatures(function):
    """Yields (parameters, result, documentation) of each overload."""
    text = re.sub(r"weft\._weft\.|_(models|optimizers)\.", "", function.__doc__ or "")
    name = function.__name__
    if "Overloaded function." in text:
        parts = re.split(rf"\n\d+\. (?={re.escape(name)}\()", text)[1:]
    else:
        parts = [text]
    for part in parts:
        first, _, documentation = part.partition("\n")
        match = re.match(rf"{re.escape(name)}\((.*)\) -> (.+)$", first)
        yield (parameters(match[1]), type_of(match[2]), documentation.strip()) if match else ("*args: Any", "Any", part)


def type_of(text):
    return re.sub(r"\b(object|handle)\b", "Any", text).replace("function", "Callable[..., Any]")


def parameters(text):
    """Returns a list of parameters, where defaults are `...`."""
    shown = []
    for each in re.findall(r"(?:[^,\[\](){}]|\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\]|\([^)]*\)|\{[^}]*\})+", text):
        declared, _, default = each.strip().partition(" = ")
        shown.append(type_of(declared) + (" = ..." if default else ""))
    return ", ".join(shown)


def write(name, function, indent, overloaded=False):
    found = list(signatures(function))
    for shown, result, documentation in found:
        if len(found) > 1:
            print(f"{indent}@overload")
        print(f"{indent}def {name}({shown}) -> {result}:")
        if documentation:
            print(f'{indent}    """{documentation}"""'.replace("\\", "\\\\"))
        print(f"{indent}    ...")


def write_class(name, kind):
    print(f"class {name}:")
    print(f'    """{kind.__doc__ or name}"""')
    for member, value in vars(kind).items():
        if isinstance(value, property):
            print(f"    @property\n    def {member}(self) -> Any: ...")
            if value.fset is not None:
                print(f"    @{member}.setter\n    def {member}(self, value: Any) -> None: ...")
        elif callable(value) and value.__doc__ and (not member.startswith("__") or "->" in value.__doc__):
            write(member, value, "    ")


def write_module(module, submodules):
    print("from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, overload\n")
    if submodules:
        print(f"from weft._weft import {', '.join(submodules)}\n\n__version__: str\n")
    else:
        print("from weft._weft import Initializer, Tape, Var\n")
    for name, value in vars(module).items():
        if isinstance(value, type):
            write_class(name, value)
        elif callable(value) and not isinstance(value, type(sys)):
            write(name, value, "")


def main():
    specification = importlib.util.spec_from_file_location("weft._weft", sys.argv[1])
    module = importlib.util.module_from_spec(specification)
    submodules = {name: value for name, value in vars(module).items() if isinstance(value, type(sys))}
    for path in sys.argv[2:]:
        name = path.split("/")[-1].removesuffix(".pyi")
        with open(path, "w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
            write_module(submodules.get(name, module), [] if name in submodules else sorted(submodules))


if __name__ == "__main__":
    main()
