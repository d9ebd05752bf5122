"""Writes tiny translation models of transformers and CTranslate2, and translations.json: what these libraries translate.

A training of translations.json has a pair of lines and their loss with the model.

  python3 tests/translators/draw.py      # transformers 5.24, tokenizers, sentencepiece and ctranslate2 4.8.5

A case of translations.json names a model of this folder, changes of its generation_config.json or config.json, flags of
`weft translate`, and the translations of LINES with their log-probabilities.
"""
import json
import os
import random
import shutil
import tempfile

import ctranslate2
import numpy
import sentencepiece
import tokenizers
import torch
import transformers
from ctranslate2.specs import common_spec, transformer_spec

transformers.logging.set_verbosity_error()
HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = "the a dog cat house runs sees big small red tree in man woman walks eats an apple bread water and not".split()
GERMAN = "der ein Hund Katze Haus rennt sieht groß klein rot Baum in Mann Frau geht isst Apfel Brot Wasser und".split()
TARGET = "Der Hund sieht ein Haus."
LINES = ["The dog sees a big house.", "A small cat eats bread and water!", "runs", "Not a man walks in the house 4 é"]
MORE = ["opus", "bart", "m2m_100", "t5"]
SIZES = dict(d_model=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
             encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=40, init_std=0.4)


def texts(words=WORDS):
    draw = random.Random(0)
    return [" ".join(draw.choice(words) for _ in range(draw.randint(3, 9))).capitalize() + draw.choice([".", "!", ""])
            for _ in range(2000)]


def save(name, model, tokenizer, generation, unlikely=()):
    with torch.no_grad():
        draw = torch.Generator().manual_seed(7)
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=draw))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.copy_(0.5 * torch.randn(model.final_logits_bias.shape, generator=draw))
            model.final_logits_bias[0, model.config.eos_token_id] += 2.5
            model.final_logits_bias[0, list(unlikely)] -= 30
        else:
            generation = dict(generation, suppress_tokens=list(unlikely))
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    model.generation_config = transformers.GenerationConfig(**generation)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def marian():
    with tempfile.TemporaryDirectory() as folder:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts()), model_prefix=folder + "/m", vocab_size=70, bos_id=-1, eos_id=0, unk_id=1,
            pad_id=-1, character_coverage=1.0, normalization_rule_name="identity", minloglevel=2)
        pieces = sentencepiece.SentencePieceProcessor(model_file=folder + "/m.model")
        vocabulary = {pieces.id_to_piece(i): i for i in range(pieces.get_piece_size())}
        padding = vocabulary["<pad>"] = len(vocabulary)
        json.dump(vocabulary, open(folder + "/vocab.json", "w"))
        tokenizer = transformers.MarianTokenizer(folder + "/m.model", folder + "/m.model", folder + "/vocab.json",
                                                 source_lang="en", target_lang="en")
        torch.manual_seed(3)
        model = transformers.MarianMTModel(transformers.MarianConfig(
            **SIZES, vocab_size=len(vocabulary), activation_function="swish", scale_embedding=True, eos_token_id=0,
            forced_eos_token_id=0, pad_token_id=padding, decoder_start_token_id=padding))
        save("marian", model, tokenizer, dict(
            bad_words_ids=[[padding]], num_beams=4, max_length=16, forced_eos_token_id=0, pad_token_id=padding,
            decoder_start_token_id=padding, eos_token_id=0))


def opus():
    """Writes a model as OPUS-MT publishes them: a SentencePiece model for each side, and no generation_config.json."""
    with tempfile.TemporaryDirectory() as folder:
        names = {}
        for side, words in (("source", WORDS), ("target", GERMAN)):
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts(words)), model_prefix=folder + "/" + side, vocab_size=70, bos_id=-1, eos_id=0,
                unk_id=1, pad_id=-1, character_coverage=1.0, normalization_rule_name="identity", minloglevel=2)
            pieces = sentencepiece.SentencePieceProcessor(model_file=folder + "/%s.model" % side)
            for i in range(pieces.get_piece_size()):
                names.setdefault(pieces.id_to_piece(i), len(names))
        padding = names["<pad>"] = len(names)
        with open(folder + "/vocab.json", "w") as file:
            json.dump(names, file)
        tokenizer = transformers.MarianTokenizer(folder + "/source.model", folder + "/target.model",
                                                 folder + "/vocab.json", source_lang="en", target_lang="de")
        torch.manual_seed(6)
        model = transformers.MarianMTModel(transformers.MarianConfig(
            **SIZES, vocab_size=len(names), activation_function="swish", scale_embedding=True, eos_token_id=0,
            pad_token_id=padding, decoder_start_token_id=padding))
        settings = dict(bad_words_ids=[[padding]], num_beams=4, max_length=16, forced_eos_token_id=0,
                        pad_token_id=padding, decoder_start_token_id=padding, eos_token_id=0, bos_token_id=0)
        save("opus", model, tokenizer, settings)
    path = os.path.join(HERE, "opus", "config.json")
    with open(path) as file:
        config = json.load(file)
    with open(path, "w") as file:
        json.dump({**config, **settings}, file, indent=2)
    os.remove(os.path.join(HERE, "opus", "generation_config.json"))


def byte_level(special, end, single="$A </s>"):
    core = tokenizers.Tokenizer(tokenizers.models.BPE())
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    core.decoder = tokenizers.decoders.ByteLevel()
    core.train_from_iterator(texts(), tokenizers.trainers.BpeTrainer(
        vocab_size=310, special_tokens=special, show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    core.post_processor = tokenizers.processors.TemplateProcessing(
        single=single, special_tokens=[(token, i) for i, token in enumerate(special)])
    names = dict(bos_token="<s>") if "<s>" in special else {}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="</s>", pad_token="<pad>", unk_token="<unk>", **names)
    # Bytes that are no text alone would make translations that are no UTF-8.
    unlikely = [i for i in range(len(special), len(tokenizer))
                if not (tokenizer.decode([i]).isprintable() and tokenizer.decode([i]).isascii())]
    return tokenizer, unlikely


def pegasus():
    tokenizer, unlikely = byte_level(["<pad>", "</s>", "<unk>"], 1)
    torch.manual_seed(4)
    model = transformers.PegasusForConditionalGeneration(transformers.PegasusConfig(
        **SIZES, vocab_size=len(tokenizer), activation_function="relu", eos_token_id=1, forced_eos_token_id=1,
        pad_token_id=0, decoder_start_token_id=0))
    save("pegasus", model, tokenizer, dict(
        num_beams=3, length_penalty=0.6, max_length=16, forced_eos_token_id=1, eos_token_id=1, pad_token_id=0,
        decoder_start_token_id=0), unlikely)


def blenderbot():
    tokenizer, unlikely = byte_level(["<pad>", "<s>", "</s>", "<unk>"], 2)
    torch.manual_seed(5)
    model = transformers.BlenderbotForConditionalGeneration(transformers.BlenderbotConfig(
        **SIZES, vocab_size=len(tokenizer), bos_token_id=1, eos_token_id=2, forced_eos_token_id=None,
        pad_token_id=0, decoder_start_token_id=1, encoder_no_repeat_ngram_size=0))
    save("blenderbot", model, tokenizer, dict(
        max_length=16, bos_token_id=1, eos_token_id=2, pad_token_id=0, decoder_start_token_id=1), unlikely)


def bart():
    tokenizer, unlikely = byte_level(["<s>", "<pad>", "</s>", "<unk>"], 2, "<s> $A </s>")
    torch.manual_seed(8)
    model = transformers.BartForConditionalGeneration(transformers.BartConfig(**SIZES, vocab_size=len(tokenizer)))
    save("bart", model, tokenizer, dict(
        num_beams=2, max_length=16, forced_bos_token_id=0, forced_eos_token_id=2, bos_token_id=0, eos_token_id=2,
        pad_token_id=1, decoder_start_token_id=2), unlikely)


def m2m_100():
    """Writes a model of two languages: sources begin with their language, and targets with theirs."""
    tokenizer, unlikely = byte_level(["<s>", "<pad>", "</s>", "<unk>", "__en__", "__de__"], 2, "__en__ $A </s>")
    torch.manual_seed(9)
    model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(
        **SIZES, vocab_size=len(tokenizer)))
    save("m2m_100", model, tokenizer, dict(
        num_beams=3, max_length=16, forced_bos_token_id=5, bos_token_id=0, eos_token_id=2, pad_token_id=1,
        decoder_start_token_id=2), unlikely)


def t5():
    tokenizer, unlikely = byte_level(["<pad>", "</s>", "<unk>"], 1)
    torch.manual_seed(12)
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=6, d_ff=24, num_layers=2, num_heads=2, decoder_start_token_id=0,
        feed_forward_proj="gated-gelu", initializer_factor=1.5))
    save("t5", model, tokenizer, dict(num_beams=3, max_length=16, eos_token_id=1, pad_token_id=0, decoder_start_token_id=0), unlikely)


def training(name):
    """Returns the loss of the first line and a translation of it."""
    folder = os.path.join(HERE, name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    labels = tokenizer(text_target=TARGET, return_tensors="pt").input_ids
    forced = model.generation_config.forced_bos_token_id
    if forced is not None:
        labels[0, 0] = forced
    start = torch.tensor([[model.generation_config.decoder_start_token_id]])
    with torch.no_grad():
        logits = model(**tokenizer(LINES[0], return_tensors="pt", return_token_type_ids=False),
                       decoder_input_ids=torch.cat([start, labels[:, :-1]], 1)).logits
    loss = torch.nn.functional.cross_entropy(logits[0], labels[0])
    return dict(model=name, source=LINES[0], target=TARGET, loss=round(loss.item(), 5))


def translate(name, changes, flags, **options):
    """Returns a case: greedy and beam search of transformers, and log-probabilities of a second pass."""
    folder = os.path.join(HERE, name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    model.generation_config = transformers.GenerationConfig.from_dict({**model.generation_config.to_diff_dict(),
                                                                       **changes})
    case = dict(model=name, changes=changes, flags=flags, texts=[], log_probabilities=[])
    for line in LINES:
        batch = tokenizer(line, return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            tokens = model.generate(**batch, **options)
            logits = model(**batch, decoder_input_ids=tokens[:, :-1]).logits
        chosen = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None]).flatten()
        settings = model.generation_config
        if settings.forced_eos_token_id is not None and len(chosen) == (settings.max_new_tokens or settings.max_length - 1):
            chosen = chosen[:-1]
        if settings.forced_bos_token_id is not None:
            chosen = chosen[1:]
        case["texts"].append(tokenizer.decode(tokens[0, 1:], skip_special_tokens=True))
        case["log_probabilities"].append(round(chosen.sum().item(), 5))
    return case


def ctranslate2_model(name, quantization, tokens, shared):
    draw = numpy.random.default_rng(11)
    width, hidden, vocabulary = 16, 24, 24
    spec = transformer_spec.TransformerSpec.from_config(
        (1, 2), 2, pre_norm=not shared, activation=common_spec.Activation.SWISH if shared else common_spec.Activation.RELU)
    number = lambda *shape: (0.4 * draw.standard_normal(shape)).astype("float32")

    def linear(layer, rows, columns):
        layer.weight, layer.bias = number(rows, columns), number(rows)

    def norm(layer):
        layer.gamma, layer.beta = 1 + number(width), number(width)

    spec.encoder.embeddings[0].weight = number(vocabulary, width)
    spec.decoder.embeddings.weight = spec.encoder.embeddings[0].weight if shared else number(vocabulary, width)
    linear(spec.decoder.projection, vocabulary, width)
    if shared:
        spec.decoder.projection.weight = spec.decoder.embeddings.weight
    spec.decoder.projection.bias[2] += 0.5 if shared else -0.5
    spec.decoder.projection.bias[[0, 1, 3]] -= 30
    for side in (spec.encoder, spec.decoder):
        if not shared:
            norm(side.layer_norm)
        for layer in side.layer:
            attentions = [layer.self_attention] + ([layer.attention] if side is spec.decoder else [])
            for attention in attentions:
                norm(attention.layer_norm)
                rows = [3 * width, width] if len(attention.linear) == 2 else [width, 2 * width, width]
                for each, count in zip(attention.linear, rows):
                    linear(each, count, width)
            norm(layer.ffn.layer_norm)
            linear(layer.ffn.linear_0, hidden, width)
            linear(layer.ffn.linear_1, width, hidden)
    source = ["<blank>", "<s>", "</s>", "<unk>"] + ["s%d" % i for i in range(4, vocabulary)]
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(source if shared else [word.replace("s", "t") if i > 3 else word
                                                           for i, word in enumerate(source)])
    for key, value in tokens.items():
        setattr(spec.config, key, value)
    spec.validate()
    spec.optimize(quantization)
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    spec.save(folder)
    lines = ["s4 s5 s6", "s20 s7 s7 s9", "s8", "s11 other s4 s23 s5 s5 s6"]
    cases = []
    for beam in (1, 4):
        translator = ctranslate2.Translator(folder, compute_type="float32")
        results = translator.translate_batch([line.split() for line in lines], beam_size=beam, max_decoding_length=15,
                                             min_decoding_length=0, length_penalty=1, return_scores=True)
        lengths = [len(result.hypotheses[0]) for result in results]
        # CTranslate2 counts the end token of a hypothesis that has one.
        sums = [result.scores[0] * (n + 1 if n < 15 else n) for result, n in zip(results, lengths)]
        cases.append(dict(model=name, changes={}, flags=["--beam=%d" % beam, "--max-length=15"], lines=lines,
                          texts=[" ".join(result.hypotheses[0]) for result in results],
                          log_probabilities=[round(each, 5) for each in sums]))
    return cases


def more_cases():
    cases = []
    for name in MORE:
        cases.append(translate(name, {}, []))
        cases.append(translate(name, {}, ["--beam=1"], num_beams=1))
    return cases


def main():
    marian()
    pegasus()
    blenderbot()
    opus()
    bart()
    m2m_100()
    t5()
    cases = []
    for name in ("marian", "pegasus", "blenderbot"):
        cases.append(translate(name, {}, []))
        cases.append(translate(name, {}, ["--beam=1"], num_beams=1))
        for changes in (dict(num_beams=3, early_stopping=True), dict(num_beams=3, early_stopping="never", length_penalty=2.0),
                        dict(num_beams=2, early_stopping=False, length_penalty=0.3), dict(min_length=7),
                        dict(eos_token_id=[{"marian": 0, "pegasus": 1, "blenderbot": 2}[name], 9, 12], num_beams=3),
                        dict(forced_bos_token_id=20, num_beams=2), dict(suppress_tokens=[11, 14, 20, 21], num_beams=2),
                        dict(max_length=9), dict(decoder_start_token_id=8), dict(max_new_tokens=5)):
            cases.append(translate(name, changes, []))
    cases += ctranslate2_model("ctranslate2_plain", None, {}, shared=False)
    cases += ctranslate2_model("ctranslate2_int8", "int8", dict(
        add_source_bos=True, add_source_eos=True, decoder_start_token="</s>"), shared=True)
    cases += ctranslate2_model("ctranslate2_float16", "float16", dict(add_source_eos=True), shared=False)
    cases += more_cases()
    trainings = [training(name) for name in MORE]
    with open(os.path.join(HERE, "translations.json"), "w") as file:
        json.dump(dict(lines=LINES, cases=cases, trainings=trainings), file, indent=1, ensure_ascii=False)
        file.write("\n")


main()
