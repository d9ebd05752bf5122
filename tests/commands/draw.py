#!/usr/bin/env python3
"""Draws tiny models with unusual end tokens, names and tokenizers, and writes what transformers computes with them.

    pip install torch==2.15.0 transformers==5.24.0 tokenizers==0.23.3 safetensors
    tests/commands/draw.py tests/commands/models tests/commands/commands.json

`models` gets a folder for each model. A case of commands.json is a command with a model: the files of the model's
folder that it changes (null: the file is missing), the arguments, and either the results of transformers or words of
the error that is wanted. commands_test.cc runs the program with each case.
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

TEXT = "Hello world, this is a small text with words of no use: hello again, small words. What is rain? Rain is water."
USER, END = "<|im_start|>", "<|im_end|>"


def byte_level(special, template=None):
    """Returns a byte-level tokenizer with ordinary tokens "</s>" and "<eos>", which no file calls an end."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=290, initial_alphabet=sorted(
        tokenizers.pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    contents = json.loads(tokenizer.to_str())
    vocabulary = contents["model"]["vocab"]
    for text in ("</s>", "<eos>"):
        vocabulary[text] = len(vocabulary)
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(contents))
    tokenizer.add_special_tokens(special)
    if template is not None:
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
            single=f"{template} $A", special_tokens=[(template, tokenizer.token_to_id(template))])
    return tokenizer


def word_piece():
    """Returns a WordPiece tokenizer whose special tokens have names of its own."""
    words = ["<pad>", "<oov>", "<cls>", "<sep>", "<blank>", "hello", "world", "rain", "is", "water", ",", ".", "?",
             "what", "small", "##er", "##s", "a", "text", "no"]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece({w: i for i, w in enumerate(words)},
                                                                 unk_token="<oov>"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    tokenizer.add_special_tokens(words[:5])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<cls> $A <sep>", pair="<cls> $A <sep> $B:1 <sep>:1", special_tokens=[("<cls>", 2), ("<sep>", 3)])
    return tokenizer


def save(folder, model, tokenizer, tokenizer_config):
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config, indent=1) + "\n")


def draw_models(folder):
    """Writes the models, and returns their classes by name."""
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.5}
    tokenizer = byte_level([USER, END])
    end = tokenizer.token_to_id(END)
    torch.manual_seed(3)
    # The table has rows beyond the tokenizer's tokens.
    gpt2 = transformers.GPT2Config(vocab_size=tokenizer.get_vocab_size() + 6, n_positions=48, n_embd=16, n_layer=2,
                                   n_head=2, initializer_range=0.5, bos_token_id=None, eos_token_id=end)
    model = transformers.GPT2LMHeadModel(gpt2).eval()
    with torch.no_grad():  # rows without a token would be the likeliest
        model.transformer.wte.weight[tokenizer.get_vocab_size():] *= 2
    save(folder / "gpt2", model, tokenizer, {"eos_token": END, "tokenizer_class": "PreTrainedTokenizerFast"})

    tokenizer = byte_level(["<|begin|>", USER, END], template="<|begin|>")
    torch.manual_seed(5)
    llama = transformers.LlamaConfig(vocab_size=tokenizer.get_vocab_size(), num_key_value_heads=1, intermediate_size=24,
                                     max_position_embeddings=48, bos_token_id=tokenizer.token_to_id("<|begin|>"),
                                     eos_token_id=tokenizer.token_to_id(END), **small)
    save(folder / "llama", transformers.LlamaForCausalLM(llama).eval(), tokenizer,
         {"bos_token": "<|begin|>", "eos_token": END, "tokenizer_class": "PreTrainedTokenizerFast"})

    tokenizer = word_piece()
    names = {"pad_token": "<pad>", "unk_token": "<oov>", "cls_token": "<cls>", "sep_token": "<sep>",
             "mask_token": "<blank>", "tokenizer_class": "PreTrainedTokenizerFast"}
    bert = dict(vocab_size=tokenizer.get_vocab_size(), intermediate_size=24, max_position_embeddings=24, **small)
    torch.manual_seed(7)
    labels = {0: "rain", 1: "two words", 2: "</s>"}
    config = transformers.BertConfig(id2label=labels, label2id={v: k for k, v in labels.items()}, **bert)
    save(folder / "classifier", transformers.BertForSequenceClassification(config).eval(), tokenizer, names)
    torch.manual_seed(8)
    save(folder / "masked", transformers.BertForMaskedLM(transformers.BertConfig(**bert)).eval(), tokenizer, names)
    for path in folder.glob("*/config.json"):  # the version of the library would change with each update
        config = json.loads(path.read_text())
        config.pop("transformers_version", None)
        path.write_text(json.dumps(config, indent=1) + "\n")


class Cases:
    def __init__(self, models):
        self.models, self.cases = models, []

    def folder(self, model, files):
        """Returns a copy of a model's folder, with some of its files changed."""
        copy = pathlib.Path(tempfile.mkdtemp()) / model
        shutil.copytree(self.models / model, copy)
        for name, contents in files.items():
            (copy / name).unlink(missing_ok=True)
            if contents is not None:
                (copy / name).write_text(json.dumps(contents))
        return copy

    def changed(self, model, **keys):
        """Returns the model's config.json with some keys changed. The value ... removes a key."""
        config = json.loads((self.models / model / "config.json").read_text())
        config.update(keys)
        return {"config.json": {k: v for k, v in config.items() if v is not ...}}

    def add(self, name, model, files, arguments, expected, stdin=""):
        self.cases.append({"name": name, "model": model, "files": files, "arguments": arguments, "stdin": stdin,
                           **expected})

    def refused(self, name, model, files, arguments, words, stdin=""):
        self.add(name, model, files, arguments, {"error": words}, stdin)

    def generate(self, name, model="gpt2", prompt="Hello", files=None, length=12, more=(), library=None, beams=False):
        """Adds a greedy text, by transformers' own generate with the settings of the folder's files."""
        folder = self.folder(model, files or {})
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        loaded = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        ids = tokenizer.encode(prompt).ids
        settings = {"max_new_tokens": length, "do_sample": False, "pad_token_id": 0} | (library or {})
        if length is None:
            del settings["max_new_tokens"]
        size = tokenizer.get_vocab_size()
        out = loaded.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                              suppress_tokens=list(range(size, loaded.config.vocab_size)) or None, **settings)
        tokens = out[0, len(ids):].tolist()
        with torch.no_grad():
            log = torch.log_softmax(loaded(out).logits[0].double(), -1)
        logprobs = [round(log[len(ids) - 1 + i, t].item(), 5) for i, t in enumerate(tokens)]
        ends = loaded.generation_config.eos_token_id
        ends = settings.get("eos_token_id", ends)
        ends = ends if isinstance(ends, list) else [ends]
        if tokens and tokens[-1] in ends:  # the program does not print the end token
            tokens, logprobs = tokens[:-1], logprobs[:-1]
        arguments = ["generate", "--model=MODEL", "--prompt=" + prompt, "--temperature=0", "--json", "--logprobs=0",
                     *([] if length is None else [f"--length={length}"]), *more]
        expected = {"tokens": tokens, "logprobs": logprobs}
        if beams:  # which print no log-probabilities
            arguments = [a for a in arguments if not a.startswith(("--logprobs", "--temperature"))]
            expected = {"text": prompt + tokenizer.decode(tokens)}
        self.add(name, model, files or {}, arguments, expected)
        return tokens

    def classify(self, name, files, text, special=None):
        folder = self.folder("classifier", files)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
        encoded = tokenizer(text, return_tensors="pt", split_special_tokens=None if special is None else not special)
        with torch.no_grad():
            logits = model(encoded["input_ids"]).logits[0]
        several = model.config.problem_type == "multi_label_classification"
        probabilities = (torch.sigmoid(logits) if several else torch.softmax(logits, -1)).tolist()
        labels = [model.config.id2label[i] for i in range(len(probabilities))]
        labels = [f"{label} ({i})" if labels.count(label) > 1 else label for i, label in enumerate(labels)]
        self.add(name, "classifier", files, ["classify", "--model=MODEL", "--scores", *(
            [] if special is None else [f"--special-tokens={str(special).lower()}"])],
                 {"scores": {label: round(p, 6) for label, p in zip(labels, probabilities)}}, text + "\n")

    def fill_mask(self, name, text):
        folder = self.folder("masked", {})
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
        ids = tokenizer.encode(text).ids
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, ids.index(tokenizer.token_to_id("<blank>"))]
        best = torch.softmax(logits, -1).topk(3)
        self.add(name, "masked", {}, ["fill-mask", "--model=MODEL", "--top-k=3"],
                 {"masks": [{"token": t, "score": round(p, 6)} for p, t in zip(best.values.tolist(),
                                                                             best.indices.tolist())]}, text + "\n")

    def tokenize(self, name, model, text, more=(), special=True, files=None):
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder(model, files or {}))
        self.add(name, model, files or {}, ["tokenize", "--tokenizer=MODEL", *more],
                 {"ids": tokenizer(text, add_special_tokens=special)["input_ids"]}, text + "\n")


def draw_cases(cases):
    chat = f"{USER}user\nWhat is rain?{END}\n{USER}assistant\n"
    size = tokenizers.Tokenizer.from_file(str(cases.models / "gpt2/tokenizer.json")).get_vocab_size()
    free = cases.generate("no end token in any file", files=cases.changed("gpt2", eos_token_id=None) | {
        "tokenizer_config.json": None})
    second, fourth, sixth = free[1], free[3], free[5]
    config = lambda **keys: cases.changed("gpt2", **keys)  # noqa: E731
    cases.generate("the end token of config.json", files=config(eos_token_id=fourth))
    cases.generate("a list of end tokens in config.json", files=config(eos_token_id=[sixth, fourth]))
    settings = lambda **keys: {"generation_config.json": {"_from_model_config": False, **keys}}  # noqa: E731
    cases.generate("the end token of generation_config.json", files=settings(eos_token_id=sixth))
    cases.generate("a list in generation_config.json", files=settings(eos_token_id=[fourth, second]))
    cases.generate("generation_config.json before config.json",
                   files=settings(eos_token_id=sixth) | config(eos_token_id=second))
    text = tokenizers.Tokenizer.from_file(str(cases.models / "gpt2/tokenizer.json")).id_to_token
    cases.generate("the end token of tokenizer_config.json",
                   files=config(eos_token_id=...) | {"tokenizer_config.json": {"eos_token": text(fourth)}},
                   library={"eos_token_id": fourth})
    cases.generate("tokenizer_config.json has an object",
                   files=config(eos_token_id=...) | {"tokenizer_config.json": {"eos_token": {
                       "__type": "AddedToken", "content": text(fourth)}}}, library={"eos_token_id": fourth})
    cases.generate("--end-token overrides the files", files=config(eos_token_id=second),
                   more=[f"--end-token={fourth}"], library={"eos_token_id": fourth})
    cases.generate("special tokens in a prompt", prompt=chat)
    cases.generate("a prompt of one special token", prompt=USER)
    cases.generate("special tokens in a prompt after a begin token", model="llama", prompt=chat)
    cases.generate("a begin token by the template", model="llama", prompt="Hello world")
    cases.generate("an ordinary </s> in a prompt", prompt="a</s>b<eos>")
    cases.generate("max_new_tokens", files=settings(max_new_tokens=5, eos_token_id=None), length=None)
    cases.generate("max_new_tokens and a flag", files=settings(max_new_tokens=5, eos_token_id=None), length=7)
    cases.generate("repetition_penalty", files=settings(repetition_penalty=1.7, eos_token_id=None))
    beams = dict(eos_token_id=fourth, num_beams=3, early_stopping=True)
    cases.generate("a beam search", files=settings(**beams), beams=True)
    cases.generate("a beam search with a length penalty", files=settings(length_penalty=2.5, **beams), beams=True)
    for key, value in [("eos_token_id", "x"), ("eos_token_id", 1.5), ("eos_token_id", [1, "x"]),
                       ("repetition_penalty", "high"),
                       ("max_new_tokens", "many"), ("max_new_tokens", 0), ("eos_token_id", 2**32 + 7)]:
        cases.refused(f"{key} {json.dumps(value)}", "gpt2", settings(**{key: value}),
                      ["generate", "--model=MODEL", "--prompt=a"], [key, "generation_config.json"])
    for token in size + 100, -1:  # which the model never writes
        cases.generate(f"the end token {token}", files=settings(eos_token_id=token), library={"eos_token_id": None})
        cases.cases[-1]["note"] = "eos_token_id"
    # transformers takes no end token from config.json beside generation_config.json.
    cases.generate("generation_config.json without an end token",
                   files=settings(top_k=5) | config(eos_token_id=fourth) | {"tokenizer_config.json": None})
    cases.generate("forced tokens", prompt="Hello world", files=settings(forced_bos_token_id=7, eos_token_id=sixth))
    cases.cases[-1]["note"] = "forced_bos_token_id is 7, which is not used"
    template = tokenizers.Tokenizer.from_file(str(cases.models / "gpt2/tokenizer.json"))
    template.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, template.token_to_id(END))])
    cases.generate("a template that ends texts", files={"tokenizer.json": json.loads(template.to_str())})
    cases.refused("a prompt beyond the positions", "gpt2", {},
                  ["generate", "--model=MODEL", "--prompt=" + "x" * 60], ["context", "48"])

    classify = lambda **keys: cases.changed("classifier", **keys)  # noqa: E731
    cases.classify("labels with unusual names", {}, "hello world, what is rain?")
    cases.classify("several labels", classify(problem_type="multi_label_classification"), "small rain is no water")
    cases.classify("one label", classify(problem_type="single_label_classification"), "hello")
    spelt = "hello <blank> world <sep> rain"
    cases.classify("special tokens in a text to classify", {}, spelt)
    cases.classify("special tokens as letters", {}, spelt, special=False)
    split = json.loads((cases.models / "classifier/tokenizer_config.json").read_text()) | {"split_special_tokens": True}
    cases.classify("split_special_tokens", {"tokenizer_config.json": split}, spelt)
    cases.classify("a flag overrides split_special_tokens", {"tokenizer_config.json": split}, spelt, special=True)
    cases.classify("labels of the same name", classify(id2label={0: "rain", 1: "sun", 2: "rain"}, label2id={}), "hello")
    cases.refused("num_labels beside other labels", "classifier", classify(num_labels=2),
                  ["classify", "--model=MODEL"], ["num_labels is 2", "3 labels"], "hello\n")
    cases.classify("a kind of positions that BERT no longer reads", classify(position_embedding_type="relative_key"),
                   "hello world")
    cases.refused("a classifier of multiple choice", "classifier",
                  classify(architectures=["BertForMultipleChoice"]), ["classify", "--model=MODEL"],
                  ["classifier.weight"], "hello\n")
    cases.fill_mask("a mask with an unusual name", "hello <blank>, what is rain?")
    cases.tokenize("special tokens in a text", "gpt2", chat.replace("\n", " "))
    cases.tokenize("unusual special tokens of WordPiece", "masked", "hello <blank> smallers zebra <sep> rain",
                   special=False)
    gpt2 = {"tokenizer_class": "GPT2Tokenizer", "eos_token": END, "bos_token": END, "unk_token": END}
    for space in True, False:
        cases.tokenize(f"add_prefix_space {space}", "gpt2", "small words",
                       files={"tokenizer_config.json": gpt2 | {"add_prefix_space": space}})


def main():
    models, path = map(pathlib.Path, sys.argv[1:])
    shutil.rmtree(models, ignore_errors=True)
    models.mkdir(parents=True)
    draw_models(models)
    cases = Cases(models)
    draw_cases(cases)
    path.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases.cases) + "\n]\n")


if __name__ == "__main__":
    main()
