#!/usr/bin/env python3
"""Writes attention_weights.safetensors: attention weights as PyTorch and Hugging Face compute them.

  tests/peers/attention_weights.py DATA MINILM OUT

They compute in f64: PyTorch's own results in f32 differ from these by up to 1.2e-6.

DATA has the folders of WEFT_DATA, and MINILM is the folder that tools/fetch_minilm prints. The script needs torch,
transformers, numpy and safetensors. inference/measure/attention_weights_test.cc reads the file.
"""
import base64
import json
import math
import sys

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from transformers import BertModel, GPT2Config, GPT2LMHeadModel


def stacked(layers):
    """Returns the weights of all layers of one text: [layers, heads, targets, sources]."""
    return torch.stack([layer[0] for layer in layers]).detach().numpy().astype(np.float32).copy()


def sorting_gpt(folder):
    """Returns minGPT's sorting model. Its file has the layout of Hugging Face's GPT2, whose dropout is off here."""
    raw = json.load(open(f"{folder}/gpt-nano-sort-model.json"))
    model = GPT2LMHeadModel(GPT2Config(vocab_size=3, n_positions=11, n_embd=48, n_layer=3, n_head=3,
                                       tie_word_embeddings=False, attn_implementation="eager"))
    wanted = model.state_dict()
    for name, value in wanted.items():
        entry = raw[name]
        values = np.frombuffer(base64.b64decode(entry["data"]), np.float32).reshape(entry["shape"])
        linear = ".c_" in name and name.endswith("weight")  # [out, in] there, and [in, out] in GPT2
        value.copy_(torch.from_numpy(values.T.copy() if linear else values.copy()))
    return model.double().eval()


class Transliterator:
    """The pre-norm encoder-decoder of DATA/aren-transliteration, with PyTorch's attention."""

    WIDTH, HEADS, LAYERS = 32, 8, 6

    def __init__(self, folder):
        self.weights = {k: torch.from_numpy(v).double() for k, v in load_file(f"{folder}/model.safetensors").items()}

    def get(self, name):
        return self.weights[name]

    def norm(self, name, x):
        return torch.nn.functional.layer_norm(x, [self.WIDTH], self.get(f"{name}/layer_norm/gamma"),
                                              self.get(f"{name}/layer_norm/beta"), 1e-5)

    def linear(self, name, x):
        return torch.nn.functional.linear(x, self.get(f"{name}/weight"), self.get(f"{name}/bias"))

    def attend(self, name, x, memory, mask):
        """Returns x plus attention's result, and the weights."""
        layer = torch.nn.MultiheadAttention(self.WIDTH, self.HEADS, batch_first=True)
        parts = ["linear_0"] if memory is None else ["linear_0", "linear_1"]
        last = f"{name}/linear_{len(parts)}"
        layer.load_state_dict({
            "in_proj_weight": torch.cat([self.get(f"{name}/{part}/weight") for part in parts]),
            "in_proj_bias": torch.cat([self.get(f"{name}/{part}/bias") for part in parts]),
            "out_proj.weight": self.get(f"{last}/weight"), "out_proj.bias": self.get(f"{last}/bias")})
        query = self.norm(name, x)
        source = query if memory is None else memory
        y, weights = layer(query, source, source, attn_mask=mask, need_weights=True, average_attn_weights=False)
        return x + y, weights

    def embed(self, side, ids):
        rates = torch.exp(-math.log(1e4) / (self.WIDTH // 2 - 1) * torch.arange(self.WIDTH // 2))
        angles = torch.arange(1, ids.shape[1] + 1)[:, None] * rates
        positions = torch.cat([angles.sin(), angles.cos()], 1)
        return self.get(f"{side}/embeddings/weight")[ids] * math.sqrt(self.WIDTH) + positions

    def stack(self, side, x, memory, mask):
        own, cross = [], []
        for layer in range(self.LAYERS):
            prefix = f"{side}/layer_{layer}"
            x, weights = self.attend(f"{prefix}/self_attention", x, None, mask)
            own.append(weights)
            if memory is not None:
                x, weights = self.attend(f"{prefix}/attention", x, memory, None)
                cross.append(weights)
            hidden = torch.relu(self.linear(f"{prefix}/ffn/linear_0", self.norm(f"{prefix}/ffn", x)))
            x = x + self.linear(f"{prefix}/ffn/linear_1", hidden)
        return self.norm(side, x), own, cross

    def __call__(self, source, target):
        """Returns logits and the weights of encoder, decoder and cross-attention, by layer."""
        memory, encoder, _ = self.stack("encoder", self.embed("encoder", source), None, None)
        causal = torch.triu(torch.ones(target.shape[1], target.shape[1], dtype=torch.bool), 1)
        y, decoder, cross = self.stack("decoder", self.embed("decoder", target), memory, causal)
        return self.linear("decoder/projection", y), encoder, decoder, cross


def main():
    data, minilm, out = sys.argv[1:]
    torch.manual_seed(7)
    torch.set_default_dtype(torch.float64)
    arrays = {}

    width, heads = 12, 3
    attention = torch.nn.MultiheadAttention(width, heads, batch_first=True)
    x, memory = torch.randn(2, 5, width), torch.randn(2, 7, width)
    padding = torch.arange(7)[None] >= torch.tensor([7, 4])[:, None]
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    for name, value in attention.state_dict().items():
        arrays[f"pytorch.{name}"] = value.numpy().copy()
    arrays |= {"pytorch.x": x.numpy().copy(), "pytorch.memory": memory.numpy().copy()}
    options = {"need_weights": True, "average_attn_weights": False}
    arrays["pytorch.causal"] = attention(x, x, x, attn_mask=causal, **options)[1].detach().numpy().copy()
    arrays["pytorch.cross"] = attention(x, memory, memory, key_padding_mask=padding,
                                        **options)[1].detach().numpy().copy()

    ids = torch.tensor([[101, 1996, 2482, 2038, 2019, 3194, 1012, 102]])
    bert = BertModel.from_pretrained(minilm, attn_implementation="eager").double().eval()
    arrays["minilm.ids"] = ids[0].numpy().astype(np.int32)
    arrays["minilm.attention"] = stacked(bert(ids, output_attentions=True).attentions)

    digits = torch.tensor([[0, 0, 2, 1, 0, 1, 0, 0, 0, 1, 1]])
    arrays["sort.ids"] = digits[0].numpy().astype(np.int32)
    arrays["sort.attention"] = stacked(sorting_gpt(f"{data}/gpt-nano-sort")(digits, output_attentions=True).attentions)

    item = json.load(open(f"{data}/aren-transliteration/expected.json"))["items"][0]
    source, target = torch.tensor([item["source_ids"]]), torch.tensor([[1] + item["greedy_ids"]])
    logits, encoder, decoder, cross = Transliterator(f"{data}/aren-transliteration")(source, target)
    assert logits[0].argmax(-1)[:-1].tolist() == item["greedy_ids"]  # so this is the model that the data describes
    arrays |= {"aren.source": source[0].numpy().astype(np.int32), "aren.target": target[0].numpy().astype(np.int32),
               "aren.encoder": stacked(encoder), "aren.decoder": stacked(decoder), "aren.cross": stacked(cross)}
    assert not any(math.isnan(float(array.sum())) for array in arrays.values())
    save_file({name: array if array.dtype == np.int32 else array.astype(np.float32)
               for name, array in arrays.items()}, out)


main()
