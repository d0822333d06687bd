"""``pmsim crash FILE.py:CLASS``: a prototype from the shell."""

import queue
import subprocess
import sys
from pathlib import Path

import pytest

from pmsim.prototype.load import load_prototype

PAIR = '''
from pmsim.prototype import Prototype


class Word(Prototype):
    """A word, durable when it is acknowledged."""

    def create(self, memory):
        self.base = memory.allocate("pmem", 64, "word")

    def run(self, memory, value):
        memory.store(self.base, value)
        memory.persist(self.base, 8, "word")

    def recover(self, memory):
        self.base = memory.region("word")
        return memory.load(self.base)

    def expected(self, done):
        return done[-1] if done else 0

    def draw(self, random):
        return random.randrange(1, 1000)


class Unflushed(Word):
    def run(self, memory, value):
        memory.store(self.base, value)
        memory.sfence()


class Raises(Word):
    def run(self, memory, value):
        return 1 // 0


class Exits(Word):
    def run(self, memory, value):
        raise SystemExit(3)


class CannotGoOn(Word):
    def recover(self, memory):
        found = super().recover(memory)
        if found:
            del self.base
        return found


class Divides(Unflushed):
    def recover(self, memory):
        return 1 // super().recover(memory)
'''


def crash(folder: Path, *arguments: str, keys: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "words.py").write_text(PAIR)
    command = [sys.executable, "-m", "pmsim", "crash", *arguments, "--states", "500"]
    return subprocess.run(
        command, cwd=folder, input=keys, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_right_prototype_is_right_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    right = crash(tmp_path, "words.py:Word")
    assert (right.returncode, right.stderr) == (0, "")
    assert "no violation" in right.stdout
    assert "mutation score 100%: 2 of 2 removals were noticed" in right.stdout
    wrong = crash(tmp_path, "words.py:Unflushed", "words.py:Word", "--no-mutate")
    assert (wrong.returncode, wrong.stderr) == (1, "")
    assert "VIOLATION\nUnflushed: recover() returned" in wrong.stdout
    assert wrong.stdout.index("VIOLATION") < wrong.stdout.index("no violation")


def test_the_recovery_of_a_violation_runs_in_the_debugger(tmp_path: Path) -> None:
    found = crash(tmp_path, "words.py:Unflushed", "words.py:Raises", "--debug", keys="n\np self.base % 64\nc\n")
    assert found.returncode == 1
    _, _, session = found.stdout.partition("-> self.base = memory.region")
    assert "-> return memory.load(self.base)\n(Pdb) 0\n(Pdb) recover() returned 0\n" in session
    assert "Raises" not in found.stdout + found.stderr  # the first violation is the last thing looked at

    raised = crash(tmp_path, "words.py:Divides", "--debug", keys="c\n")
    assert "(Pdb) recover() raised ZeroDivisionError" in raised.stdout
    assert raised.stderr == ""
    left = crash(tmp_path, "words.py:Divides", "--debug", keys="q\n")
    assert (left.returncode, left.stderr) == (1, "")

    later = crash(tmp_path, "words.py:CannotGoOn", "--debug", keys="c\n")
    assert "after a recovery, raised AttributeError" in later.stdout
    assert later.stdout.endswith("earlier recovery: of after_crash(violation, 1).\n")

    right = crash(tmp_path, "words.py:Word", "--debug")
    assert right.returncode == 0
    assert "Pdb" not in right.stdout


def test_a_file_may_have_the_name_of_a_module_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "queue.py").write_text(PAIR)
    assert load_prototype(f"{tmp_path / 'queue.py'}:Word").__name__ == "Word"
    assert sys.modules["queue"] is queue


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["words.py:Wort"], 2, "words.py: no prototype 'Wort'; did you mean 'Word'"),
        (
            ["words.py"],
            2,
            "words.py: Word, Unflushed, Raises, Exits, CannotGoOn, Divides: say which, as words.py:Word",
        ),
        (["other.py:Word"], 2, "other.py: no such file; name a prototype as FILE.py:CLASS"),
        (["broken.py:Word"], 2, "broken.py: raises SyntaxError"),
        (["empty.py:Word"], 2, "empty.py: no subclass of pmsim.prototype.Prototype has all methods"),
        (["words.py:Word", "--threads", "9"], 2, "threads: 9 is too much; choose at most 8"),
        (
            ["inplace-fam", "--threads", "2"],
            2,
            "--threads is for prototypes, and inplace-fam is a block; leave it out",
        ),
        (["words.py:Word", "--jobs", "2"], 2, "--jobs has no use for words.py:Word"),
        (["words.py:Unflushed", "inplace-fam", "--debug"], 2, "and inplace-fam is C++; leave it out"),
        (["words.py:Exits"], 1, "words.py:Exits fails while the power is on: SystemExit: 3"),
        (["words.py:Raises"], 1, "words.py:Raises fails while the power is on: ZeroDivisionError"),
    ],
)
def test_what_cannot_be_checked_is_one_line(
    arguments: list[str], status: int, message: str, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text("class Word(:\n")
    (tmp_path / "empty.py").write_text("from pmsim.prototype import Prototype\n")
    refused = crash(tmp_path, *arguments)
    assert (refused.returncode, refused.stdout) == (status, "")
    assert refused.stderr.startswith("pmsim: ")
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1
