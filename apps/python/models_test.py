"""A user's own model, layers, model families, optimizers and initializers, and that no op is left out."""
import inspect
import os
import re
import sys
import unittest

import numpy as np

import weft
from weft import initializers, models, optimizers

HEADER = sys.argv[1]  # ops/ops.h


def run(tape, values, feeds=None, seed=1, update=()):
    parameters = weft.Parameters(seed=seed)
    runner = weft.Runner(weft.compile(tape, fetch=values, update=update), parameters, threads=1)
    return runner.run(feeds or {}), parameters, runner


def attention_model(tape, tokens, targets):
    """A decoder of one block with attention by hand, in elementary ops."""
    width, length, vocabulary = 16, tokens.shape[1], 11
    f64 = {"dtype": "f64"}
    table = tape.parameter("table", [vocabulary, width], initializers.gaussian(0.5), **f64)
    x = weft.embedding(table, tokens)  # [B, T, C]
    parts = []
    for name in ("query", "key", "value"):
        w = tape.parameter(name, [width, width], initializers.xavier_uniform(), **f64)
        parts.append(weft.matmul(x, w, transpose_b=True))
    query, key, value = parts
    scores = weft.causal_mask(weft.matmul(query, key, transpose_b=True) / width**0.5, -1e9)  # [B, T, T]
    x = x + weft.softmax(scores) @ value
    gain = tape.parameter("gain", [width], initializers.ones(), **f64)
    bias = tape.parameter("bias", [width], initializers.zeros(), **f64)
    logits = weft.matmul(weft.layer_norm(x, gain, bias), table, transpose_b=True)  # [B, T, V]
    return weft.cross_entropy(logits, targets)


class ModelsTest(unittest.TestCase):
    def test_every_op_of_the_header_is_bound(self):
        with open(HEADER, encoding="utf-8") as file:
            names = set(re.findall(r"^(?:inline )?(?:Var|VarList|BatchNormResult) (\w+)\(", file.read(), re.MULTILINE))
        bound = {name.replace("_", "").replace("logical", "") for name in dir(weft)}
        self.assertGreater(len(names), 90)
        self.assertEqual([name for name in names - {"operator"} if name.lower() not in bound], [])
        for name in ("layer_norm", "softmax", "adamw_update", "cross_entropy", "causal_mask"):
            self.assertGreater(len(getattr(weft, name).__doc__), 100)

    def test_gradients_of_an_own_model(self):
        tape = weft.Tape()
        tokens = tape.input("tokens", [2, 5], dtype="i32", below=11)
        targets = tape.input("targets", [2, 5], dtype="i32", below=11)
        loss = attention_model(tape, tokens, targets)
        random = np.random.default_rng(1)
        feeds = {var: random.integers(0, 11, (2, 5), dtype="int32") for var in (tokens, targets)}
        parameters = weft.Parameters(seed=1)
        weft.check_gradients(loss, parameters, feeds)  # raises an error if one differs from central differences
        # The same by hand, for some elements of a weight.
        query = tape.find_parameter("query")
        gradient = tape.gradient(loss, [query])[0]
        runner = weft.Runner(weft.compile(tape, fetch=[loss, gradient]), parameters)
        got = runner.run(feeds)[gradient].copy()
        weight = parameters.view("query")
        for index in ((0, 0), (3, 7), (15, 15)):
            old, losses = weight[index], []
            for step in (-1e-6, 1e-6):
                weight[index] = old + step
                losses.append(float(runner.run(feeds)[loss]))
            weight[index] = old
            self.assertAlmostEqual(got[index], (losses[1] - losses[0]) / 2e-6, places=7)

    def test_operators(self):
        tape = weft.Tape()
        x = tape.input("x", [2, 2])
        values = [x + 1, 1 + x, x - 1, 3 - x, x * 2, 2 * x, x / 2, 1 / x, x**2, 2**x, x**x, -x, x @ x]
        array = np.array([[1, 2], [3, 4]], "float32")
        out, _, _ = run(tape, values, {x: array})
        wanted = [array + 1, 1 + array, array - 1, 3 - array, array * 2, 2 * array, array / 2, 1 / array, array**2,
                  2**array, array**array, -array, array @ array]
        for value, want in zip(values, wanted):
            np.testing.assert_allclose(out[value], want, rtol=1e-5)
        self.assertEqual((x.shape, x.dtype, repr(x)), ((2, 2), "f32", "<weft.Var f32[2,2]>"))
        self.assertNotEqual(x, values[0])
        with self.assertRaises(TypeError):
            array + x  # not an array of objects

    def test_layers(self):
        tape = weft.Tape()
        x = tape.input("x", [2, 5, 16])
        ids = tape.input("ids", [2, 5], dtype="i32", below=7)
        with tape.scope("model"):
            h = models.linear("fc", x, 16, bias=False) + models.embedding("wte", ids, 7, 16)
            h = models.layer_norm("norm", h)
            h = models.multi_head_attention("attn", h, 4, causal=True, key_value_heads=2, rotary="halves")
            h = models.multi_head_attention("cross", h, 4, memory=x)
            h = models.block("block", h, 4, causal=True, window=3)
            h = models.feed_forward("mlp", h, activation="relu", width=8)
        feeds = {x: np.ones((2, 5, 16), "float32"), ids: np.zeros((2, 5), "int32")}
        out, parameters, _ = run(tape, [h], feeds)
        self.assertEqual(out[h].shape, (2, 5, 16))
        self.assertTrue(np.isfinite(out[h]).all())
        self.assertIn("model.fc.weight", parameters.names())
        self.assertIn("model.attn.attention_weights", tape.probes())

    def test_families(self):
        tape = weft.Tape()
        tokens = tape.input("tokens", [2, 6], dtype="i32", below=20)
        gpt = models.Gpt(vocabulary=20, context=6, layers=2, heads=2, width=8)
        bert = models.Bert(vocabulary=20, context=6, layers=1, heads=2, width=8, dropout=0)
        transformer = models.Transformer(source_vocabulary=20, target_vocabulary=20, encoder_layers=1, decoder_layers=1,
                                         heads=2, width=8, dropout=0)
        hidden = bert.encode(tokens)
        values = [gpt.logits(tokens), bert.masked_tokens(hidden), bert.classify(bert.pool(hidden), 3),
                  transformer.logits(tokens, tokens)]
        out, parameters, _ = run(tape, values, {tokens: np.arange(12, dtype="int32").reshape(2, 6)})
        self.assertEqual([out[value].shape for value in values], [(2, 6, 20), (2, 6, 20), (2, 3), (2, 6, 20)])
        self.assertIn("h.1.attn.c_attn.weight", parameters.names())
        self.assertEqual((gpt.config["model_type"], gpt.config["n_layer"]), ("gpt2", 2))

    def test_optimizers(self):
        for name in ("adamw", "adam", "sgd", "adagrad", "lion", "muon", "adafactor"):
            tape = weft.Tape()
            x = tape.input("x", [8, 4])
            rate = tape.input("rate", [])
            loss = weft.mean(weft.square(models.linear("fc", x, 4) - x))
            step = getattr(optimizers, name)(clip=1.0, groups="*.bias:rate=0.5").minimize(loss, rate)
            parameters = weft.Parameters(seed=1)
            runner = weft.Runner(weft.compile(tape, fetch=[loss, step.gradient_norm], update=[step.update]), parameters)
            array = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")
            losses = [float(runner.run({x: array, rate: 0.02})[loss]) for _ in range(60)]
            self.assertLess(losses[-1], 0.98 * losses[0], name)
            self.assertEqual(parameters.step, 60)

    def test_initializers(self):
        makers = [each for _, each in inspect.getmembers(initializers, inspect.isbuiltin)]
        self.assertEqual(len(makers), 13)
        tape = weft.Tape()
        value = tape.parameter("w", [64, 64], initializers.orthogonal())
        out, _, _ = run(tape, [value])
        np.testing.assert_allclose(out[value] @ out[value].T, np.eye(64), atol=1e-5)

    def test_stubs_have_the_properties_that_can_be_set(self):
        with open(os.path.join(os.path.dirname(weft.__file__), "_weft", "__init__.pyi"), encoding="utf-8") as file:
            setters = re.findall(r"@(\w+)\.setter\n    def (\w+)\(self, value: Any\) -> None: ...", file.read())
        settable = [name for kind in vars(weft._weft).values() if isinstance(kind, type)
                    for name, value in vars(kind).items() if isinstance(value, property) and value.fset is not None]
        self.assertEqual(setters, [(name, name) for name in settable])
        self.assertIn("step", settable)

    def test_saving(self):
        tape = weft.Tape()
        value = tape.parameter("w", [3], initializers.gaussian(1))
        out, parameters, _ = run(tape, [value])
        before = parameters["w"]
        path = os.path.join(os.environ.get("TEST_TMPDIR", "/tmp"), "weights.safetensors")
        parameters.save(path)
        parameters["w"] = [0, 0, 0]
        parameters.load(path)
        np.testing.assert_array_equal(parameters["w"], before)


if __name__ == "__main__":
    unittest.main(argv=["models_test"])
