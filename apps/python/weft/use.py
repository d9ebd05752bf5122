"""Training by name, and trained or published models."""
import os
import threading
from typing import Any, Callable, Dict, List, Optional, Union

from weft import _weft
from weft.options import texts

Path = Union[str, "os.PathLike[str]"]


def train(kind: str, **options: Any) -> str:
    """Trains a model as `weft train KIND` does, and returns the run's folder. Prints the same progress.

    kind: gpt, bert, translate, classify or vit. Options are those of the command: data="book.txt", steps=1000,
    learning_rate=1e-3, out="runs/book", resume=True, quiet=True, ... Ctrl-C saves the run and raises KeyboardInterrupt.
    """
    return _weft._train(kind, texts(options))


def load(path: Path) -> "Model":
    """Opens a run of weft.train, a folder of Hugging Face, a GGUF file, or another model that `weft` reads."""
    return Model(path)


class Model:
    """A trained or published model. Methods take the options of the commands `weft generate`, `weft translate`, ...

    A method opens the model when it is first called, and again if its options change. Threads take turns.
    """

    def __init__(self, path: Path):
        self.path = os.fspath(path)
        self.kind = _weft._family(self.path)  # "a GPT"
        self._lock = threading.Lock()
        self._opened: Dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<weft.Model {self.path}: {self.kind}>"

    def _open(self, make: Any, options: Dict[str, Any], *more: str) -> Any:
        key = (texts(options), more)
        if make not in self._opened or self._opened[make][0] != key:
            self._opened.pop(make, None)
            self._opened[make] = (key, make(self.path, key[0], *more))
        return self._opened[make][1]

    def generate(self, prompts: Union[str, List[str]], on_text: Optional[Callable[[str], Any]] = None,
                 **options: Any) -> Any:
        """Returns the continuation of a text, or a list of those of several.

        on_text: called with each new piece of the continuation, of one text only. Options: length=100, temperature=0,
        seed=2, stop=["\\n"], ...
        """
        several = not isinstance(prompts, str)
        if several and on_text is not None:
            raise ValueError("on_text: got several prompts, wanted one")
        continuations = [""] * (len(prompts) if several else 1)

        def add(prompt: int, text: str) -> None:
            continuations[prompt] += text
            if on_text is not None and text:
                on_text(text)

        with self._lock:
            self._open(_weft._Generator, options).run(list(prompts) if several else [prompts], add)
        return continuations if several else continuations[0]

    def translate(self, lines: Union[str, List[str]], **options: Any) -> Any:
        """Returns the translation of a line, or a list of those of several. With n_best, each is a list, best first.

        Options: beam=4, n_best=3, max_length=100, ...
        """
        several = not isinstance(lines, str)
        with self._lock:
            found = self._open(_weft._Translator, options).run(list(lines) if several else [lines])
        lists = any(value is not None and _weft._option(name, ["n-best"]) for name, value in options.items())
        found = found if lists else [best[0] if best else "" for best in found]
        return found if several else found[0]

    def embed(self, lines: Union[str, List[str]], prompt_name: str = "", **options: Any) -> Any:
        """Returns the sentence embedding of a text, f32 [C], or those of several, [n, C]."""
        import numpy

        several = not isinstance(lines, str)
        with self._lock:
            encoder = self._open(_weft._Encoder, options, prompt_name)
            found = numpy.array(encoder.run(list(lines) if several else [lines]), dtype="float32")
        return found.reshape(-1, encoder.width) if several else found[0]

    def classify(self, inputs: Any, **options: Any) -> Any:
        """Returns the labels of a text with their probabilities, likeliest first, or a list of such dicts for a list.

        A model of pairs takes tuples of two texts. A model that labels words returns a list of (word, dict) for each
        text. A Vision Transformer takes paths of pictures.
        """
        for name, value in options.items() if self.kind == "a ViT" else ():
            if value is not None and _weft._option(name, ["truncate", "pairs", "special-tokens"]):
                raise ValueError(f"{name} has no use in classifying pictures")
        several = isinstance(inputs, list)
        with self._lock:
            classifier = self._open(_weft._Classifier, options)
            found = classifier.run([_parts(each, classifier) for each in (inputs if several else [inputs])])
        found = [list(zip(words, scores)) if classifier.labels_words else scores[0] for words, scores in found]
        return found if several else found[0]


def _parts(example: Any, classifier: Any) -> List[str]:
    """Returns the texts of an example: of a pair, or the words of a text if the classifier labels words."""
    if isinstance(example, str) and classifier.labels_words:
        return example.split()
    return [os.fspath(each) for each in example] if isinstance(example, (tuple, list)) else [os.fspath(example)]
