"""Writes what other programs compute from exported models, for formats/exported_models_test.cc.

    python3 -m venv venv && venv/bin/pip install numpy torch transformers ctranslate2 safetensors
    venv/bin/python tests/peers/exports.py bazel-bin/apps/weft tests/peers/exports

The weights are numbers of a formula, which the test repeats. ctranslate2.bin is what CTranslate2's own classes write for
a Transformer. expected.json has the logits of transformers for the exported models.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from ctranslate2.specs import TransformerSpec
from safetensors.numpy import save_file

VOCABULARY, CONTEXT, WIDTH, HEADS, HIDDEN = 7, 6, 4, 2, 5
SOURCE, TARGET = [3, 4, 5, 6, 2], [1, 6, 3, 4]


def shapes(shared, pre_norm, learned, layers=1):
    """The names and shapes of a Transformer's weights in Weft."""
    result = {}
    for side in ("encoder", "decoder"):
        if not shared:
            result[f"{side}.embed_tokens.weight"] = (VOCABULARY, WIDTH)
        if learned:
            result[f"{side}.embed_positions.weight"] = (CONTEXT, WIDTH)
        if pre_norm:
            result[f"{side}.layer_norm.weight"] = result[f"{side}.layer_norm.bias"] = (WIDTH,)
        for i in range(layers):
            attentions = ("self_attn", "encoder_attn") if side == "decoder" else ("self_attn",)
            layer = f"{side}.layers.{i}."
            for attention in attentions:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    result[f"{layer}{attention}.{part}.weight"] = (WIDTH, WIDTH)
                    result[f"{layer}{attention}.{part}.bias"] = (WIDTH,)
            for norm in [f"{attention}_layer_norm" for attention in attentions] + ["final_layer_norm"]:
                result[f"{layer}{norm}.weight"] = result[f"{layer}{norm}.bias"] = (WIDTH,)
            result[f"{layer}fc1.weight"], result[f"{layer}fc1.bias"] = (HIDDEN, WIDTH), (HIDDEN,)
            result[f"{layer}fc2.weight"], result[f"{layer}fc2.bias"] = (WIDTH, HIDDEN), (WIDTH,)
    if shared:
        result["shared.weight"] = (VOCABULARY, WIDTH)
    return result


def weights(kinds):
    """Element i of tensor k, in the order of the names, is ((7 i + 13 k) mod 61 - 30) / 32."""
    result = {}
    for k, name in enumerate(sorted(kinds)):
        count = int(np.prod(kinds[name]))
        result[name] = (((7 * np.arange(count) + 13 * k) % 61 - 30) / 32).astype(np.float32).reshape(kinds[name])
    return result


def sinusoids(rows):
    angle = lambda p, j: p * np.power(10000.0, -(j // 2) / (WIDTH / 2))
    table = [[np.sin(angle(p, j)) if j % 2 == 0 else np.cos(angle(p, j)) for j in range(WIDTH)] for p in range(rows)]
    return np.array(table).astype(np.float32)


def write_ctranslate2(path):
    """Writes model.bin of the default Transformer: norms after each layer, a table for each side, a tied head."""
    w = weights(shapes(shared=False, pre_norm=False, learned=False))
    spec = TransformerSpec.from_config((1, 1), HEADS, pre_norm=False)

    def linear(to, names):
        to.weight = np.concatenate([w[name + ".weight"] for name in names])
        to.bias = np.concatenate([w[name + ".bias"] for name in names])

    def norm(to, name):
        to.gamma, to.beta = w[name + ".weight"], w[name + ".bias"]

    for side, module in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        table = module.embeddings[0] if side == "encoder" else module.embeddings
        table.weight = w[f"{side}.embed_tokens.weight"]
        module.position_encodings.encodings = sinusoids(512)
        layer, prefix = module.layer[0], f"{side}.layers.0."
        linear(layer.self_attention.linear[0], [f"{prefix}self_attn.{p}_proj" for p in "qkv"])
        linear(layer.self_attention.linear[1], [f"{prefix}self_attn.out_proj"])
        norm(layer.self_attention.layer_norm, f"{prefix}self_attn_layer_norm")
        if side == "decoder":
            linear(layer.attention.linear[0], [f"{prefix}encoder_attn.q_proj"])
            linear(layer.attention.linear[1], [f"{prefix}encoder_attn.{p}_proj" for p in "kv"])
            linear(layer.attention.linear[2], [f"{prefix}encoder_attn.out_proj"])
            norm(layer.attention.layer_norm, f"{prefix}encoder_attn_layer_norm")
        linear(layer.ffn.linear_0, [f"{prefix}fc1"])
        linear(layer.ffn.linear_1, [f"{prefix}fc2"])
        norm(layer.ffn.layer_norm, f"{prefix}final_layer_norm")
    spec.decoder.projection.weight = w["decoder.embed_tokens.weight"]
    tokens = ["<pad>", "<s>", "</s>", "a", "b", "c", "d"]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.validate()
    spec.optimize()
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        os.replace(os.path.join(folder, "model.bin"), path)


def logits(weft, **options):
    """Exports the Transformer with `weft` and returns the logits of transformers."""
    shared, pre_norm, learned = options["shared"], options["pre_norm"], options["learned"]
    config = {
        "model_type": "transformer", "vocab_size": VOCABULARY, "decoder_vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT, "d_model": WIDTH, "encoder_layers": 1, "decoder_layers": 1,
        "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "encoder_ffn_dim": HIDDEN,
        "decoder_ffn_dim": HIDDEN, "activation_function": "relu", "normalize_before": pre_norm,
        "position_embedding_type": "learned" if learned else "sinusoidal", "scale_embedding": True,
        "share_encoder_decoder_embeddings": shared, "tie_word_embeddings": True,
    }
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "ours"), os.path.join(folder, "theirs")
        os.mkdir(ours)
        with open(os.path.join(ours, "config.json"), "w") as file:
            json.dump(config, file)
        save_file(weights(shapes(shared, pre_norm, learned)), os.path.join(ours, "model.safetensors"))
        subprocess.run([weft, "export", f"--model={ours}", f"--out={theirs}", "--layout=huggingface"], check=True)
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(theirs).eval()
        with torch.no_grad():
            output = model(input_ids=torch.tensor([SOURCE]), decoder_input_ids=torch.tensor([TARGET]))
        return {"class": type(model).__name__, "logits": [round(x, 6) for x in output.logits.flatten().tolist()]}


def main():
    weft, out = sys.argv[1:3]
    write_ctranslate2(os.path.join(out, "ctranslate2.bin"))
    expected = {
        "marian": logits(weft, shared=False, pre_norm=False, learned=False),
        "pegasus": logits(weft, shared=True, pre_norm=True, learned=False),
        "blenderbot": logits(weft, shared=True, pre_norm=True, learned=True),
    }
    with open(os.path.join(out, "expected.json"), "w") as file:
        json.dump(expected, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
