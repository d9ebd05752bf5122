"""Runs what //bench:encode_bench measures in ONNX Runtime, with the same sizes and random weights, and prints JSON.

    python3 bench/peers/onnxruntime_encode.py --batch=32 --length=128 --precision=q8_0

The model is exported by PyTorch and fused by ONNX Runtime's optimizer for BERT. Precision q8_0 is its dynamic
quantization to 8 bits. Needs onnx, onnxruntime, torch and transformers of PyPI.
"""
import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.optimizer import optimize_model
from transformers import BertConfig, BertModel

HEADS, WIDTH, VOCABULARY = 12, 384, 30522


class Encoder(torch.nn.Module):
    """The last hidden states of a BERT, as the only output."""

    def __init__(self):
        super().__init__()
        self.model = BertModel(BertConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=6,
                                          num_attention_heads=HEADS, intermediate_size=4 * WIDTH)).eval()

    def forward(self, tokens):
        return self.model(tokens)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--precision", choices=("f32", "q8_0"), default="f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=10)
    flags = parser.parse_args()
    torch.manual_seed(0)
    tokens = torch.randint(0, VOCABULARY, (flags.batch, flags.length))
    with tempfile.TemporaryDirectory() as folder:
        path, fused = f"{folder}/encoder.onnx", f"{folder}/fused.onnx"
        with open(os.devnull, "w", encoding="utf-8") as null:  # the exporter prints to standard output
            stdout, sys.stdout = sys.stdout, null
            torch.onnx.export(Encoder(), (tokens,), path, input_names=["tokens"], output_names=["y"], dynamo=False,
                              opset_version=17)
            optimize_model(path, "bert", num_heads=HEADS, hidden_size=WIDTH).save_model_to_file(fused)
            if flags.precision == "q8_0":
                quantize_dynamic(fused, path, weight_type=QuantType.QInt8,
                                 extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
                fused = path
            sys.stdout = stdout
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = flags.threads
        session = onnxruntime.InferenceSession(fused, options)
        kind = numpy.int64 if "int64" in session.get_inputs()[0].type else numpy.int32
        feed, seconds = {session.get_inputs()[0].name: tokens.numpy().astype(kind)}, []
        for repeat in range(flags.repeats + 1):
            start = time.perf_counter()
            session.run(None, feed)
            if repeat > 0:  # the first repeat allocates memory
                seconds.append(time.perf_counter() - start)
    print(json.dumps({"texts_per_second": flags.batch / statistics.median(seconds),
                      "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


main()
