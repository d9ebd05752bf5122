"""Arrays as feeds and outputs: which are shared, which are copied, and what a run costs."""
import threading
import timeit
import unittest

import numpy as np

import weft


def double(shape=(4, 3), dtype="f32", threads=1):
    tape = weft.Tape()
    x = tape.input("x", shape, dtype=dtype)
    y = x + x
    return x, y, weft.Runner(weft.compile(tape, fetch=[y]), threads=threads)


class ArraysTest(unittest.TestCase):
    def test_feeds_of_all_kinds(self):
        x, y, runner = double()
        array = np.arange(12, dtype="float32").reshape(4, 3)
        transposed = np.ascontiguousarray(array.T).T
        self.assertFalse(transposed.flags.c_contiguous)
        for value in (array, transposed, array.tolist(), np.tile(array, (1, 2))[:, :3]):
            np.testing.assert_array_equal(runner.run({x: value})[y], 2 * array)
        for dtype, name in (("f64", "float64"), ("i32", "int32")):
            x, y, runner = double(dtype=dtype)
            np.testing.assert_array_equal(runner.run({x: array.astype(name)})[y], 2 * array.astype(name))

    def test_read_only_and_empty_arrays(self):
        x, y, runner = double()
        array = np.ones((4, 3), "float32")
        array.flags.writeable = False
        self.assertEqual(runner.run({x: array})[y].sum(), 24)
        x, y, runner = double(shape=(0, 3))
        self.assertEqual(runner.run({x: np.zeros((0, 3), "float32")})[y].shape, (0, 3))

    def test_outputs_share_the_runners_memory(self):
        x, y, runner = double()
        first = runner.run({x: np.ones((4, 3), "float32")})
        array = first[y]
        self.assertTrue(np.shares_memory(array, first[y]))
        runner.run({x: np.full((4, 3), 5, "float32")})
        self.assertEqual(array[0, 0], 10)  # overwritten
        with self.assertRaisesRegex(RuntimeError, "has run again"):
            first[y]

    def test_an_output_may_be_fed_to_the_next_run(self):
        x, y, runner = double(shape=(1000, 100))
        value = np.ones((1000, 100), "float32")
        for _ in range(5):
            value = runner.run({x: value})[y]
        np.testing.assert_array_equal(value, np.full((1000, 100), 32, "float32"))

    def test_arrays_outlive_runner_and_tape(self):
        x, y, runner = double()
        array = runner.run({x: np.ones((4, 3), "float32")})[y]
        del x, y, runner
        self.assertEqual(array.sum(), 24)

    def test_scalars_are_copies(self):
        tape = weft.Tape()
        x = tape.input("x", [])
        y = x * 2
        runner = weft.Runner(weft.compile(tape, fetch=[y]))
        history = [runner.run({x: i})[y] for i in range(3)]
        self.assertEqual(history, [0, 2, 4])
        self.assertIsInstance(history[0], np.float32)

    def test_dlpack(self):
        class Foreign:  # an array of another library, which has no buffer protocol
            def __init__(self, array):
                self.__dlpack__ = array.__dlpack__
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        x, y, runner = double()
        array = np.arange(12, dtype="float32").reshape(4, 3)
        shown = np.from_dlpack(runner.run({x: Foreign(array)})[y])
        np.testing.assert_array_equal(shown, 2 * array)
        self.assertTrue(np.shares_memory(array, weft.from_dlpack(Foreign(array))))

    def test_bf16_comes_out_as_f32(self):
        tape = weft.Tape()
        x = tape.input("x", [3])
        y = weft.cast(x, "bf16")
        out = weft.Runner(weft.compile(tape, fetch=[y])).run({x: [1.0, 2.5, 1.00390625]})[y]
        self.assertEqual(out.dtype, np.float32)
        self.assertEqual(out.tolist(), [1.0, 2.5, 1.0])

    def test_parameters(self):
        tape = weft.Tape()
        w = tape.parameter("w", [2, 3], weft.initializers.ones())
        y = w * 2
        parameters = weft.Parameters(seed=1)
        runner = weft.Runner(weft.compile(tape, fetch=[y]), parameters)
        copy, view = parameters["w"], parameters.view("w")
        parameters["w"] = np.full((2, 3), 4, "float32")
        self.assertEqual((copy.sum(), view.sum()), (6, 24))
        self.assertEqual(runner.run()[y].sum(), 48)
        self.assertIn("w", parameters)
        self.assertNotIn("v", parameters)

    def test_other_threads_run_python_during_a_run(self):
        tape = weft.Tape()
        x = tape.input("x", [700, 700])
        y = x
        for _ in range(10):
            y = y @ x
        runner = weft.Runner(weft.compile(tape, fetch=[y]), threads=1)
        ticks, done = [], threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(1)
                done.wait(0.0005)

        value = np.zeros((700, 700), "float32")
        thread = threading.Thread(target=tick)
        thread.start()
        before = len(ticks)
        for _ in range(3):
            runner.run({x: value})
        after = len(ticks)
        done.set()
        thread.join()
        self.assertGreater(after - before, 3)

    def test_overhead_of_a_run(self):
        x, y, runner = double()
        value = np.ones((4, 3), "float32")
        times = timeit.repeat(lambda: runner.run({x: value}), number=1000, repeat=15)
        best, median = min(times) * 1e3, sorted(times)[7] * 1e3  # µs
        print(f"a run of one small op takes {best:.2f} µs at best, {median:.2f} µs in the median")
        self.assertLess(best, 20)


if __name__ == "__main__":
    unittest.main(argv=["arrays_test"])
