"""Mode `flip`: flips a bit in a file of the newest checkpoint or of the weights, and expects an error that names the
file."""

import random
import shutil

from trainings import Broken, Report, Training, compare, contents
from trainings import run as run_command

SMALL = 4096  # bytes: smaller files get a flip in every byte


def _offsets(size: int, places: int, rng: random.Random) -> list:
    return list(range(size)) if size < SMALL or size <= places else sorted(rng.sample(range(size), places))


def _flip(path, offset: int, bit: int) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def _resume_reports(training: Training, name: str, whole: dict) -> None:
    """Expects that a resume names the file or its checkpoint, and that a successful resume gives the whole run."""
    result = training.run("flipped", "--resume")
    if result.code < 0:
        raise Broken(f"ended by signal {-result.code}")
    step = name.split("/")[1]
    if name not in result.err and f"checkpoint of step {step}" not in result.err:
        raise Broken(f"not reported; exit code {result.code} {result.err.strip()}")
    if result.code == 0:
        differences = compare(contents(training.path("flipped")), whole)
        if differences:
            raise Broken("reported, but " + "; ".join(differences))


def _generate_reports(training: Training, name: str) -> None:
    result = run_command([training.weft, "generate", "--model=flipped", "--prompt=the", "--length=1"], training.folder)
    if result.code == 0 or name not in result.err:
        raise Broken(f"not reported by generate; exit code {result.code} {result.err.strip()}")


def run(trainings: list, places: int, seed: int) -> int:
    report = Report({"flips": 0})
    rng = random.Random(seed)
    for training in trainings:
        whole = training.undisturbed()
        newest = max(int(path.name) for path in training.path("whole").glob("checkpoints/*"))
        names = sorted(name for name in whole if name.startswith(f"checkpoints/{newest}/"))
        if training.name == "gpt":  # the other models load their weights in the same way
            names.append("model.safetensors")
        for name in names:
            silent = 0
            first = ""
            offsets = _offsets((training.path("whole") / name).stat().st_size, places, rng)
            for offset in offsets:
                training.remove("flipped")
                shutil.copytree(training.path("whole"), training.path("flipped"))
                bit = rng.randrange(8)
                _flip(training.path("flipped") / name, offset, bit)
                report.count("flips")
                try:
                    if name == "model.safetensors":
                        _generate_reports(training, name)
                    else:
                        _resume_reports(training, name, whole)
                except Broken as error:
                    silent += 1
                    first = first or f"bit {bit} of byte {offset}: {error}"
            if silent:
                report.fail(f"train {training.name}, {name}", f"{silent} of {len(offsets)} flips; the first: {first}")
    return report.end("flip")
