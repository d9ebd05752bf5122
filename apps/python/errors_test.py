"""Errors are exceptions with the library's text, also where C++ would end the program."""
import unittest

import numpy as np

import weft

tape = weft.Tape()
x = tape.input("x", [4, 6])
ids = tape.input("ids", [2], dtype="i32", below=3)
y = weft.relu(x)
w = tape.parameter("w", [2], weft.initializers.zeros())
runner = weft.Runner(weft.compile(tape, fetch=[y]))
looked_up = weft.embedding(weft.models.embedding_table("table", tape, 3, 2), ids)
by_id = weft.Runner(weft.compile(tape, fetch=[looked_up]))
zeros = np.zeros((4, 6), "float32")


def mistake(record):
    """Calls `record` with a tape and an input [8, 768], since an error spoils a tape."""
    other = weft.Tape()
    record(other, other.input("x", [8, 768]))


def in_scope(other, value):
    with other.scope("encoder"):
        weft.matmul(value, other.parameter("weight", [512, 64], weft.initializers.zeros()))


ERRORS = [
    (lambda: mistake(in_scope), ValueError,
     "matmul: inner dimensions differ, 768 vs 512; inputs f32[8,768], f32[512,64]; at encoder"),
    (lambda: mistake(lambda t, v: v + x), ValueError, "tape"),
    (lambda: mistake(lambda t, v: weft.concat([], 0)), ValueError, "concat: got no value, wanted at least one"),
    (lambda: mistake(lambda t, v: weft.stack([], 0)), ValueError, "stack: got no value"),
    (lambda: mistake(lambda t, v: weft.global_norm([])), ValueError, "global_norm: got no value"),
    (lambda: mistake(lambda t, v: weft.root_of_sum([])), ValueError, "root_of_sum: got no value"),
    (lambda: mistake(lambda t, v: t.group([])), ValueError, "group: got no value"),
    (lambda: mistake(lambda t, v: weft.gradient(v, [v])), ValueError, "loss"),
    (lambda: mistake(lambda t, v: weft.gradient(weft.sum(v), [x])), ValueError, "tape"),
    (lambda: mistake(lambda t, v: t.input("x", [2])), ValueError, "'x'"),
    (lambda: mistake(lambda t, v: t.input("y", [1] * 7)), ValueError, "more than 6 axes"),
    (lambda: mistake(lambda t, v: t.input("y", [2], dtype="f23")), ValueError, "dtype: 'f23' is unknown"),
    (lambda: mistake(lambda t, v: t.constant(3, dtype="bf16")), ValueError, "a list can't become bf16"),
    (lambda: mistake(lambda t, v: t.find_parameter("nothing")), ValueError, "nothing"),
    (lambda: mistake(lambda t, v: t.parameter_name(v)), ValueError, "no parameter"),
    (lambda: mistake(lambda t, v: weft.gelu(v, form="exact")), ValueError, "form: 'exact' is not one of erf, tanh"),
    (lambda: mistake(lambda t, v: weft.compile(t, fetch=[x])), ValueError, "tape"),
    (lambda: mistake(lambda t, v: weft.models.multi_head_attention("a", v, 5)), ValueError, "multiple of heads"),
    (lambda: mistake(lambda t, v: weft.optimizers.sgd(beta1=0.5).minimize(weft.sum(v), v)), ValueError, "beta1"),
    (lambda: weft.relu(None), TypeError, "Var"),
    (lambda: weft.relu(zeros), TypeError, "Var"),
    (lambda: runner.run({}), ValueError, "input 'x' f32[4,6] was not fed"),
    (lambda: runner.run({x: np.zeros((4, 6))}), ValueError, "input 'x': fed f64[4,6], wanted f32[4,6]"),
    (lambda: runner.run({x: np.zeros((6, 4), "float32")}), ValueError, "input 'x': fed f32[6,4], wanted f32[4,6]"),
    (lambda: runner.run({x: np.zeros((4, 6), "int64")}), ValueError, "input 'x': got an array of int64[4,6]"),
    (lambda: runner.run({y: zeros}), ValueError, "no input"),
    (lambda: runner.run({weft.Tape().input("x", [4, 6]): zeros}), ValueError, "no input of the graph's tape"),
    (lambda: runner.run({"x": zeros}), TypeError, "Vars"),
    (lambda: runner.run({x: zeros})[x], ValueError, "this Var was not fetched: f32[4,6]"),
    (lambda: by_id.run({ids: [0, 3]}), ValueError, "ids"),
    (lambda: weft.compile(tape, fetch=[y], mode="test"), ValueError, "mode: 'test' is not one of train, eval"),
    (lambda: runner.parameters["nothing"], KeyError, "nothing"),
    (lambda: by_id.parameters.__setitem__("table.weight", zeros), ValueError, "could not broadcast"),
    (lambda: weft.Parameters().load("nowhere"), FileNotFoundError, "nowhere"),
    (lambda: weft.models.Gpt(layerz=3), ValueError, "unknown key 'layerz', did you mean 'layers'?"),
    (lambda: weft.models.Gpt(heads=5, width=64), ValueError, "64"),
    (lambda: weft.optimizers.adamw(beta3=1), TypeError, "unknown option 'beta3', did you mean 'beta"),
    (lambda: weft.load("nowhere"), FileNotFoundError, "cannot find nowhere"),
    (lambda: weft.Tokenizer("nowhere"), FileNotFoundError, "nowhere"),
    (lambda: weft.train("gtp"), ValueError, "train: 'gtp' is no kind of training; wanted gpt, bert, translate"),
    (lambda: weft.train("gpt", stepz=3), TypeError, "unknown option 'stepz', did you mean 'steps'?"),
    (lambda: weft.train("gpt", steps="many"), ValueError, "steps: 'many' is not a whole number"),
]


class ErrorsTest(unittest.TestCase):
    def test_errors(self):
        for i, (call, kind, text) in enumerate(ERRORS):
            with self.subTest(i=i, text=text), self.assertRaises(kind) as caught:
                call()
            self.assertIn(text, str(caught.exception))

    def test_an_error_sticks_to_its_tape(self):
        other = weft.Tape()
        value = other.input("x", [2, 3])
        for call in (lambda: weft.matmul(value, value), lambda: weft.relu(value), lambda: weft.compile(other)):
            with self.assertRaisesRegex(ValueError, "matmul: inner dimensions differ"):
                call()


if __name__ == "__main__":
    unittest.main(argv=["errors_test"])
