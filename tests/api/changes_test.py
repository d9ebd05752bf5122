#!/usr/bin/env python3
"""Changes the header of a small library in each way that matters, and compares what tools/api says."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path("tools").absolute()
HEADER = """
#define WEFT_TWICE(x) \\
  ((x) + (x))
namespace weft {

struct Options {
  int threads = 0;  // 0: one for each core
  const char *name = "a, b", *other = nullptr;
};
enum class Mode : uint8_t { kTrain, kEval };
class Runner {
 public:
  explicit Runner(Options options) : options_{options}, count_(0) {}
  absl::StatusOr<int> Run(absl::Span<const int> feeds, double rate = 1.0) const;
  bool operator==(const Runner& other) const { return count_ == other.count_; }

 private:
  Options options_;
  int count_;
};
[[deprecated("use Add")]] inline int Sum(int a, int b) { return a + b; }
int Add(int a, int b);
int Add(int a);
inline constexpr int kLimit = 3;

}  // namespace weft
"""
PAGE = """<!-- declarations: core/x.h: * -->
<!-- end of the declarations -->
"""
RUN = "absl::StatusOr<int> Run(absl::Span<const int> feeds, double rate = 1.0) const"
CHANGES = [  # what is replaced, by what, and what tools/api says; an empty text: nothing
    ("int Add(int a, int b);", "int Add(int a, int64_t b);",
     "core/x.h: weft::Add has changed\n  promised: int Add(int a, int b)\n  now:      int Add(int a, int64_t b)\n"),
    ("int Add(int a, int b);", "", "core/x.h: weft::Add is gone\n  promised: int Add(int a, int b)\n"),
    ("int Add(int a, int b);", "int Add(int first, int second);", ""),
    ("int Add(int a, int b);", "int Add(int a, int b, bool wrap = true);", ""),
    ("int Add(int a, int b);", "int Add(int a, int b, bool wrap);", "core/x.h: weft::Add has changed\n"),
    ("int Add(int a, int b);", '[[deprecated("use +")]] int Add(int a, int b);', ""),
    ("struct Options", 'struct [[deprecated("use flags")]] Options', ""),
    ("int Add(int a);", "int Add(int a); int Twice(int a);", ""),
    (RUN, RUN.replace("1.0", "2.0"), f"Run has changed\n  promised: {RUN}\n  now:      {RUN.replace('1.0', '2.0')}\n"),
    (RUN, RUN.replace(" const", ""), "weft::Runner::Run has changed\n"),
    (" public:", " protected:", "core/x.h: weft::Runner::Run is gone\n"),
    ("int count_", "int64_t count_", ""),
    ("int threads = 0;", "int64_t threads = 0;", "weft::Options::threads has changed\n"),
    ("int threads = 0;", "int first = 0, threads = 0;", ""),
    (", *other = nullptr", "", "weft::Options::other is gone\n  promised: const char *other = nullptr\n"),
    ('*name = "a, b", *other = nullptr', '*other = nullptr, *name = "a, b"',
     "the fields of weft::Options have another order\n  promised: threads, name, other\n"),
    ("kTrain, ", "", "core/x.h: weft::Mode::kTrain is gone\n"),
    ("WEFT_TWICE(x) \\\n  ((x) + (x))", "WEFT_TWICE(x, y)", "core/x.h: WEFT_TWICE has changed\n"),
    ("kLimit = 3", "kLimit = 4", ""),
    ("int kLimit", "double kLimit", "weft::kLimit has changed\n"),
    ("{ return a + b; }", "{ return b + a; }", ""),
    ('[[deprecated("use Add")]] inline int Sum(int a, int b) { return a + b; }', "", "weft::Sum is gone\n"),
]


class ChangesTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        for folder in ("core", "docs", "tests/api", "tools", "train/run"):
            (self.root / folder).mkdir(parents=True)
        for name in ("api", "declarations.py"):
            shutil.copy(TOOLS / name, self.root / "tools" / name)
        (self.root / "docs/api.md").write_text(PAGE)
        self.set_version("0.1.0")
        self.set_header(HEADER)
        self.assertEqual(self.api(), "")
        self.assertEqual(self.api("--release"), "")

    def set_header(self, text):
        (self.root / "core/x.h").write_text(text)

    def set_version(self, version):
        (self.root / "train/run/build_info.h").write_text(f'inline constexpr char kVersion[] = "{version}";')

    def api(self, *flags):
        """Returns the errors of tools/api, which must exit with 0 if there are none."""
        run = subprocess.run([sys.executable, self.root / "tools/api", *flags], capture_output=True, text=True)
        self.assertEqual(run.returncode != 0, run.stderr != "", run.stderr)
        return run.stderr

    def test_names_what_has_changed(self):
        for old, new, message in CHANGES:
            with self.subTest(old=old, new=new):
                self.assertIn(old, HEADER)
                self.set_header(HEADER.replace(old, new))
                self.assertEqual(self.api(), "")
                errors = self.api("--check")
                self.assertIn(message, errors)
                self.assertEqual(message == "", errors == "", errors)

    def test_page_must_have_what_was_added(self):
        self.set_header(HEADER.replace("int Add(int a);", "int Add(int a); int Twice(int a);"))
        self.assertIn("docs/api.md differs from the headers; write it again with tools/api", self.api("--check"))
        self.assertEqual(self.api(), "")
        self.assertEqual(self.api("--check"), "")
        self.assertIn("int Twice(int a);", (self.root / "docs/api.md").read_text())

    def test_deprecated_for_two_minor_versions_may_go(self):
        for version, errors in [("0.1.1", "core/x.h: weft::Sum is gone\n"), ("0.2.0", "")]:
            self.set_version(version)
            self.assertIn(f"tests/api has no list of version {version}", self.api("--check"))
            self.assertEqual(self.api("--release"), "")
            self.assertIn("the list of a version never changes", self.api("--release"))
            self.set_header("".join(line + "\n" for line in HEADER.splitlines() if "deprecated" not in line))
            self.assertEqual(self.api(), "")
            self.assertTrue(self.api("--check").startswith(errors))
            self.assertEqual(self.api("--check") == "", errors == "")
            self.set_header(HEADER)
            self.assertEqual(self.api(), "")

    def test_page_names_what_exists(self):
        (self.root / "docs/api.md").write_text(PAGE.replace("*", "Runner {Run, Walk}"))
        self.assertIn("docs/api.md: core/x.h has no public Runner::Walk", self.api())
        (self.root / "docs/api.md").write_text(PAGE.replace("x.h", "y.h"))
        self.assertIn("docs/api.md: //:weft exports no header core/y.h", self.api())


unittest.main()
