"""Makes mistakes at the command line for real, and writes down what troth says about them.

Owns: the place where they are made (a chain, keys, a data set, a run), and texts without anything
that differs from one place to the next.
Never: knows a mistake; mistake_list.py has them.
Next: test_mistakes.py holds the page against the answers; scripts/gen/mistakes.py writes it.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from solders.keypair import Keypair
from tokenizers import AddedToken, Tokenizer, models

from support.cli import Cli, Done
from support.network import CONFIG, PROGRAM, Bench, prepare_text, start
from troth_cli.main import run

LOCAL = "http://127.0.0.1:8899"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "mistakes.md"
SLOT_MILLISECONDS = 200
"""So long that no waiting time of the run is over before the last mistake is made."""
WEBSOCKET = "127.0.0.1:8900"
_STARRED = re.compile(r"(\*\*.* \\\*\*\*\n\n```text\n(?:.*\n){3}  found ) .*")
_ADDRESS = re.compile(r"\b[1-9A-HJ-NP-Za-km-z]{43,44}\b")
_VARYING = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"127\.0\.0\.1:\d{5}"), "127.0.0.1:8899"),
    (re.compile(r"slot \d+"), "slot N"),
    (re.compile(r"\b\d+ slots?, about [\d.]+ \w+"), "N slots, about M minutes"),
)
_HEAD = """# Mistakes and their messages

A test makes each of these mistakes, at a real chain with a real run, and holds this page against
the answers. Every error names what was expected, what was found, and what to do next. The exit code
is 1 for a command that failed and 2 for one that was not understood. With `--json` the same parts
come as one object. A star ends a title where a library words what was found; its next version may
use other words.

Generated: run scripts/gen/mistakes.py instead of editing. Addresses appear as the names of their
files.
"""


@dataclass(frozen=True)
class Mistake:
    """A command line that is wrong; `title` says how, `subject` is its chapter.

    RUN in the command stands for the address of the run, X_ADDRESS for that of x.json, and the port
    8900 for the websocket's. A star ends the title where a library words what was found: its words
    may change with its version, and the page stays right.
    """

    subject: str
    title: str
    command: str
    code: int = 1


@dataclass(frozen=True)
class Answer:
    """The exit code, and stderr: `raw`, and from the error on without what varies."""

    code: int
    out: str
    raw: str
    text: str


class Redirected(Cli):
    """The command line in this process, without pytest."""

    def __init__(self) -> None:
        """Needs no fixture."""

    def __call__(self, *arguments: object) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run([str(argument) for argument in arguments])
        return Done(code, out.getvalue(), err.getvalue())


class Workplace:
    """A folder, a chain and a run at which mistakes are made."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._websocket = bench.launcher.ws_url.removeprefix("ws://")
        _write_files(bench.folder)
        for name, amount in (("authority", 10), ("stranger", 10), ("poor", 0.001), ("owner", 10)):
            bench.key(name, amount)
        bench.key("broke", 0)
        with self._at_work():
            shutil.copytree(bench.data, "data")
            self.run = bench.create(name="run")
            bench.take_a_seat(self.run, "owner", "left")
            bench.cli.json(*bench.of_run("leave", run=self.run, key="left"))
        self._names = {self.run: "RUN", str(PROGRAM): "PROGRAM"}
        for path in bench.folder.glob("*.json"):
            with contextlib.suppress(ValueError):
                key = Keypair.from_json(path.read_text())
                self._names[str(key.pubkey())] = path.stem.upper()

    def make(self, mistake: Mistake) -> Answer:
        """Type the command and return the answer."""
        words = [self._filled(word) for word in shlex.split(mistake.command)]
        with self._at_work():
            done = self.bench.cli(*words)
        _, head, error = done.err.rpartition("error: ")
        return Answer(done.code, done.out, done.err, self._plain((head + error).strip()))

    def _filled(self, word: str) -> str:
        for address, name in self._names.items():
            place = name if name == "RUN" else f"{name}_ADDRESS"
            word = address if word == place else word
        return word.replace(WEBSOCKET, self._websocket)

    def _plain(self, text: str) -> str:
        for address, name in self._names.items():
            text = text.replace(address, name)
        text = text.replace(f"{self.bench.folder}/", "").replace(self.bench.rpc, LOCAL)
        text = text.replace(self._websocket, WEBSOCKET)
        text = _ADDRESS.sub("ADDRESS", text)
        for pattern, instead in _VARYING:
            text = pattern.sub(instead, text)
        return text

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        # No config of this machine's user: its key and its node would be taken.
        own = {"TROTH_RPC": self.bench.rpc, "TROTH_PROGRAM": "", "HOME": str(self.bench.folder)}
        with contextlib.chdir(self.bench.folder), mock.patch.dict(os.environ, own):
            yield


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[Workplace]:
    """A new chain and a run on it, with files in a new folder."""
    place = folder / "work"
    place.mkdir()
    launcher = start(slot_milliseconds=SLOT_MILLISECONDS)
    try:
        yield Workplace(Bench(Redirected(), launcher, place, prepare_text(folder)))
    finally:
        launcher.stop()


def page(answers: Sequence[tuple[Mistake, Answer]]) -> str:
    """The page of all mistakes, chapter by chapter in their order."""
    subjects = list(dict.fromkeys(mistake.subject for mistake, _ in answers))
    chapters = [
        "\n".join([f"\n## {subject}\n", *_sections(subject, answers)]) for subject in subjects
    ]
    return _HEAD + "".join(chapters)


def own_words(text: str) -> str:
    """The page without the words of libraries."""
    return _STARRED.sub(r"\1", text)


def _sections(subject: str, answers: Sequence[tuple[Mistake, Answer]]) -> Iterator[str]:
    for mistake, answer in answers:
        if mistake.subject == subject:
            typed = f"$ troth {mistake.command}"
            title = mistake.title.replace("*", "\\*")
            yield f"**{title}**\n\n```text\n{typed}\n{answer.text}\n```\n"


def _write_files(folder: Path) -> None:
    """The files that commands name: a config, texts, data, a tokenizer, keys that are none."""
    shutil.copy(CONFIG, folder / "smoke.toml")
    texts = {
        "notes.txt": "some words of a text\n" * 2_000,
        "tiny.txt": "x",
        "garbage.json": "no key at all",
        "short.json": "[1, 2, 3]",
        "halves.json": str(list(range(64))),
        "broken.toml": "[model\n",
        "twice.toml": "[schedule]\nlr = 0.003\nlr_nano = 3_000_000\n",
        "typo.toml": "[schedule]\nround = 3\n",
        "taken.toml": "mine\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "full").mkdir()
    (folder / "full" / "other.txt").write_text("mine")
    (folder / "other").mkdir()
    prepare_text(folder / "other", "other words of a text\n" * 9_000)
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "some": 1}, unk_token="[UNK]"))
    made.add_special_tokens([AddedToken("<stop>", special=True)])
    made.save(str(folder / "tokenizer.json"))
