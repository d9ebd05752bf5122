"""Weft trains and runs Transformers on CPUs.

    tape = weft.Tape()
    x = tape.input("x", [8, 64])
    y = weft.relu(weft.models.linear("hidden", x, 128))
    runner = weft.Runner(weft.compile(tape, fetch=[y]))
    print(runner.run({x: array})[y])

The ops are functions of this module, with the names of ops/ops.h in small letters. Arrays are NumPy's.
"""
from weft import _load
from weft._weft import *  # noqa: F403
from weft._weft import __version__
from weft.use import Model, load, train
from weft import initializers, models, optimizers


def from_dlpack(array):
    """Returns a NumPy array that shares the bytes of an array of another library, such as PyTorch's."""
    import numpy

    return numpy.from_dlpack(array)
