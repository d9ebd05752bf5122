#!/usr/bin/env python3
"""Packs ONNX's node cases (onnx==1.22.0, Apache-2.0) into tests/onnx/cases.bin.gz, which onnx_test runs.

    pip install onnx==1.22.0
    tests/onnx/convert.py onnx-1.22.0-node-subset.tar.gz tests/onnx/cases.bin.gz

The archive holds a folder for each case, as in onnx/backend/test/data/node. tests/cases/pack.py describes the file.
"""
import pathlib
import sys
import tarfile

import onnx
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from pack import Data, Skip, write  # noqa: E402


def attribute(a, data):
    value = onnx.helper.get_attribute_value(a)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return data.add(numpy_helper.to_array(value))
    if isinstance(value, onnx.GraphProto):
        raise Skip("a graph as attribute")
    return list(value) if hasattr(value, "__len__") and not isinstance(value, str) else value


def tensor(content, data):
    value = onnx.TensorProto()
    value.ParseFromString(content)
    return data.add(numpy_helper.to_array(value))


def case(name, files, data):
    model = onnx.load_from_string(files["model.onnx"])
    graph = model.graph
    op = graph.node[0].op_type
    result = {"name": name, "op": op, "opset": model.opset_import[0].version}
    try:
        if len(graph.node) != 1:
            raise Skip("more than one node")
        for value in list(graph.input) + list(graph.output):
            if not value.type.HasField("tensor_type"):
                raise Skip("sequences")
        node = graph.node[0]
        sides = {}
        for side, names, values in (("inputs", node.input, graph.input), ("outputs", node.output, graph.output)):
            indices = {value.name: i for i, value in enumerate(values)}
            kind = side[:-1]
            sides[side] = [tensor(files[f"test_data_set_0/{kind}_{indices[n]}.pb"], data) if n in indices else None
                           for n in names]
        result["attributes"] = {a.name: attribute(a, data) for a in node.attribute}
        result.update(sides)
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
