#!/usr/bin/env python3
"""Exports small models of PyTorch and transformers into tests/onnx/models.bin.gz, which models_test imports.

    pip install torch==2.15.0 transformers==5.24.0 onnx==1.23.2 onnxscript==0.7.2
    tests/onnx/draw.py

Each case is one model that torch.onnx.export wrote, with dynamo or, where it still can, without. Inputs have other sizes
than those for which the model was exported. The outputs are PyTorch's, and so are the gradients of mean(y²): an
attribute has those of each initializer whose elements all are elements of parameters, moved by the exporter. Equal
elements are found by their values, because all parameters are random. tests/cases/pack.py describes the file.
"""
import base64
import collections
import logging
import os
import pathlib
import sys
import tempfile
import warnings

import numpy
import onnx
import torch
import transformers
from onnx import numpy_helper
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT.parent / "cases"))
from pack import Data, write  # noqa: E402

KIND = "pkg.torch.export.graph_signature.InputSpec.kind"


class Block(nn.Module):
    """A GPT of one block with tied embeddings."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(30, 8), nn.Embedding(12, 8)
        self.norm, self.norm_2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8))

    def forward(self, x):
        length = x.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), 1)
        h = self.tokens(x) + self.positions(torch.arange(length))
        n = self.norm(h)
        h = h + self.attention(n, n, n, attn_mask=mask, need_weights=False)[0]
        return (h + self.mlp(self.norm_2(h))) @ self.tokens.weight.T


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.tokens = nn.Embedding(20, 8)
        self.layers = kind(8, 6, num_layers=2, batch_first=True, **options)
        self.head = nn.Linear(6 * (2 if options.get("bidirectional") else 1), 3)

    def forward(self, x):
        return self.head(self.layers(self.tokens(x))[0][:, -1])


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)

    def forward(self, source, target):
        mask = torch.triu(torch.full((target.shape[1], target.shape[1]), float("-inf")), 1)
        return self.model(source, target, tgt_mask=mask, tgt_is_causal=True)


def convolutions():
    return nn.Sequential(
        nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
        nn.Conv2d(8, 8, 3, stride=2, groups=4, padding=1, dilation=2), nn.GroupNorm(2, 8), nn.SiLU(),
        nn.AvgPool2d(3, stride=2, padding=1), nn.Conv2d(8, 6, 1), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(6, 4))


class Output(nn.Module):
    """The first output of a model of transformers."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        outputs = self.model(**dict(zip(self.names, inputs)), return_dict=True)
        return outputs.logits if "logits" in outputs else outputs.last_hidden_state


def model_of(kind, names, config, **options):
    config = getattr(transformers, config)(
        hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, vocab_size=30,
        max_position_embeddings=16, **options)
    arguments = {"add_pooling_layer": False} if kind == "BertModel" else {}
    return Output(getattr(transformers, kind)(config, **arguments), names)


def ids(batch, length):
    return torch.randint(0, 20, (batch, length))


def text(batch, length):
    return (ids(batch, length),)


def masked(batch, length):
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, -2:] = 0
    return ids(batch, length), mask


def image(batch, size):
    return (torch.randn(batch, 3, size, size),)


def pair(batch, length):
    return torch.randn(batch, length + 2, 8), torch.randn(batch, length, 8)


TEXT, BATCH = {0: "batch", 1: "length"}, {0: "batch"}
# Name, model, function of the inputs, sizes at the export and in the case, free axes, whether dynamo is used.
MODELS = [
    ("gpt_block", Block, text, (2, 7), (3, 5), [TEXT], (True,)),
    ("gpt_block", Block, text, (2, 7), (3, 7), [BATCH], (False,)),  # tracing fixes the length in nn.MultiheadAttention
    ("lstm", lambda: Recurrent(nn.LSTM, bidirectional=True), text, (2, 7), (3, 7), [BATCH], (True, False)),
    ("gru", lambda: Recurrent(nn.GRU), text, (2, 7), (3, 7), [BATCH], (True, False)),
    ("rnn", lambda: Recurrent(nn.RNN), text, (2, 7), (3, 7), [BATCH], (True, False)),
    ("convolutions", convolutions, image, (2, 15), (3, 15), [BATCH], (True, False)),
    ("transformer", Translator, pair, (2, 4), (3, 4), [BATCH, BATCH], (True, False)),
    ("gpt2", lambda: model_of("GPT2LMHeadModel", ["input_ids"], "GPT2Config", use_cache=False), text, (2, 7), (3, 5),
     [TEXT], (True,)),
    ("llama", lambda: model_of("LlamaForCausalLM", ["input_ids"], "LlamaConfig", num_key_value_heads=1, use_cache=False),
     text, (2, 7), (3, 5), [TEXT], (True,)),
    ("bert", lambda: model_of("BertModel", ["input_ids", "attention_mask"], "BertConfig"), masked, (2, 7), (3, 5),
     [TEXT, TEXT], (True, False)),
    ("vit", lambda: model_of("ViTForImageClassification", ["pixel_values"], "ViTConfig", image_size=16, patch_size=4,
                             num_labels=4), image, (2, 16), (3, 16), [BATCH], (True, False)),
]


def export(model, inputs, free, dynamo):
    """Returns the exporter's model without the texts that say where each node comes from."""
    names = [f"x{i}" for i in range(len(inputs))]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        if dynamo:
            axes = [{axis: torch.export.Dim.DYNAMIC for axis in each} for each in free]
            shapes = {"inputs": tuple(axes)} if isinstance(model, Output) else tuple(axes)
            torch.onnx.export(model, inputs, path, dynamo=True, input_names=names, output_names=["y"],
                              dynamic_shapes=shapes, external_data=False, verbose=False)
        else:
            torch.onnx.export(model, inputs, path, dynamo=False, input_names=names, output_names=["y"],
                              dynamic_axes=dict(zip(names, free)), opset_version=17)
        result = onnx.load(path)
    graph = result.graph
    for node in graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    kept = [info for info in graph.value_info if any(entry.key == KIND for entry in info.metadata_props)]
    for info in kept:
        entries = [entry for entry in info.metadata_props if entry.key == KIND]
        del info.metadata_props[:]
        info.metadata_props.extend(entries)
    del graph.value_info[:]
    graph.value_info.extend(kept)
    del result.metadata_props[:], graph.metadata_props[:]
    return result


def gradients(model, graph, data):
    """The gradients of the initializers, by name."""
    places = {}
    for number, parameter in enumerate(model.parameters()):
        for index, value in enumerate(parameter.detach().numpy().ravel()):
            places[value.item()] = (number, index)
    grads = [p.grad.numpy().ravel() if p.grad is not None else None for p in model.parameters()]
    found = {}
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == numpy.float32 and values.size > 1 and all(v.item() in places for v in values.ravel()):
            found[tensor.name] = values, [places[v.item()] for v in values.ravel()]
    # The gradient of a parameter that is in two initializers is the sum of theirs, so it is left out.
    uses = collections.Counter(number for _, where in found.values() for number in {n for n, _ in where})
    return {name: data.add(numpy.array([grads[n][i] for n, i in where], numpy.float32).reshape(values.shape))
            for name, (values, where) in found.items()
            if all(uses[n] == 1 and grads[n] is not None for n, _ in where)}


def cases(data):
    for name, make, inputs_of, exported, sizes, free, exporters in MODELS:
        for dynamo in exporters:
            torch.manual_seed(0)
            model = make().eval()
            for parameter in model.parameters():
                nn.init.normal_(parameter, std=0.2)
            for key, buffer in model.named_buffers():
                if "running" in key:
                    buffer.uniform_(0.5, 1.5)
            file = export(model, inputs_of(*exported), free, dynamo)
            inputs = inputs_of(*sizes)
            y = model(*inputs)
            (y ** 2).mean().backward()
            grads = gradients(model, file.graph, data)
            floats = sum(t.data_type == onnx.TensorProto.FLOAT and len(t.dims) > 0 for t in file.graph.initializer)
            full = f"{name}_{'dynamo' if dynamo else 'script'}"
            print(full, f"opset {file.opset_import[0].version}, {len(file.graph.node)} nodes,",
                  f"gradients of {len(grads)} of {floats} initializers of floats")
            yield {"name": full, "op": "model", "opset": file.opset_import[0].version,
                   "model": base64.b64encode(file.SerializeToString()).decode(), "attributes": {"gradients": grads},
                   "inputs": [data.add(x.numpy()) for x in inputs], "outputs": [data.add(y.detach().numpy())]}


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    data = Data()
    drawn = list(cases(data))
    write(ROOT / "models.bin.gz", "torch.onnx.export of torch " + torch.__version__, drawn, data)


if __name__ == "__main__":
    main()
