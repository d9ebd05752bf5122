"""Writes tests/encoders: tiny encoders of transformers with their tokenizers, and what they make of texts.

A folder holds config.json, model.safetensors and tokenizer.json of a model with random weights, and expected.json: the
sentence embeddings (means of the hidden states, of length 1) of TEXTS, and either the five likeliest tokens of a mask
with their probabilities, or the probabilities of a pair's labels. Texts run as one batch with padding.

    python3 -m pip install torch transformers==5.24.0 tokenizers
    python3 tests/encoders/draw.py [NAME...]    without names: all models
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers as t
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["a small cat", "the cat sat on the mat and saw a small dog", "dog"]
MASKED = "the cat saw a {} dog"
PAIR = ["the cat sat", "a dog saw the small cat on the mat"]
WORDS = ["the cat sat on the mat", "a small dog saw the cat", "the small dog sat and saw a mat"]
SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
             max_position_embeddings=34)


def trained(tokenizer, trainer, specials):
    """Trains the tokenizer on WORDS, and adds the special tokens by RoBERTa's format or, with [CLS], by BERT's."""
    tokenizer.train_from_iterator(WORDS * 9, trainer)
    begin, end = specials[0], specials[2]
    around = [(end, tokenizer.token_to_id(end)), (begin, tokenizer.token_to_id(begin))]
    if begin != "[CLS]":
        tokenizer.post_processor = processors.RobertaProcessing(*around)
    elif isinstance(tokenizer.model, models.WordPiece):
        tokenizer.post_processor = processors.BertProcessing(*around)
    else:  # as ModernBERT and ALBERT
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=around)
    return tokenizer


def byte_level(specials):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return trained(tokenizer, trainers.BpeTrainer(vocab_size=300, special_tokens=specials, show_progress=False,
                                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), specials)


def word_piece(specials):
    tokenizer = Tokenizer(models.WordPiece(unk_token=specials[3]))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return trained(tokenizer, trainers.WordPieceTrainer(vocab_size=60, special_tokens=specials, show_progress=False),
                   specials)


def unigram(specials):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return trained(tokenizer, trainers.UnigramTrainer(vocab_size=40, special_tokens=specials, unk_token=specials[3],
                                                      show_progress=False), specials)


ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BERT = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
MODELS = {
    "roberta_masked": (t.RobertaForMaskedLM, {**SIZES, "type_vocab_size": 1}, byte_level, ROBERTA),
    "roberta_pairs": (t.RobertaForSequenceClassification, {**SIZES, "type_vocab_size": 1, "num_labels": 3}, byte_level,
                      ROBERTA),
    "mpnet_masked": (t.MPNetForMaskedLM, SIZES, word_piece, ROBERTA),
    "distilbert_pairs": (t.DistilBertForSequenceClassification,
                         dict(dim=16, n_layers=2, n_heads=2, hidden_dim=24, max_position_embeddings=32, num_labels=3),
                         word_piece, BERT),
    "modernbert_masked": (t.ModernBertForMaskedLM, {**SIZES, "local_attention": 4, "num_hidden_layers": 3}, byte_level,
                          BERT),
    "modernbert_pairs": (t.ModernBertForSequenceClassification, {**SIZES, "local_attention": 4, "num_labels": 3,
                                                                 "classifier_pooling": "mean"}, byte_level, BERT),
    "albert_masked": (t.AlbertForMaskedLM, {**SIZES, "embedding_size": 8, "max_position_embeddings": 48}, unigram, BERT),
    "albert_pairs": (t.AlbertForSequenceClassification, {**SIZES, "embedding_size": 8, "max_position_embeddings": 48,
                                                            "num_labels": 3}, unigram, BERT),
}


def draw(name):
    model_class, sizes, make, specials = MODELS[name]
    torch.manual_seed(len(name))
    tokenizer = make(specials)
    fast = t.PreTrainedTokenizerFast(tokenizer_object=tokenizer, cls_token=specials[0], pad_token=specials[1],
                                     sep_token=specials[2], unk_token=specials[3], mask_token=specials[4])
    config = model_class.config_class(**sizes, vocab_size=len(fast), pad_token_id=fast.pad_token_id)
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.4)
    model.tie_weights()
    folder = os.path.join(HERE, name)
    model.save_pretrained(folder)
    if os.path.exists(os.path.join(folder, "generation_config.json")):
        os.remove(os.path.join(folder, "generation_config.json"))
    tokenizer.save(os.path.join(folder, "tokenizer.json"))

    def inputs(*texts):
        batch = fast(*texts, padding=True, return_tensors="pt", return_token_type_ids=True)
        segments = ("token_type_ids",) if name.startswith("albert") else ()
        return {key: batch[key] for key in ("input_ids", "attention_mask", *segments)}
    with torch.no_grad():
        batch = inputs(TEXTS)
        hidden = getattr(model, model.base_model_prefix)(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1).float()
        means = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)
        expected = {"texts": TEXTS, "embeddings": means.tolist()}
        if name.endswith("_masked"):
            text = MASKED.format(fast.mask_token)
            batch = inputs([text])
            at = batch["input_ids"][0].tolist().index(fast.mask_token_id)
            values, ids = model(**batch).logits[0, at].softmax(-1).topk(5)
            expected.update(masked=text, tokens=ids.tolist(), probabilities=values.tolist())
        else:
            expected.update(pair=PAIR, probabilities=model(**inputs([PAIR[0]], [PAIR[1]])).logits[0].softmax(-1).tolist())
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(expected, file)


for each in sys.argv[1:] or MODELS:
    draw(each)
