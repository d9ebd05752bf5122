"""Writes tests/torch_files: files of torch.save, what is in them as safetensors, and files that must be refused.

    python3 -m pip install torch safetensors
    python3 tests/torch_files/draw.py
"""
import collections
import io
import json
import os
import pickle
import zipfile

import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))


def path(name):
    return os.path.join(HERE, name)


def kinds():
    """Returns tensors of all dtypes that are read, with views of every kind."""
    torch.manual_seed(1)
    table = torch.randn(6, 4)
    return collections.OrderedDict(
        f32=torch.randn(2, 3), f64=torch.randn(3).double(), f16=torch.randn(5).half(), bf16=torch.randn(5).bfloat16(),
        i64=torch.tensor([3, -(2**31), 2**31 - 1]), i32=torch.tensor([[7, -7]], dtype=torch.int32),
        flags=torch.tensor([True, False, True]), scalar=torch.tensor(2.5), none=torch.zeros(0, 4),
        table=table, tied=table, transposed=table.t(), rows=table[2:5], column=table[:, 1], corner=table[1:3, 1:3],
        permuted=torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1), odd=torch.arange(7, dtype=torch.bfloat16)[1:].half(),
        one=torch.randn(3, 1, 2).transpose(0, 1), parameter=torch.nn.Parameter(torch.randn(3)))


def unread():
    return collections.OrderedDict(w=torch.ones(2), u8=torch.ones(2, 2, dtype=torch.uint8), u16=torch.ones(3).to(torch.uint16),
                                   c64=torch.ones(2, dtype=torch.complex64), step=5)


def zipped(name, pickled, method=zipfile.ZIP_STORED, entries=()):
    with zipfile.ZipFile(path(name), "w", method) as file:
        for entry, contents in [("x/data.pkl", pickled), ("x/data/0", b"\0" * 16), *entries]:
            file.writestr(zipfile.ZipInfo(entry), contents, compress_type=method)


class Calls:
    """Is pickled as a call of a function, which Python's reader would execute."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def main():
    state = kinds()
    torch.save(state, path("kinds.bin"))
    save_file({name: tensor.detach().clone().contiguous() for name, tensor in state.items()}, path("kinds.safetensors"))
    torch.save({"epoch": 3, "lr": 1e-4, "state_dict": state, "betas": [0.9, (1, 10**12)]}, path("state_dict.pt"))
    torch.save({"model": state, "optimizer": {"state": {0: {"step": torch.tensor(4.0)}}, "groups": [{"lr": 0.1}]},
                "iter_num": 300}, path("model.pt"))
    torch.save(unread(), path("unread.bin"))
    halves = [list(state.items())[:9], list(state.items())[9:]]
    weight_map = {}
    for i, half in enumerate(halves):
        name = "pytorch_model-%05d-of-00002.bin" % (i + 1)
        torch.save(collections.OrderedDict(half), path(name))
        weight_map.update({key: name for key, _ in half})
    with open(path("pytorch_model.bin.index.json"), "w") as file:
        json.dump({"metadata": {"total_size": 0}, "weight_map": weight_map}, file)
    torch.save(state["f32"], path("old.bin"), _use_new_zipfile_serialization=False)
    torch.save(state["f32"], path("no_dictionary.bin"))
    torch.save(collections.OrderedDict(big=torch.tensor([2**31])), path("big_i64.bin"))
    torch.save(collections.OrderedDict(wide=torch.ones(1).expand(1000)), path("expanded.bin"))
    torch.save(collections.OrderedDict(negated=torch.tensor([1j]).conj().imag), path("negated.bin"))
    torch.save(torch.nn.Linear(1, 1), path("module.bin"))
    zipped("calls_system.bin", pickle.dumps({"w": Calls(os.system, "touch /tmp/weft_executed")}, protocol=2))
    zipped("calls_eval.bin", pickle.dumps({"w": Calls(eval, "1/0")}, protocol=2))
    zipped("no_storage.bin", pickle.dumps(
        {"w": Calls(torch._utils._rebuild_tensor_v2, 2**30, 0, (1,), (1,), False, collections.OrderedDict())}, protocol=2))
    zipped("protocol_4.bin", pickle.dumps({"w": "x"}, protocol=4))
    zipped("compressed.bin", pickle.dumps({}, protocol=2), zipfile.ZIP_DEFLATED)
    zipped("big_endian.bin", pickle.dumps({}, protocol=2), entries=[("x/byteorder", b"big")])
    with zipfile.ZipFile(path("no_pickle.bin"), "w") as file:
        file.writestr("x/version", "3")


main()
