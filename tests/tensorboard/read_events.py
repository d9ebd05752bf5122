#!/usr/bin/env python3
"""Prints what the package `tensorboard` reads from an event file, as one JSON object.

    PYTHON read_events.py FOLDER [VALUES]

PYTHON is the interpreter that tools/fetch_tensorboard prints. FOLDER has the event file. VALUES is a file of 32-bit
floats; the key "expected" then has the histogram that the package itself makes of them.
"""

import json
import sys

import numpy
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.histogram import summary_v2
from tensorboard.util import tensor_util


def main() -> None:
    events = event_accumulator.EventAccumulator(
        sys.argv[1],
        size_guidance={event_accumulator.SCALARS: 0, event_accumulator.TENSORS: 0},
    )
    events.Reload()
    result = {"scalars": {}, "tensors": {}}
    for tag in events.Tags()["scalars"]:
        result["scalars"][tag] = [[each.step, "nan" if each.value != each.value else each.value] for each in events.Scalars(tag)]
    for tag in events.Tags()["tensors"]:
        plugin = events.SummaryMetadata(tag).plugin_data.plugin_name
        for each in events.Tensors(tag):
            value = tensor_util.make_ndarray(each.tensor_proto)
            if value.dtype == object:
                value = numpy.array(value.item().decode("utf-8"))
            result["tensors"].setdefault(tag, []).append([plugin, each.step, value.tolist()])
    if len(sys.argv) > 2:
        values = numpy.fromfile(sys.argv[2], dtype=numpy.float32)
        expected = summary_v2.histogram_pb("expected", values)
        result["expected"] = tensor_util.make_ndarray(expected.value[0].tensor).tolist()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
