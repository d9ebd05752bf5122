"""Mode `random`: kills runs at random moments by SIGKILL, completes them, and compares them with undisturbed runs."""

import random
import signal
import time

from trainings import Broken, Report, Training


def _kill_until_done(training: Training, rng: random.Random, seconds: float, kills: int, report: Report) -> int:
    """Kills a run up to `kills` times, each time within `seconds` of its start. Returns the number of kills."""
    path = training.path("killed")
    training.remove("killed")
    done = 0
    while done < kills:
        began = path.exists() and (path / "config.json").exists()
        process = training.start("killed", *(["--resume"] if began else []))
        time.sleep(rng.uniform(0, seconds))
        process.send_signal(signal.SIGKILL)
        code = process.wait()
        if code == 0:
            break
        if code != -signal.SIGKILL:
            return done  # complete() tells why
        done += 1
        report.count("kills")
        if any(path.glob("checkpoints/.writing-*")) or any(path.glob("checkpoints/.replaced-*")):
            report.count("kills during a checkpoint")
    return done


def run(trainings: list, kills: int, seed: int) -> int:
    """Kills all trainings in turn, until there were `kills` kills, and a third of that number during a checkpoint."""
    report = Report({"kills": 0, "kills during a checkpoint": 0, "runs": 0})
    rng = random.Random(seed)
    whole, seconds = {}, {}
    for training in trainings:
        begin = time.monotonic()
        whole[training.name] = training.undisturbed()
        seconds[training.name] = time.monotonic() - begin
    figures = report.figures
    while figures["kills"] < kills or 3 * figures["kills during a checkpoint"] < kills:
        if figures["runs"] >= 20 * kills:
            report.fail("all trainings", "too few kills fell into a checkpoint")
            break
        training = trainings[figures["runs"] % len(trainings)]
        _kill_until_done(training, rng, seconds[training.name], 10, report)
        report.count("runs")
        try:
            training.complete_and_compare("killed", whole[training.name])
        except Broken as error:
            report.fail(f"train {training.name} after {figures['kills']} kills", error)
    return report.end("random")
