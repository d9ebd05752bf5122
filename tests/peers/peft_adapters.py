"""Writes adapters of PEFT 0.21 with the logits that they give, and checks adapters that Weft has written.

    python3 peft_adapters.py FOLDER                            # writes FOLDER/bert, bert_adapter, gpt2, gpt2_adapter
    python3 peft_adapters.py --more FOLDER                     # writes the other adapters of these two models
    python3 peft_adapters.py --check=BASE ADAPTER TOKENS.json  # prints PEFT's logits of a BERT classifier as JSON

The folders of the first form are those of tests/peers/peft. Each has a tiny base model of random weights, an adapter
whose A and B are random, and logits.safetensors: tokens and logits in f32, with the adapter.
BASE is the Hugging Face folder from which `weft train classify --init=BASE --lora-rank=2 --out=ADAPTER` trained, and
TOKENS.json an array of what `weft tokenize --special` prints. `weft classify --scores` must give the same probabilities.
"""
import json
import pathlib
import sys

import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from safetensors.torch import save_file
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel


def randomize(model, *parts):
    for name, parameter in model.named_parameters():
        if any(part in name for part in parts):
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def write(folder, name, base, lora):
    randomize(base, "bias").save_pretrained(folder / name)
    adapted = randomize(get_peft_model(base, lora), "lora_", "classifier").eval()
    adapted.peft_config["default"].base_model_name_or_path = f"../{name}"
    adapted.save_pretrained(folder / f"{name}_adapter")
    tokens = torch.randint(0, 29, (3, 7))
    with torch.no_grad():
        logits = adapted(input_ids=tokens).logits
    save_file({"tokens": tokens.int(), "logits": logits.contiguous()}, folder / f"{name}_adapter" / "logits.safetensors")
    for file in ("README.md", "generation_config.json"):
        for model in (name, f"{name}_adapter"):
            (folder / model / file).unlink(missing_ok=True)


def write_all(folder):
    torch.manual_seed(3)
    bert = BertConfig(vocab_size=31, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
                      max_position_embeddings=10, num_labels=3, initializer_range=0.3)
    write(folder, "bert", BertForSequenceClassification(bert),
          LoraConfig(task_type=TaskType.SEQ_CLS, r=3, lora_alpha=5, lora_dropout=0.1, target_modules=["query", "dense"],
                     exclude_modules=["bert.pooler.dense"]))
    gpt2 = GPT2Config(vocab_size=29, n_positions=10, n_embd=8, n_layer=2, n_head=2, initializer_range=0.3,
                      bos_token_id=0, eos_token_id=0)
    write(folder, "gpt2", GPT2LMHeadModel(gpt2),
          LoraConfig(task_type=TaskType.CAUSAL_LM, r=2, lora_alpha=6, target_modules=["c_attn", "c_proj"],
                     fan_in_fan_out=True))


def write_more(folder):
    """Each adapter is saved, loaded again and evaluated in a base that PEFT may change. The base gpt2 ties its head."""
    attention = {"target_modules": ["c_attn"]}
    cases = {
        "gpt2_embedding": {"target_modules": ["c_attn", "wte"]},
        "gpt2_head": {"target_modules": ["lm_head"]},
        "gpt2_saved_embedding": {**attention, "modules_to_save": ["wte"]},
        "gpt2_saved_head": {**attention, "modules_to_save": ["lm_head"]},
        "gpt2_saved_both": {**attention, "modules_to_save": ["wte", "lm_head"]},
        "gpt2_still_tied": {**attention, "modules_to_save": ["wte"], "ensure_weight_tying": True},
        "gpt2_saved_layer": {**attention, "modules_to_save": ["attn.c_proj", "ln_f"]},
        "gpt2_patterns": {"target_modules": ["c_attn", "c_proj"], "use_rslora": True,
                          "rank_pattern": {"attn.c_proj": 3, "h.1.attn.c_attn": 1},
                          "alpha_pattern": {"^transformer.h.0.attn.c_attn": 5, "c_proj": 4}},
        "gpt2_all_biases": {**attention, "bias": "all"},
        "gpt2_lora_biases": {**attention, "bias": "lora_only"},
        "gpt2_orthogonal": {**attention, "init_lora_weights": "orthogonal"},
        "bert_embedding": {"target_modules": ["query", "word_embeddings"]},
        "bert_saved_pooler": {"target_modules": ["query"], "modules_to_save": ["classifier", "pooler"]},
    }
    torch.manual_seed(5)
    tokens = torch.randint(0, 29, (3, 7))
    for name, options in cases.items():
        base = name.split("_")[0]
        kind = BertForSequenceClassification if base == "bert" else GPT2LMHeadModel
        task = TaskType.SEQ_CLS if base == "bert" else TaskType.CAUSAL_LM
        lora = LoraConfig(task_type=task, r=2, lora_alpha=6, fan_in_fan_out=base == "gpt2", **options)
        adapted = get_peft_model(kind.from_pretrained(folder / base), lora)
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.data += 0.3 * torch.randn_like(parameter)
        adapted.peft_config["default"].base_model_name_or_path = f"../{base}"
        adapted.save_pretrained(folder / name)
        loaded = PeftModel.from_pretrained(kind.from_pretrained(folder / base), folder / name).eval()
        with torch.no_grad():
            logits = loaded(input_ids=tokens).logits
        save_file({"tokens": tokens.int(), "logits": logits.contiguous()}, folder / name / "logits.safetensors")
        (folder / name / "README.md").unlink(missing_ok=True)


def check(base, adapter, tokens):
    labels = json.loads(pathlib.Path(adapter, "config.json").read_text())["model"]["id2label"]
    model = BertForSequenceClassification.from_pretrained(base, num_labels=len(labels))
    model = PeftModel.from_pretrained(model, adapter).eval()
    for ids in json.loads(pathlib.Path(tokens).read_text()):
        with torch.no_grad():
            print(json.dumps(model(input_ids=torch.tensor([ids])).logits[0].tolist()))


if __name__ == "__main__":
    if sys.argv[1].startswith("--check="):
        check(sys.argv[1].split("=", 1)[1], *sys.argv[2:])
    elif sys.argv[1] == "--more":
        write_more(pathlib.Path(sys.argv[2]))
    else:
        write_all(pathlib.Path(sys.argv[1]))
