"""Training, and trained models: the same bits as the program, Ctrl-C, and what weft.load returns."""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import weft

PROGRAM, SENTENCEPIECE = (os.path.abspath(path) for path in sys.argv[1:3])
TEXT = "In the beginning God created the heaven and the earth.\n" * 60
SMALL = {"layers": 1, "heads": 2, "width": 16, "context": 16, "seed": 7, "quiet": True}


def read(path):
    with open(path, "rb") as file:
        return file.read()


class TrainTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        with open("text.txt", "w", encoding="utf-8") as file:
            file.write(TEXT)

    def test_the_same_bits_as_the_program(self):
        folder = weft.train("gpt", data="text.txt", steps=12, out="python", **SMALL)
        self.assertEqual(folder, "python")
        flags = [f"--{name}={str(value).lower()}" for name, value in SMALL.items()]
        subprocess.run([PROGRAM, "train", "gpt", "--data=text.txt", "--steps=12", "--out=program", *flags], check=True,
                       stdout=subprocess.DEVNULL)
        for name in ("model.safetensors", "config.json", "tokenizer.json", "sample.txt"):
            self.assertEqual(read(f"python/{name}"), read(f"program/{name}"), name)

        prompt = "In the beginning"
        flags = ["--model=program", f"--prompt={prompt}", "--length=20", "--seed=3"]
        shown = subprocess.run([PROGRAM, "generate", *flags], check=True, capture_output=True, text=True).stdout
        self.assertEqual(shown, prompt + weft.load("python").generate(prompt, length=20, seed=3) + "\n")

    def test_options(self):
        more = {"learning_rate": 1e-3, "batch_size": 3, "tensorboard": True}
        folder = weft.train("gpt", data="text.txt", steps=2, out="run", **more, **SMALL)
        # TensorBoard's files need one protobuf, and SentencePiece another.
        tokenizer = weft.Tokenizer(SENTENCEPIECE)
        self.assertEqual(tokenizer.decode(tokenizer.encode("Hello world")), "Hello world")
        with self.assertRaisesRegex(ValueError, "resume"):
            weft.train("gpt", data="text.txt", steps=2, out="run", **SMALL)
        self.assertEqual(weft.train("gpt", steps=3, out=folder, resume=True, quiet=True), folder)
        with self.assertRaisesRegex(ValueError, "nowhere.txt"):
            weft.train("gpt", data="nowhere.txt", **SMALL)

    def test_control_c_saves_the_run(self):
        before = signal.getsignal(signal.SIGINT)
        timer = threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaisesRegex(KeyboardInterrupt, "continue with --resume"):
            weft.train("gpt", data="text.txt", steps=1000000, out="run", **SMALL)
        timer.join()
        self.assertEqual(signal.getsignal(signal.SIGINT), before)
        self.assertTrue(os.path.exists("run/model.safetensors"))

    def test_generate(self):
        model = weft.load(weft.train("gpt", data="text.txt", steps=30, out="run", **SMALL))
        self.assertEqual(repr(model), "<weft.Model run: a GPT>")
        both = model.generate(["In the", "God"], length=8, temperature=0)
        self.assertEqual(both, [model.generate(text, length=8, temperature=0) for text in ("In the", "God")])
        pieces = []
        self.assertEqual(model.generate("In", on_text=pieces.append, length=9), "".join(pieces))
        self.assertNotEqual(model.generate("In", length=30, temperature=0, frequency_penalty=2),
                            model.generate("In", length=30, temperature=0))
        text = model.generate("In", length=9, temperature=0)
        self.assertEqual(model.generate("In", length=9, temperature=0, stop_strings=["#", text[3:5]]),
                         text[:text.index(text[3:5])])
        with self.assertRaises(ZeroDivisionError):
            model.generate("In", on_text=lambda text: 1 / 0)
        with self.assertRaisesRegex(TypeError, "did you mean 'length'"):
            model.generate("In", lenght=3)
        with self.assertRaisesRegex(ValueError, "temperature has no use with --beam"):
            model.generate("In", beam=2, temperature=0.5)
        with self.assertRaisesRegex(ValueError, "logprobs: only the command weft generate has this option"):
            model.generate("In", logprobs=2)
        with self.assertRaisesRegex(ValueError, "not an encoder-decoder"):
            model.translate("In")
        tokenizer = weft.Tokenizer("run")
        self.assertEqual(tokenizer.decode(tokenizer.encode("God created")), "God created")

    def test_control_c_while_generating(self):
        folder = weft.train("gpt", data="text.txt", steps=2, out="run", **SMALL)
        code = f"import weft; print('ready', flush=True); weft.load({folder!r}).generate('In', length=10000000)"
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        timer = threading.Timer(1, process.send_signal, [signal.SIGINT])
        timer.start()
        self.assertIn("KeyboardInterrupt", process.communicate(timeout=60)[1])

    def test_translate_classify_and_embed(self):
        with open("source.txt", "w", encoding="utf-8") as source, open("target.txt", "w", encoding="utf-8") as target:
            for i in range(40):
                source.write(f"a {i % 4} b\n")
                target.write(f"{i % 4} c\n")
        sizes = {"heads": 2, "width": 16, "quiet": True, "steps": 5, "seed": 1}
        files = {"source": "source.txt", "target": "target.txt", "out": "t"}
        translator = weft.load(weft.train("translate", encoder_layers=1, decoder_layers=1, **files, **sizes))
        self.assertIsInstance(translator.translate("a 1 b"), str)
        best = translator.translate(["a 1 b", "a 2 b"], n_best=2, beam=3)
        self.assertEqual([len(each) for each in best], [2, 2])
        self.assertEqual(translator.translate(["a 1 b", "a 2 b"], num_hypotheses=2, beam=3), best)
        with open("labels.tsv", "w", encoding="utf-8") as file:
            for i in range(40):
                file.write(f"text {i % 2}\t{'odd' if i % 2 else 'even'}\n")
        classifier = weft.load(weft.train("classify", data="labels.tsv", out="c", layers=1, **sizes))
        scores = classifier.classify("text 1")
        self.assertEqual(set(scores), {"odd", "even"})
        self.assertAlmostEqual(sum(scores.values()), 1, places=5)
        self.assertEqual(classifier.classify(["text 1", "text 0"])[0], scores)
        with self.assertRaisesRegex(ValueError, "got 2 texts, wanted a text"):
            classifier.classify(("text", "text"))
        with self.assertRaisesRegex(TypeError, "two values for the option 'steps', which has several names"):
            weft.train("classify", data="labels.tsv", out="d", steps=5, max_steps=6)
        with open("words.conll", "w", encoding="utf-8") as file:
            for i in range(40):
                file.write(f"the O\nend {'B' if i % 2 else 'O'}\n\n")
        sizes["out"] = "words"
        tagger = weft.load(weft.train("classify", task="tokens", data="words.conll", layers=1, context=16, **sizes))
        self.assertEqual([len(words) for words in tagger.classify(["the end", ""])], [2, 0])
        with open("pictures.csv", "w", encoding="utf-8") as file:
            for i in range(40):
                pixels = ["9" if (pixel if i % 2 else pixel // 4) % 2 else "1" for pixel in range(16)]
                file.write(",".join([*pixels, str(i % 2)]) + "\n")
        sizes["out"] = "pictures"
        pictures = weft.load(weft.train("vit", data="pictures.csv", patch_size=2, layers=1, **sizes))
        self.assertEqual(set(pictures.classify("pictures.csv")), {"0", "1"})
        with self.assertRaisesRegex(ValueError, "truncation has no use in classifying pictures"):
            pictures.classify("pictures.csv", truncation=True)
        vectors = classifier.embed(["text 1", "text 0"])
        self.assertEqual((vectors.shape, vectors.dtype), ((2, 16), np.float32))
        np.testing.assert_allclose((vectors**2).sum(axis=1), 1, rtol=1e-5)
        self.assertEqual(classifier.embed([]).shape, (0, 16))
        for option in ("batch", "pairs"):  # weft embed does not have these options of weft classify
            with self.assertRaisesRegex(TypeError, f"unknown option '{option}'"):
                classifier.embed("text 1", **{option: 1})


if __name__ == "__main__":
    unittest.main(argv=["train_test"])
