"""Keyword arguments as options of the program `weft`."""
import json
import os
from typing import Any, Dict

from weft import _weft


def texts(options: Dict[str, Any]) -> Dict[str, str]:
    """Returns the texts of options as a command line has them: {"learning-rate": "0.001"} for learning_rate=0.001.

    Values are texts, numbers, True or False, paths, lists of these, or dicts. None leaves an option out.
    """
    return {name.replace("_", "-"): _text(name, value) for name, value in options.items() if value is not None}


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict) or (isinstance(value, (list, tuple)) and _weft._option(name, ["stop"])):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return ",".join(_text(name, each) for each in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
