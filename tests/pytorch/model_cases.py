"""Makes cases of whole models from torch.nn: BERT-style encoders, encoder-decoder Transformers, GPT-2, Llama.

A case's attributes are the model's weights and the loss's gradients by them, under the names of models/*.h. Its inputs
are those of forward(); its outputs are the logits and the loss.
"""
import re
import zlib

import torch
import torch.nn.functional as F
from torch import nn

from drawing import Draw

BATCH, SOURCE, TARGET = 2, 6, 7
VOCABULARY, OTHER_VOCABULARY, CONTEXT, WIDTH, FEED_FORWARD, CLASSES, WINDOW = 19, 13, 9, 16, 24, 3, 4


def hidden_after(lengths, size):
    return torch.arange(size) >= lengths[:, None]


def causal(size):
    return torch.ones(size, size, dtype=torch.bool).triu(1)


def blocks(kind, layers, heads, norm=None, **options):
    stack, layer = {"encoder": (nn.TransformerEncoder, nn.TransformerEncoderLayer),
                    "decoder": (nn.TransformerDecoder, nn.TransformerDecoderLayer)}[kind]
    options = {"dropout": 0.0, "batch_first": True, **options}
    rest = {"enable_nested_tensor": False} if kind == "encoder" else {}
    return stack(layer(WIDTH, heads, FEED_FORWARD, **options), layers, norm, **rest)


class Bert(nn.Module):
    NAMES = [("^(word|position|token_type)s", r"embeddings.\1_embeddings"), ("^norm", "embeddings.LayerNorm"),
             ("^blocks.layers", "encoder.layer"), ("self_attn.in_proj_", "attention.self.{query|key|value}."),
             ("self_attn.out_proj", "attention.output.dense"), ("norm1", "attention.output.LayerNorm"),
             ("norm2", "output.LayerNorm"), ("linear1", "intermediate.dense"), ("linear2", "output.dense"),
             ("^transform_norm", "cls.predictions.transform.LayerNorm"),
             ("^transform", "cls.predictions.transform.dense"), ("^bias", "cls.predictions.bias"),
             ("^pooler", "pooler.dense")]

    def __init__(self, layers):
        super().__init__()
        self.words, self.positions, self.token_types = (nn.Embedding(n, WIDTH) for n in (VOCABULARY, CONTEXT, 2))
        self.norm = nn.LayerNorm(WIDTH, 1e-12)
        self.blocks = blocks("encoder", layers, 2, activation="gelu", layer_norm_eps=1e-12)

    def encode(self, tokens, token_types, padding):
        x = self.words(tokens) + self.positions(torch.arange(TARGET)) + self.token_types(token_types)
        return self.blocks(self.norm(x), src_key_padding_mask=padding)


class MaskedBert(Bert):
    def __init__(self):
        super().__init__(layers=2)
        self.transform, self.transform_norm = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH, 1e-12)
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))

    def forward(self, tokens, token_types, lengths, targets):
        x = self.encode(tokens, token_types, hidden_after(lengths, TARGET))
        x = self.transform_norm(F.gelu(self.transform(x)))
        logits = F.linear(x, self.words.weight, self.bias)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class ClassifyingBert(Bert):
    def __init__(self):
        super().__init__(layers=1)
        self.pooler, self.classifier = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens, targets):
        x = self.encode(tokens, torch.zeros_like(tokens), None)
        logits = self.classifier(torch.tanh(self.pooler(x[:, 0])))
        return logits, F.cross_entropy(logits, targets)


class EncoderDecoder(nn.Module):
    NAMES = [("^sources", "encoder.embed_tokens"), ("^targets", "decoder.embed_tokens"),
             (r"^(\w+)_positions", r"\1.embed_positions"), ("coder.norm", "coder.layer_norm"),
             ("in_proj_", "{q|k|v}_proj."), ("multihead_attn", "encoder_attn"), ("norm1", "self_attn_layer_norm"),
             (r"^(encoder.*)norm2|norm3", r"\1final_layer_norm"), ("norm2", "encoder_attn_layer_norm"),
             ("linear", "fc"), ("^bias", "lm_head.bias")]
    LAYERS = 2

    def __init__(self):
        super().__init__()
        self.sources, self.targets = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(OTHER_VOCABULARY, WIDTH)
        self.encoder, self.decoder = (blocks(kind, self.LAYERS, 2) for kind in ("encoder", "decoder"))

    def embed(self, side, tokens):
        rates = 10000 ** -(torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
        angles = torch.arange(tokens.shape[1])[:, None] * rates
        table = self.sources if side == "encoder" else self.targets
        return table(tokens) * WIDTH ** 0.5 + torch.stack([angles.sin(), angles.cos()], -1).flatten(1)

    def head(self, x):
        return F.linear(x, self.targets.weight)

    def forward(self, source, lengths, target, targets):
        padding = hidden_after(lengths, SOURCE)
        memory = self.encoder(self.embed("encoder", source), src_key_padding_mask=padding)
        logits = self.head(self.decoder(self.embed("decoder", target), memory, tgt_mask=causal(TARGET),
                                        memory_key_padding_mask=padding))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=0.1)


class PreNormEncoderDecoder(EncoderDecoder):
    """A Transformer with one table for both sides, learnt positions, and a norm at the end of each stack."""

    def __init__(self):
        nn.Module.__init__(self)
        self.shared = nn.Embedding(VOCABULARY, WIDTH)
        self.encoder_positions, self.decoder_positions = (nn.Embedding(CONTEXT, WIDTH) for _ in range(2))
        self.encoder, self.decoder = (blocks(kind, 1, 2, nn.LayerNorm(WIDTH), activation="gelu", norm_first=True)
                                      for kind in ("encoder", "decoder"))
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))

    def embed(self, side, tokens):
        positions = self.encoder_positions if side == "encoder" else self.decoder_positions
        return self.shared(tokens) + positions(torch.arange(tokens.shape[1]))

    def head(self, x):
        return F.linear(x, self.shared.weight, self.bias)


class Gpt2(nn.Module):
    NAMES = [("^words", "wte"), ("^positions", "wpe"), ("^blocks.norm", "ln_f"), ("^blocks.layers", "h"),
             ("self_attn.in_proj_", "attn.c_attn."), ("self_attn.out_proj", "attn.c_proj"), ("norm", "ln_"),
             ("linear1", "mlp.c_fc"), ("linear2", "mlp.c_proj")]

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = blocks("encoder", 2, 2, nn.LayerNorm(WIDTH), norm_first=True,
                             activation=lambda x: F.gelu(x, approximate="tanh"))

    def forward(self, tokens, targets):
        x = self.words(tokens) + self.positions(torch.arange(TARGET))
        logits = F.linear(self.blocks(x, mask=causal(TARGET)), self.words.weight)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class LlamaBlock(nn.Module):
    HEADS, GROUPS = 4, 2

    def __init__(self):
        super().__init__()
        self.width = WIDTH // self.HEADS
        self.norm1, self.norm2 = (nn.RMSNorm(WIDTH, 1e-6) for _ in range(2))
        self.q, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(WIDTH, self.GROUPS * self.width, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, FEED_FORWARD, bias=False) for _ in range(2))
        self.down = nn.Linear(FEED_FORWARD, WIDTH, bias=False)

    def turned(self, x):
        """Rotates features i and i + d/2 of a head, as one complex number, by the position's angle."""
        half = self.width // 2
        angles = torch.arange(TARGET)[:, None] / 10000 ** (torch.arange(half, dtype=torch.float64) / half)
        z = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([z.real, z.imag], -1)

    def forward(self, x, seen):
        y = self.norm1(x)
        q, k, v = (f(y).unflatten(-1, (-1, self.width)).transpose(1, 2) for f in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(self.turned(q), self.turned(k), v, attn_mask=seen, enable_gqa=True)
        x = x + self.o(mixed.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """A decoder with a sliding window, like Mistral's."""
    NAMES = [("^words", "model.embed_tokens"), ("^head", "lm_head"), ("^norm", "model.norm"),
             ("^blocks", "model.layers"), ("norm1", "input_layernorm"), ("norm2", "post_attention_layernorm"),
             (r"\.([qkvo])\.", r".self_attn.\1_proj."), (r"\.(gate|up|down)\.", r".mlp.\1_proj.")]

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.blocks, self.norm = nn.ModuleList(LlamaBlock() for _ in range(2)), nn.RMSNorm(WIDTH, 1e-6)

    def forward(self, tokens, targets):
        x, seen = self.words(tokens), torch.ones(TARGET, TARGET, dtype=torch.bool).tril().triu(1 - WINDOW)
        for block in self.blocks:
            x = block(x, seen)
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def some_ignored(targets):
    targets[0, 1] = targets[1, -1] = -100
    return targets


def of_target(d, below=VOCABULARY):
    return d.ints([BATCH, TARGET], below)


def sentence_pair(d, below):
    lengths = torch.tensor([SOURCE, SOURCE - 2])
    return [d.ints([BATCH, SOURCE], VOCABULARY), lengths, of_target(d, below), some_ignored(of_target(d, below))]


MODELS = {
    "bert_masked_tokens": (MaskedBert, lambda d: [of_target(d), of_target(d, 2), torch.tensor([TARGET - 3, TARGET]),
                                                  some_ignored(of_target(d))]),
    "bert_classify": (ClassifyingBert, lambda d: [of_target(d), d.ints([BATCH], CLASSES)]),
    "transformer": (EncoderDecoder, lambda d: sentence_pair(d, OTHER_VOCABULARY)),
    "transformer_pre_norm": (PreNormEncoderDecoder, lambda d: sentence_pair(d, VOCABULARY)),
    "gpt2": (Gpt2, lambda d: [of_target(d), some_ignored(of_target(d))]),
    "llama": (Llama, lambda d: [of_target(d), some_ignored(of_target(d))]),
}


def draw_weights(model, d):
    """Draws multiples of 1/64, which gzip compresses well; the gains of norms lie around 1."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            drawn = (d.ints(list(weight.shape), 65) - 32) / 64
            weight.copy_(1 + drawn / 2 if "norm" in name and name.endswith("weight") else drawn)


def named(name, tensor, names):
    """Returns [(name in models/*.h, its rows)] of a module's parameter. {a|b|c} in a name: equal parts of the rows."""
    for pattern, to in names:
        name = re.sub(pattern, to, name)
    several = re.search(r"\{(.*)\}", name)
    if several is None:
        return [(name, tensor)]
    each = several[1].split("|")
    return [(name.replace(several[0], part), rows) for part, rows in zip(each, tensor.chunk(len(each)))]


def run(name, data):
    d = Draw(zlib.crc32(name.encode()))
    make, draw = MODELS[name]
    model, inputs = make().double(), draw(d)
    draw_weights(model, d)
    logits, loss = model(*inputs)
    loss.backward()

    def dump(tensor_of):
        return {n: data.add(x.detach().numpy()) for p, tensor in model.named_parameters()
                for n, x in named(p, tensor_of(tensor), make.NAMES)}
    return {"name": name, "op": "model", "opset": 0,
            "attributes": {"weights": dump(lambda weight: weight), "gradients": dump(lambda weight: weight.grad)},
            "inputs": [data.add(x.numpy()) for x in inputs],
            "outputs": [data.add(x.detach().numpy()) for x in (logits, loss)]}


def cases(data):
    return [run(name, data) for name in MODELS]
