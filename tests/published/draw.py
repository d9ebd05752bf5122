"""Writes tests/published: tiny models of transformers, and what each key of their config.json changes.

A folder holds the config.json and the model.safetensors of a model with random weights. Its cases.json.gz holds some of
the model's outputs; some gradients of a loss by each tensor, where the loss is the sum of cos(i) times output i; and a
row for each variation of a key: [key, value, result]. The result is "same" if the outputs stay, "error" if the class
can't be loaded or computed, or else the other outputs. The keys are those of config.to_dict(), and those of older
versions. A value is changed by its type. Encoder-decoders also have the tokens that greedy search generates.

    python3 -m pip install torch transformers==5.24.0
    python3 tests/published/draw.py [NAME...]    without names: all models
"""
import copy
import gzip
import json
import os
import shutil
import sys
import tempfile
import types
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers as t
from safetensors.torch import load_file
from transformers.pipelines.text_classification import TextClassificationPipeline

from models import ABSENT, MODELS  # noqa: E402

torch.set_num_threads(1)
warnings.filterwarnings("ignore")
t.logging.set_verbosity(50)
t.logging.disable_progress_bar()
HERE = os.path.dirname(os.path.abspath(__file__))
OUTPUTS = 12  # numbers of a model's outputs that are kept, at equal distances

TOKENS = [1, 5, 9, 2, 7, 11, 3, 8]
SEGMENTS = [0, 0, 0, 0, 1, 1, 1, 1]
TARGETS = [2, 6, 4, 10, 12]
START, END = 3, 2  # the first token that a decoder reads, and the token that ends its text


# Keys that older versions wrote, with the values that published files have.
OLD = {
    "torch_dtype": "float32", "use_cache": True, "tie_encoder_decoder": False, "pruned_heads": {}, "torchscript": False,
    "use_bfloat16": False, "is_decoder": False, "add_cross_attention": False, "finetuning_task": "sst2", "prefix": None,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "gradient_checkpointing": False,
    "output_past": True, "xla_device": None, "tf_legacy_loss": False, "_num_labels": 3, "num_labels": 3, "num_beams": 4,
    "max_length": 20, "min_length": 0, "do_sample": False, "early_stopping": False, "temperature": 1.0, "top_k": 50,
    "top_p": 1.0, "typical_p": 1.0, "repetition_penalty": 1.0, "length_penalty": 1.0, "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0, "bad_words_ids": [[3]], "num_return_sequences": 1, "num_beam_groups": 1,
    "diversity_penalty": 0.0, "output_scores": False, "return_dict_in_generate": False, "remove_invalid_values": False,
    "forced_bos_token_id": None, "exponential_decay_length_penalty": None, "suppress_tokens": None,
    "begin_suppress_tokens": None, "sep_token_id": None, "tokenizer_class": None, "use_return_dict": True,
    "position_embedding_type": "absolute", "n_ctx": 16, "rope_theta": 10000.0, "rope_scaling": None, "pretraining_tp": 1,
    "directionality": "bidi", "pooler_fc_size": 768, "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128, "pooler_type": "first_token_transform", "classif_dropout": 0.0,
    "num_hidden_layers": 2, "normalize_before": False, "normalize_embedding": False, "add_final_layer_norm": False,
    "static_position_embeddings": True, "add_bias_logits": False, "extra_pos_embeddings": 1, "n_special": 0,
    "gap_size": 0, "net_structure_type": 0, "num_memory_blocks": 0, "down_scale_factor": 1,
    "global_rope_theta": 1000.0, "local_rope_theta": 1000.0, "global_attn_every_n_layers": 2, "layer_norm_eps": 1e-5,
    "reference_compile": True, "repad_logits_with_grad": False,
    "force_bos_token_to_be_generated": False, "predict_special_tokens": True, "function_to_apply": "none",
}
# Further values of keys whose values are names.
NAMES = {
    "problem_type": ["regression", "multi_label_classification", "single_label_classification", "other"],
    "position_embedding_type": ["relative_key"],
    "rope_scaling": [{"type": "linear", "factor": 2.0}, {"rope_type": "dynamic", "factor": 2.0}],
    "rope_parameters": [{"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}],
    "architectures": [["BertForCausalLM"], ["RobertaForCausalLM"], ["GPT2DoubleHeadsModel"],
                      ["LlamaForSequenceClassification"], ["MarianForCausalLM"]],
    "torch_dtype": ["float16"],
}
NAMES["feed_forward_proj"] = ["relu", "gated-relu", "gated-gelu", "gelu", "gated-gelu_new", "gated", "a-b-c"]
ACTIVATIONS = ["relu", "gelu_new", "silu", "gelu_pytorch_tanh", "quick_gelu", "tanh"]
SKIPPED = {"model_type", "transformers_version"}  # the first names another family


def variations(key, value):
    """Returns the other values that a key gets."""
    if isinstance(value, bool):
        values = [not value]
    elif isinstance(value, int):
        values = [value + 1, value // 2]
    elif isinstance(value, float):
        values = [2 * value if value >= 1 else value + 0.25]
    elif isinstance(value, str):
        values = ACTIVATIONS if key.endswith(("_act", "activation_function")) else [value + "x"]
    elif isinstance(value, list):
        values = [[], value + ["x"]]
    elif isinstance(value, dict):
        values = [{}] + [{**value, name: other} for name in value for other in variations(name, value[name])]
    else:
        values = [True, 1, 0.5, "x"]
    values = values + NAMES.get(key, [])
    return [v for v in values + ([] if value is None else [None]) if v != value or type(v) is not type(value)]


def inputs(model):
    kind = model.config.model_type
    ids = torch.tensor([TOKENS])
    if kind in ("vit", "deit"):
        shape = inputs.pixel_shape
        pixels = torch.sin(torch.arange(torch.Size(shape).numel(), dtype=torch.float32)).reshape(shape)
        return {"pixel_values": pixels}
    if kind in ("mpnet", "m2m_100"):
        ids = torch.where(ids == 1, 4, ids)  # the padding token gets no gradient, and no text of M2M100 has it
    if type(model).__name__.endswith("ForMultipleChoice"):
        ids = ids[None]  # one choice
    if kind in ("bert", "electra", "albert"):
        return {"input_ids": ids, "token_type_ids": torch.tensor(SEGMENTS).expand(ids.shape)}
    if kind in ("roberta", "xlm-roberta", "camembert", "distilbert", "mpnet", "modernbert"):
        return {"input_ids": ids}
    if type(model).__name__.endswith(("ForCausalLM", "LMHeadModel")):
        return {"input_ids": ids}
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "decoder_input_ids": torch.tensor([TARGETS])}


def raw(model, out):
    """Returns the numbers that the model computes: those of all its heads or, without a head, of both outputs."""
    name = type(model).__name__
    if name in ("BertForPreTraining", "AlbertForPreTraining"):
        parts = [out.prediction_logits, out.seq_relationship_logits if name[0] == "B" else out.sop_logits]
    elif name.endswith("ForQuestionAnswering"):
        parts = [torch.stack([out.start_logits, out.end_logits], -1)]
    elif name.endswith("Model") and not name.endswith("LMHeadModel"):
        parts = [out.last_hidden_state] + ([out.pooler_output] if getattr(model, "pooler", None) is not None else [])
    else:
        parts = [out.logits]
    return torch.cat([part.flatten() for part in parts])


def outputs(model):
    """Returns the outputs as a list: scores of a text's or a picture's labels, or else logits."""
    with torch.no_grad():
        out = model.eval().float()(**inputs(model), return_dict=True)
    name = type(model).__name__
    if name.endswith(("ForSequenceClassification", "ForImageClassification", "WithTeacher")):
        # The pipelines of texts and of pictures choose in the same way.
        scores = TextClassificationPipeline.postprocess(types.SimpleNamespace(model=model), {"logits": out.logits},
                                                        _legacy=True, top_k=None)
        return [each["score"] for each in scores]
    return raw(model, out).tolist()


def gradients(model):
    """Returns some gradients of each parameter, except tables of sinusoids, which papers do not train."""
    model.eval().float().zero_grad()
    flat = raw(model, model(**inputs(model), return_dict=True))
    (flat * torch.cos(torch.arange(len(flat), dtype=torch.float32))).sum().backward()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():  # a saved tensor may have another name
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
        model.save_pretrained(folder)
        saved = load_file(os.path.join(folder, "model.safetensors"))
    sinusoids, buffers = model.config.model_type in ("marian", "pegasus"), dict(model.named_buffers())
    return {name: kept(gradient.flatten().tolist()) for name, gradient in saved.items()
            if name not in buffers and not (sinusoids and name.endswith("embed_positions.weight"))}


def generated(model):
    """Returns the tokens of greedy search, without the first one and the end token, and their log-probability."""
    settings = t.GenerationConfig(decoder_start_token_id=START, eos_token_id=END, pad_token_id=0, num_beams=1,
                                  do_sample=False, max_new_tokens=12)
    given = {key: value for key, value in inputs(model).items() if key != "decoder_input_ids"}
    model.generation_config = settings
    with torch.no_grad():
        tokens = model.eval().float().generate(**given)
        logits = model(**given, decoder_input_ids=tokens[:, :-1]).logits
    chosen = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])
    return {"tokens": [token for token in tokens[0, 1:].tolist() if token != END],
            "log_probability": round(chosen.sum().item(), 5)}


def kept(values):
    return [round(values[i * len(values) // min(OUTPUTS, len(values))], 6) for i in range(min(OUTPUTS, len(values)))]


def result(model_class, folder, config, base):
    """Returns what the class makes of the folder with this config.json."""
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    try:
        model, info = model_class.from_pretrained(folder, output_loading_info=True, attn_implementation="eager",
                                                  dtype=torch.float32)
        if info["missing_keys"] or info["mismatched_keys"] or info["error_msgs"]:
            return "error"  # the class draws random weights
        values = outputs(model)
    except Exception:
        return "error"
    if not all(map(lambda x: x == x and abs(x) < 1e30, values)):
        return "error"
    if len(values) == len(base) and max(abs(a - b) for a, b in zip(values, base)) < 1e-5:
        return "same"
    return kept(values)


def draw(name):
    model_class, settings, *same = MODELS[name]
    if "image_size" in settings:  # a changed key does not change the picture
        size = settings["image_size"]
        inputs.pixel_shape = [1, settings["num_channels"], *(size if isinstance(size, list) else (size, size))]
    torch.manual_seed(len(name) + 7)
    config = model_class.config_class(**settings)
    config._attn_implementation = "eager"
    model = model_class(config)
    for parameter in model.parameters():  # the initial weights are too small to make differences
        with torch.no_grad():
            parameter.normal_(0.0, 0.4)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_(0.0, 0.4)
    model.tie_weights()
    if name.endswith("_untied"):
        model.lm_head.weight = torch.nn.Parameter(0.4 * torch.randn_like(model.lm_head.weight))
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    for extra in ("generation_config.json",):
        if os.path.exists(os.path.join(folder, extra)):
            os.remove(os.path.join(folder, extra))
    full = {**model.config.to_dict(), "architectures": [model_class.__name__], "model_type": config.model_type}
    full = json.loads(json.dumps(full))
    full.pop("transformers_version", None)
    for changes in same:
        full = {key: value for key, value in {**full, **changes}.items() if value != ABSENT}
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(full, file)
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(os.path.join(folder, "model.safetensors"), scratch)
        read, _ = model_class.from_pretrained(folder, output_loading_info=True, attn_implementation="eager",
                                              dtype=torch.float32)
        base = outputs(read)
        assert result(model_class, scratch, full, base) == "same", name
        rows = []
        for key, value in {**OLD, **full}.items():
            if key in SKIPPED:
                continue
            changes = [value] if key not in full else []
            changes += variations(key, value)
            for other in changes:
                rows.append([key, other, result(model_class, scratch, {**copy.deepcopy(full), key: other}, base)])
            if key in full:
                without = {k: v for k, v in full.items() if k != key}
                rows.append([key, ABSENT, result(model_class, scratch, without, base)])
    print(name, len(rows), {k: sum(r[2] == k for r in rows) for k in ("same", "error")}, flush=True)
    cases = {"outputs": kept(base), "count": len(base), "gradients": gradients(read), "rows": rows}
    if read.config.is_encoder_decoder:
        cases["generated"] = generated(model_class.from_pretrained(folder, attn_implementation="eager"))
        print(name, "generates", cases["generated"])
    with open(os.path.join(folder, "cases.json.gz"), "wb") as file:
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            packed.write(json.dumps(cases, separators=(",", ":")).encode())


def main():
    for name in sys.argv[1:] or MODELS:
        draw(name)


main()
