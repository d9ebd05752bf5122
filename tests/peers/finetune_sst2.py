"""Fine-tunes a BERT on labelled texts in PyTorch, as `weft train classify --init` does: what that is compared with.

    weft tokenize --tokenizer=FOLDER --special < texts > ids    # JSON arrays of ids, one a line
    python3 finetune_sst2.py FOLDER train.tsv train.ids dev.tsv dev.ids

FOLDER has config.json and model.safetensors, as tools/fetch_minilm fetches them. Pooler and classifier as in Hugging
Face's BertForSequenceClassification; AdamW, half a cosine after a linear warm-up, batches of similar length.
"""
import json
import math
import random
import struct
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

EPOCHS, BATCH, RATE, WARMUP, DECAY, CLIP, SEED = 2, 32, 5e-5, 40, 0.01, 1.0, int(sys.argv[6]) if len(sys.argv) > 6 else 1


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__" and about["dtype"] == "F32":
            begin, end = about["data_offsets"]
            tensors[name] = torch.tensor(np.frombuffer(data[begin:end], np.float32).copy()).reshape(about["shape"])
    return tensors


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner = c["hidden_size"], c["intermediate_size"]
        self.heads, self.p = c["num_attention_heads"], c["hidden_dropout_prob"]
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=c["layer_norm_eps"]) for _ in range(2))

    def forward(self, x, mask):
        b, t, w = x.shape
        q, k, v = (f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.p if self.training else 0.0)
        y = self.out(y.transpose(1, 2).reshape(b, t, w))
        x = self.norm1(x + F.dropout(y, self.p, self.training))
        return self.norm2(x + F.dropout(self.down(F.gelu(self.up(x))), self.p, self.training))


class Classifier(nn.Module):
    NAMES = {"query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
             "out": "attention.output.dense", "norm1": "attention.output.LayerNorm", "up": "intermediate.dense",
             "down": "output.dense", "norm2": "output.LayerNorm"}

    def __init__(self, c, classes):
        super().__init__()
        width = c["hidden_size"]
        self.word = nn.Embedding(c["vocab_size"], width)
        self.position = nn.Embedding(c["max_position_embeddings"], width)
        self.segment = nn.Embedding(c["type_vocab_size"], width)
        self.norm = nn.LayerNorm(width, eps=c["layer_norm_eps"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, classes)
        self.p = c["hidden_dropout_prob"]
        nn.init.normal_(self.classifier.weight, std=0.02)
        nn.init.zeros_(self.classifier.bias)

    def load(self, tensors):
        def put(module, name):
            for key, parameter in module.named_parameters():
                parameter.data.copy_(tensors[f"{name}.{key}"])

        put(self.word, "embeddings.word_embeddings")
        put(self.position, "embeddings.position_embeddings")
        put(self.segment, "embeddings.token_type_embeddings")
        put(self.norm, "embeddings.LayerNorm")
        put(self.pooler, "pooler.dense")
        for i, layer in enumerate(self.layers):
            for ours, theirs in self.NAMES.items():
                put(getattr(layer, ours), f"encoder.layer.{i}.{theirs}")

    def forward(self, tokens, lengths):
        t = tokens.shape[1]
        x = self.word(tokens) + self.position.weight[:t] + self.segment.weight[0]
        x = F.dropout(self.norm(x), self.p, self.training)
        mask = (torch.arange(t) < lengths[:, None])[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return self.classifier(F.dropout(torch.tanh(self.pooler(x[:, 0])), self.p, self.training))


def read(tsv, ids):
    labels = [line.rstrip("\n").split("\t")[-1] for line in open(tsv, encoding="utf-8")]
    return [(json.loads(line), int(label)) for line, label in zip(open(ids), labels, strict=True)]


def batches(examples, shuffled):
    order = sorted(range(len(examples)), key=lambda i: (-(-len(examples[i][0]) // 8), random.random() if shuffled else i))
    groups = [order[i:i + BATCH] for i in range(0, len(order), BATCH)]
    if shuffled:
        random.shuffle(groups)
    for group in groups:
        length = max(len(examples[i][0]) for i in group)
        tokens = torch.tensor([examples[i][0] + [0] * (length - len(examples[i][0])) for i in group])
        yield tokens, torch.tensor([len(examples[i][0]) for i in group]), torch.tensor([examples[i][1] for i in group])


def main():
    random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    folder = sys.argv[1]
    config = json.load(open(f"{folder}/config.json"))
    model = Classifier(config, 2)
    model.load(read_safetensors(f"{folder}/model.safetensors"))
    train, dev = read(*sys.argv[2:4]), read(*sys.argv[4:6])
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
                                  lr=RATE, eps=1e-8)
    steps, step, begin = EPOCHS * -(-len(train) // BATCH), 0, time.time()
    for epoch in range(EPOCHS):
        model.train()
        for tokens, lengths, labels in batches(train, True):
            factor = (step + 1) / (WARMUP + 1) if step < WARMUP else (
                (1 + math.cos(math.pi * (step - WARMUP) / (steps - WARMUP))) / 2)
            for group in optimizer.param_groups:
                group["lr"] = RATE * factor
            loss = F.cross_entropy(model(tokens, lengths), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            step += 1
        model.eval()
        with torch.no_grad():
            correct = sum((model(t, n).argmax(-1) == y).sum().item() for t, n, y in batches(dev, False))
        print(f"epoch {epoch + 1}  accuracy {100 * correct / len(dev):.2f}%  after {time.time() - begin:.0f}s", flush=True)


main()
