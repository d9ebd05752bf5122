#!/usr/bin/env python3
"""Tests the page of `weft serve` in headless Chromium: against mock_server.py, or against a running server.

    bazel test -c opt //tests/serve:page_test
    bazel build -c opt //tests/serve:print_page
    tests/serve/page_test.py --shots=FOLDER                  # also takes pictures of each view
    tests/serve/page_test.py --server=http://127.0.0.1:8080/ # uses each view of this server once
"""

import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from browser import CHROMIUM, Browser, Page  # noqa: E402
from mock_server import ANSWERS, CONTINUATION, TRANSLATIONS, MockServer  # noqa: E402
from page_scripts import LOW_CONTRAST, TOO_WIDE, USABLE  # noqa: E402

PRINT_PAGE = Path("tests/serve/print_page" if "TEST_SRCDIR" in os.environ else "bazel-bin/tests/serve/print_page")
OPTIONS = dict(argument[2:].split("=", 1) for argument in sys.argv[1:] if argument.startswith("--"))
QUESTION = "What does Weft do so that many threads give the same bits?"
VIEWS = ("chat", "attention", "translate", "classify")
WIDTHS = (320, 400, 1280)


def print_page() -> bytes:
    return subprocess.run([str(PRINT_PAGE)], check=True, capture_output=True).stdout


class PageTest(unittest.TestCase):
    """Each test has a tab of the browser and a mock server of its own."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.browser = cls.enterClassContext(Browser())

    expected_problems = 0  # errors that the browser logs because the test makes requests fail

    def open(self, **options) -> Page:
        self.server = self.enterContext(MockServer(print_page(), **options))
        return self.open_url(self.server.url)

    def open_url(self, url: str) -> Page:
        self.page = self.browser.open(url)
        self.page.look(1280)
        self.addCleanup(self.page.close)
        self.addCleanup(self.check_end, url)
        return self.page

    def check_end(self, url: str) -> None:
        problems = self.page.problems()
        self.assertEqual(len(problems), self.expected_problems, problems)
        self.assertEqual([other for other in self.page.requests() if not other.startswith((url, "data:"))], [])

    def wait_ready(self) -> None:  # The page moves its elements when the list of models arrives.
        self.page.wait("document.title.endsWith(' – Weft')")

    def show(self, view: str) -> None:
        self.wait_ready()
        self.page.click(f"nav a[href='#{view}']")
        self.page.wait(f"!$('{view}-view').hidden")

    def type(self, control: str, text: str) -> None:
        self.wait_ready()
        self.page.run(f"$('{control}').focus(), $('{control}').select?.()")
        self.page.type(text)

    def ask(self, text: str = QUESTION) -> None:
        self.type("message", text)
        self.page.press("Enter")

    def wait_idle(self, view: str = "chat") -> None:
        self.page.wait(f"!running.{view}")

    def answer(self) -> str:
        return self.page.run("$('log').lastElementChild.querySelector('div').textContent")

    def translate(self) -> None:
        self.show("translate")
        self.type("source", "\n".join(TRANSLATIONS))
        self.page.click("#translate-form button.main")
        self.page.wait("$('pairs').children.length === 3 && $('sources').textContent")


class ChatTest(PageTest):
    def test_streams_the_answer(self):
        page = self.open(pause=0.03)
        self.ask()
        page.wait("document.querySelector('#log .assistant div').textContent.includes('small tiles')")
        self.assertEqual(page.run("[$('stop').disabled, $('regenerate').disabled, $('chat-view').ariaBusy]"),
                         [False, True, "true"])
        self.assertLess(len(self.answer()), len(ANSWERS[0]))
        page.type("And then?")  # while the answer comes
        page.press("Enter")
        self.wait_idle()
        self.assertEqual(self.answer(), ANSWERS[0])
        self.assertEqual(page.run("[$('stop').disabled, $('regenerate').disabled, $('chat-view').ariaBusy]"),
                         [True, False, None])
        self.assertEqual(page.run("$('message').value"), "And then?")
        self.assertIn("first token after", page.run("$('log').textContent"))
        page.wait("/^(39|40|41)\\.\\d tokens.s · 394 MiB of memory · 18 /.test("
                  "document.querySelector('footer').textContent)")

    def test_sends_settings_and_earlier_messages(self):
        page = self.open()
        for control, value in (("temperature", "0.5"), ("top_p", "0.9"), ("seed", "7"), ("max_tokens", "64"),
                               ("system", "Be brief.")):
            self.type(control, value)
        self.ask("one")
        self.wait_idle()
        self.type("message", "two")
        page.press("Enter", shift=True)
        page.type("three")
        page.press("Enter")
        self.wait_idle()
        self.assertEqual(self.server.requests[1], ("/v1/chat/completions", {
            "model": "smollm2-135m-instruct", "seed": 7, "temperature": 0.5, "top_p": 0.9, "max_tokens": 64,
            "stream": True, "messages": [
                {"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"},
                {"role": "assistant", "content": ANSWERS[0]}, {"role": "user", "content": "two\nthree"}]}))
        self.type("temperature", "3")
        self.ask("four")
        self.assertEqual(len(self.server.requests), 2)  # a temperature of 3 is refused
        self.assertEqual(page.run("document.activeElement.id"), "temperature")

    def test_shows_texts_as_texts(self):
        page = self.open()
        self.ask("<img src=x onerror=\"alert(1)\"><script>alert(2)</script>")
        self.wait_idle()
        self.ask("two")
        self.wait_idle()
        self.assertEqual(self.answer(), ANSWERS[1])
        self.assertEqual(page.run("document.querySelectorAll('#log img, #log script, #log b').length"), 0)

    def test_stops_and_regenerates(self):
        page = self.open(pause=0.1)
        self.ask()
        page.wait("$('log').textContent.includes('kernel is')")
        page.press("Escape")
        self.wait_idle()
        self.assertTrue(self.answer() and ANSWERS[0].startswith(self.answer()), self.answer())
        self.assertIn("stopped", page.run("$('log').textContent"))
        self.assertEqual(page.run("$('problem').textContent"), "")
        deadline = time.monotonic() + 5
        while not self.server.left and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.server.left, 1)

        page.click("#regenerate")
        page.wait("$('log').textContent.includes('kernel is')")
        self.assertEqual(page.run("document.activeElement.id"), "stop")
        page.click("#stop")
        self.wait_idle()
        self.assertEqual(page.run("document.activeElement.id"), "regenerate")
        self.server.pause = 0
        page.press("Enter")
        self.wait_idle()
        self.assertEqual(self.answer(), ANSWERS[0])
        messages = [body["messages"] for _, body in self.server.requests]
        self.assertEqual(messages, [[{"role": "user", "content": QUESTION}]] * 3)
        page.click("#clear")
        self.assertEqual(page.run("[$('log').children.length, document.activeElement.id]"), [0, "message"])

    def test_continues_texts_without_a_template(self):
        page = self.open(models=["gpt-tales"])
        self.ask("Once upon a time")
        self.wait_idle()
        self.assertEqual(self.answer(), CONTINUATION)
        self.assertEqual(self.server.requests[0][1]["prompt"], "Once upon a time")
        self.assertEqual(page.run("[$('system-label').hidden, $('send').textContent]"), [True, "Continue"])
        self.assertEqual(page.run("[...document.querySelectorAll('nav a')].filter(a => !a.hidden).map(a => a.hash)"),
                         ["#chat", "#attention"])


class OtherViewsTest(PageTest):
    def test_shows_the_attention_of_the_last_answer(self):
        page = self.open()
        self.ask()
        self.wait_idle()
        page.click("#explain")
        page.wait("!$('attention-result').hidden && !running.attention")
        text = self.server.requests[-1][1]["text"]
        self.assertTrue((QUESTION + "\n" + ANSWERS[0]).endswith(text) and text.startswith(QUESTION), text)
        self.assertEqual(page.run("[$('layer').value, $('head').value]"), ["3", "-1"])
        self.assertFalse(page.run("$('kind').checkVisibility()"))
        painted = "new Set($('map').getContext('2d').getImageData(0, 0, $('map').width, $('map').height).data).size"
        self.assertGreater(page.run(painted), 20)
        page.run("$('map').focus()")
        before = page.run("$('reading').textContent")
        self.assertRegex(before, "“.+” takes 0\\.\\d{3} from “▁What”")
        page.press("ArrowRight")
        self.assertIn("from “▁does”", page.run("$('reading').textContent"))
        page.run("$('head').value = 2, $('head').onchange()")
        self.assertIn("head 3", page.run("$('map').ariaLabel"))
        page.run("$('model').value = 'de-en', $('model').dispatchEvent(new Event('change'))")
        page.click("#show")
        page.wait("$('kind').checkVisibility() && $('kind').options.length === 3")

    def test_translates_with_an_alignment(self):
        page = self.open()
        self.translate()
        self.assertEqual([body["text"] for path, body in self.server.requests if path == "/attention"],
                         [list(TRANSLATIONS)[0]])  # of the first pair only
        page.run("document.querySelector('#pairs button.word').focus()")
        for _ in range(4):
            page.press("ArrowRight")
        self.assertEqual(page.run("document.activeElement.textContent"), "across")
        page.wait("$('sources').textContent.startsWith('“across” ← “über” 0.')")
        self.assertEqual(page.run("[...document.querySelectorAll('.strongest')].map(w => w.textContent)"), ["über"])
        page.run("$('align-layer').value = 0, $('align-layer').onchange()")
        page.wait("$('sources').textContent.includes('“nassen”')")
        page.click("#pairs li:nth-child(3) button:nth-of-type(5)")  # the mouse comes over it
        page.wait("$('sources').textContent.startsWith('“red” ← ')")
        self.assertEqual(page.run("document.querySelectorAll('button.word[tabindex=\"0\"]').length"), 3)

    def test_finds_the_tokens_of_words(self):
        page = self.open()
        for words, tokens, expected in (
                (["Ein", " ", "Hund", "."], ["<s>", "▁Ein", "▁Hu", "nd", ".", "</s>"], [[1], [], [2, 3], [4]]),
                (["Two", " ", "dogs"], ["[CLS]", "two", "do", "##gs", "[SEP]"], [[1], [], [2, 3]]),
                (["der", " ", "der"], [" der", " d@@", "er"], [[0], [], [1, 2]]),
                (["é", "x"], ["<0xC3>", "<0xA9>", "x"], [[0, 1], [2]]),
                (["wug", " ", "und"], ["<unk>", "und"], [[], [], [1]])):
            self.assertEqual(page.run(f"tokensOf({json.dumps(words)}, {json.dumps(tokens)})"), expected)

    def test_classifies(self):
        page = self.open(models=["sst2"])
        page.wait("!$('classify-view').hidden || !$('attention-view').hidden")
        self.show("classify")
        self.type("classified", "A warm, funny and very human film.")
        page.click("#classify-form button.main")
        page.wait("$('labels').rows.length === 3")
        self.assertIn("positive0.982", page.run("$('labels').textContent"))

    def test_says_what_failed(self):
        self.expected_problems = 2
        page = self.open()
        page.wait("!$('chat-view').hidden")
        self.server.failures.append((503, "64 texts are waiting already"))
        self.ask()
        page.wait("$('problem').textContent === '64 texts are waiting already'")
        self.assertEqual(page.run("[$('message').value, $('log').children.length]"), [QUESTION, 0])
        page.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1,
                  uploadThroughput=-1)
        page.press("Enter")
        page.wait("$('problem').textContent === 'The server does not answer.'")

    def test_keeps_what_came_of_a_broken_answer(self):
        page = self.open(cut=5)
        self.ask()
        page.wait("$('problem').textContent === 'The connection ended before the answer did.'")
        self.assertEqual(self.answer(), "A kernel is cut into ")
        self.assertIn("broken off", page.run("$('log').textContent"))
        self.server.cut = None
        page.click("#regenerate")
        self.wait_idle()
        self.assertEqual([self.answer(), page.run("$('problem').textContent")], [ANSWERS[0], ""])

    def test_says_that_no_model_fits(self):
        page = self.open(models=[])
        page.wait("$('problem').textContent.startsWith('The server has no model')")

    def test_asks_for_the_key(self):
        self.expected_problems = 2  # 401, twice
        page = self.open(key="s3cret")
        page.wait("$('key-dialog').open")
        page.type("wrong")
        page.press("Enter")
        page.wait("$('key-why').textContent === 'The server refused this key.' && $('key-dialog').open")
        page.type("s3cret")
        page.press("Enter")
        self.ask()
        page.wait("$('log').textContent.includes('kernel')")
        self.wait_idle()
        self.assertEqual(page.run("[localStorage.length, sessionStorage.length, document.cookie, $('key').value]"),
                         [0, 0, "", ""])


class AccessTest(PageTest):
    def fill(self, long: int = 0) -> None:
        """Brings content into every view: also a word of so many letters."""
        self.ask()
        self.wait_idle()
        self.ask("And if I close the connection while it answers? " + "w" * long)
        self.wait_idle()
        self.page.wait("document.querySelector('footer').textContent")
        self.page.click("#explain")
        self.page.wait("!$('attention-result').hidden && !running.attention")
        self.translate()
        self.page.run("document.querySelectorAll('#pairs button.word')[4].focus()")
        self.show("classify")
        self.type("classified", "A warm, funny and very human film." + "w" * long)
        self.page.press("Tab")
        self.page.press("Enter")
        self.page.wait("$('labels').rows.length === 3")

    def test_fits_every_width_with_contrast(self):
        page = self.open()
        self.fill(long=0 if "shots" in OPTIONS else 300)
        for view in VIEWS:
            self.show(view)
            for width in WIDTHS:
                for dark in (False, True):
                    with self.subTest(view=view, width=width, dark=dark):
                        page.look(width, dark=dark)
                        page.run(f"$('settings').open = {'true' if width > 720 else 'false'}")
                        page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
                        self.assertEqual(page.run(TOO_WIDE), [])
                        self.assertEqual(page.run(LOW_CONTRAST), [])
                        if "shots" in OPTIONS and width != 320:
                            narrow = "narrow_" if width == 400 else ""
                            page.shoot(f"{OPTIONS['shots']}/{view}_{narrow}{'dark' if dark else 'light'}.png")

    def test_tab_reaches_every_control_with_a_visible_focus(self):
        page = self.open()
        self.fill()
        for view in VIEWS:
            for width in (320, 1280):
                with self.subTest(view=view, width=width):
                    page.look(width)
                    self.show(view)
                    usable, reached = page.run(USABLE), []
                    self.assertGreater(len(usable), 5)
                    page.run("document.activeElement.blur(), getSelection().removeAllRanges()")
                    for _ in range(2 * len(usable) + 5):
                        page.press("Tab")
                        name, style, outline = page.run("""(() => {
                            const at = document.activeElement, {outlineStyle, outlineWidth} = getComputedStyle(at);
                            return [at === document.body ? '' : nameOf(at), outlineStyle, parseFloat(outlineWidth)];
                        })()""")
                        if name:
                            self.assertTrue(style != "none" and outline >= 2, f"{name} has no visible focus")
                            reached.append(name)
                    self.assertEqual(sorted(set(usable)), sorted(set(reached)))

    def test_controls_have_names(self):
        page = self.open()
        self.fill()
        for view in VIEWS:
            self.show(view)
            for node in page.call("Accessibility.getFullAXTree")["nodes"]:
                role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value")
                if not node["ignored"] and role in ("button", "link", "textbox", "spinbutton", "combobox", "image",
                                                    "log", "meter", "navigation", "DisclosureTriangle"):
                    self.assertTrue(name, f"{view}: a {role} without a name: {node}")

    def test_avoids_motion_on_request(self):
        page = self.open(pause=0.2)
        motion = "getComputedStyle($('log').lastElementChild.querySelector('div'), '::after').animationName"
        self.ask()
        page.wait("messages.length === 2")
        self.assertEqual(page.run(motion), "pulse")
        page.look(1280, still=True)
        self.assertEqual(page.run(motion), "none")


class ServerTest(PageTest):
    """Uses each view of a server once: of the one that --server names, or of the mock server."""

    def test_each_view(self):
        page = self.open_url(OPTIONS["server"]) if "server" in OPTIONS else self.open()
        self.wait_ready()
        views = [view for view in VIEWS if page.run(f"!document.querySelector('nav a[href=\"#{view}\"]').hidden")]
        self.assertTrue(views)
        if "chat" in views:
            page.run("$('max_tokens').value = 24, $('seed').value = 1")
            self.ask("In the beginning")
            page.wait("!running.chat && messages.length === 2", 120)
            first = self.answer()
            self.assertTrue(first)
            page.click("#regenerate")
            page.wait("!running.chat && messages.length === 2", 120)
            self.assertEqual(self.answer(), first)  # the seed is the same
        for view, control, done in (("attention", "attended", "!$('attention-result').hidden"),
                                    ("translate", "source", "$('pairs').children.length"),
                                    ("classify", "classified", "$('labels').rows.length > 1")):
            if view in views:
                self.show(view)
                self.type(control, "a small dog runs .")
                page.click(f"#{view}-form button.main")
                page.wait(f"!running.{view} && {done}", 120)
                self.assertEqual(page.run("$('problem').textContent"), "")
        if "translate" in views and page.run("models.translate.weft.tasks.includes('attention')"):
            page.wait("$('sources').textContent.includes('←')", 120)
        page.wait("document.querySelector('footer').textContent.includes('tokens/s')")


if __name__ == "__main__":
    if not CHROMIUM:
        print("skipped: there is no chromium; its package has the same name")
        sys.exit(0)
    names = [argument for argument in sys.argv[1:] if "=" not in argument] or ["ServerTest"] * ("server" in OPTIONS)
    unittest.main(argv=[sys.argv[0]] + names)
