"""Exports models as ONNX, and compares onnxruntime's results with those of transformers on the same weights.

For each model, `onnx.checker` checks the files. Then 20 inputs of different batches, lengths and paddings, on either
side, are computed. The script prints the largest difference of each output, over all tokens that are no padding, and
fails if one is above 1e-5, or above the model's own limit in LOOSE. Values above 1 count by their relative difference.
Weft permutes the features of a Marian's hidden states, so these are compared in the order of their values.

    python3 -m pip install torch transformers==5.24.0 onnx onnxruntime
    python3 tests/onnx_export/check_export.py bazel-bin/apps/weft [FOLDER...]

Without folders, it takes all models of tests/published. In place of the program, a folder may be named that has the
exported models in folders of the same names.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import onnx
import onnxruntime
import torch
import transformers
from transformers.modeling_outputs import BaseModelOutput

INPUTS, LIMIT = 20, 1e-5
LOOSE = {"gemma": 2e-5}  # transformers' own results in f32 are 1.5e-5 away from those in f64
torch.set_num_threads(1)
transformers.logging.set_verbosity(50)
transformers.logging.disable_progress_bar()


def session(folder, name):
    path = f"{folder}/{name}"
    onnx.checker.check_model(path, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run(session, inputs):
    names = {each.name for each in session.get_inputs()}
    values = session.run(None, {name: value for name, value in inputs.items() if name in names})
    return dict(zip([each.name for each in session.get_outputs()], values))


COUNTED = ("roberta", "xlm-roberta", "camembert", "mpnet")  # their positions leave out padding


class Case:
    """Random sizes, tokens and paddings."""

    def __init__(self, config, seed):
        self.random = np.random.default_rng(seed)
        self.config = config
        self.batch = 1 + seed % 4
        positions = getattr(config, "max_position_embeddings", 16)
        self.most = min(positions - (2 if config.model_type in COUNTED else 0), 200)

    def text(self, shape=()):
        """Returns ids and a mask whose rows have padding at one end."""
        length = 1 + int(self.random.integers(self.most))
        ids = self.random.integers(3, self.config.vocab_size, (self.batch, *shape, length))
        mask = np.ones_like(ids)
        for row in mask.reshape(-1, length):
            padded = int(self.random.integers(length))
            if self.random.integers(2):
                row[length - padded:] = 0
            else:
                row[:padded] = 0
        ids[mask == 0] = self.config.pad_token_id or 0
        return ids, mask


def difference(ours, theirs, mask=None):
    """Returns the largest difference. Of outputs with a row for each token, rows of padding do not count."""
    theirs = theirs.numpy()
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    away = np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))
    if mask is not None and away.shape[:mask.ndim] == mask.shape:
        away = away[mask == 1]
    assert not np.isnan(away).any()
    return float(away.max(initial=0))


def check_pair(model, folder, config):
    encoder, decoder = session(folder, "encoder_model.onnx"), session(folder, "decoder_model.onnx")
    worst = {}
    for seed in range(INPUTS):
        case = Case(config, seed)
        source, mask = case.text()
        target, _ = case.text()
        target[:, 0] = config.decoder_start_token_id
        states = run(encoder, {"input_ids": source, "attention_mask": mask})["last_hidden_state"]
        order = np.sort if config.model_type == "marian" else lambda values: values
        tensor = torch.tensor(mask)
        expected = model.get_encoder()(torch.tensor(source), attention_mask=tensor).last_hidden_state
        logits = run(decoder, {"input_ids": target, "encoder_hidden_states": states, "encoder_attention_mask": mask})
        wanted = model(encoder_outputs=BaseModelOutput(expected), attention_mask=tensor,
                       decoder_input_ids=torch.tensor(target), use_cache=False).logits
        away = difference(order(states), torch.tensor(order(expected.numpy())), mask)
        for name, value in [("last_hidden_state", away), ("logits", difference(logits["logits"], wanted))]:
            worst[name] = max(worst.get(name, 0), value)
    return worst


def check_one(model, folder, config):
    session_ = session(folder, "model.onnx")
    inputs_of = {each.name: each.shape for each in session_.get_inputs()}
    worst = {}
    for seed in range(INPUTS):
        case = Case(config, seed)
        mask = None
        if "pixel_values" in inputs_of:
            inputs = {"pixel_values": case.random.normal(size=(case.batch, *inputs_of["pixel_values"][1:]))}
            inputs["pixel_values"] = inputs["pixel_values"].astype(np.float32)
        else:
            ids, mask = case.text(shape=(3,) if len(inputs_of["input_ids"]) == 3 else ())
            inputs = {"input_ids": ids, "attention_mask": mask}
            if "token_type_ids" in inputs_of:
                inputs["token_type_ids"] = case.random.integers(0, config.type_vocab_size, ids.shape)
        ours = run(session_, inputs)
        theirs = model(**{name: torch.tensor(value) for name, value in inputs.items()})
        for name, value in ours.items():
            worst[name] = max(worst.get(name, 0), difference(value, theirs[name], mask))
    return worst


def main():
    every = sorted(map(os.path.dirname, glob.glob("tests/published/*/config.json")))
    weft, folders = sys.argv[1], sys.argv[2:] or every
    failed = 0
    for folder in folders:
        with tempfile.TemporaryDirectory() as out:
            if os.path.isdir(weft):
                exported = f"{weft}/{os.path.basename(folder)}"
            else:
                exported = out
                subprocess.run([weft, "export", f"--model={folder}", f"--out={out}", "--layout=onnx"], check=True,
                               stdout=subprocess.DEVNULL)
            with open(f"{folder}/config.json") as file:
                name = json.load(file)["architectures"][0]
            model = getattr(transformers, name).from_pretrained(folder, attn_implementation="eager").eval().float()
            with torch.no_grad():
                pair = os.path.exists(f"{exported}/decoder_model.onnx")
                worst = (check_pair if pair else check_one)(model, exported, model.config)
        failed += max(worst.values()) > LOOSE.get(os.path.basename(folder), LIMIT)
        figures = (f"{key} {value:.1e}" for key, value in worst.items())
        print(f"{os.path.basename(folder):20} {name:32}", *figures, flush=True)
    print(f"{len(folders)} models, {failed} of them differ by more than {LIMIT}, or than their own limit")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
