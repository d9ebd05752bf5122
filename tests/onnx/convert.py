#!/usr/bin/env python3
"""Packs ONNX's node cases (onnx==1.22.0, Apache-2.0) into tests/onnx/cases.bin.gz, which onnx_test runs.

    pip install onnx==1.22.0
    tests/onnx/convert.py onnx-1.22.0-node-subset.tar.gz tests/onnx/cases.bin.gz

The archive holds a folder for each case, as in onnx/backend/test/data/node. tests/cases/pack.py describes the file; a
case also has the bytes of its model.onnx, whose inputs and outputs are those of the case.
"""
import base64
import pathlib
import sys
import tarfile

import onnx
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from pack import Data, Skip, write  # noqa: E402


def tensor(content, data):
    value = onnx.TensorProto()
    value.ParseFromString(content)
    return data.add(numpy_helper.to_array(value))


def case(name, files, data):
    model = onnx.load_from_string(files["model.onnx"])
    graph = model.graph
    op = graph.node[0].op_type
    result = {"name": name, "op": op, "opset": model.opset_import[0].version, "attributes": {},
              "model": base64.b64encode(files["model.onnx"]).decode()}
    try:
        for side, values in (("inputs", graph.input), ("outputs", graph.output)):
            if any(not value.type.HasField("tensor_type") for value in values):
                raise Skip("sequences")
            kind = side[:-1]
            result[side] = [tensor(files[f"test_data_set_0/{kind}_{i}.pb"], data) for i in range(len(values))]
    except Skip as reason:
        return {"name": name, "op": op, "skip": str(reason)}
    return result


def main(archive, out):
    folders = {}
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if member.isfile():
                folder, _, file = member.name.partition("/")
                folders.setdefault(folder, {})[file] = tar.extractfile(member).read()
    data = Data()
    cases = [case(name, files, data) for name, files in sorted(folders.items()) if "model.onnx" in files]
    write(out, "onnx==1.22.0, onnx/backend/test/data/node, Apache-2.0", cases, data)
    skipped = sum("skip" in c for c in cases)
    print(f"{len(cases)} cases, {skipped} to skip")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
