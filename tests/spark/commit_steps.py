"""Runs saves that stop at every step: in processes that are killed there, and beside a reader that lists meanwhile.

A program of its own, ``commit_steps.py kill|beside FOLDER ARGUMENTS``: it forks, and its audit hook stays.
A step is a call that changes the file system; the interpreter announces each to the hook before it happens.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from pqext.dataset.files.folders import list_files
from pqext.dataset.writing import commit

JOB = "a" * 32
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir"}

before_change: Callable[[], None] | None = None
before_look: Callable[[], None] | None = None


def hook(event: str, arguments: tuple[Any, ...]) -> None:
    written = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if before_change is not None and (event in CHANGES or written):
        before_change()
    if before_look is not None and (event == "os.scandir" or (event == "open" and not written)):
        before_look()


def run(work: str, target: Path, names: list[str], overwrite: bool) -> None:
    if work == "save":
        commit.commit(target, JOB, names, overwrite=overwrite)
    else:
        commit.clean(target, older_than=timedelta(0))


def killed(work: str, target: Path, step: int, how: str, names: list[str], overwrite: bool) -> bool:
    """Whether a process that does ``work`` and is killed before its change number ``step`` was killed at all."""
    process = os.fork()
    if process == 0:
        left = step

        def stop() -> None:
            nonlocal left
            if left == 0:
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                os._exit(9)
            left -= 1

        global before_change
        before_change = stop
        run(work, target, names, overwrite)
        os._exit(0)
    status = os.waitpid(process, 0)[1]
    assert status == 0 or os.waitstatus_to_exitcode(status) == (-signal.SIGKILL if how == "kill" else 9)
    return status != 0


def kill_everywhere(folder: Path, names: list[str], overwrite: bool) -> list[str]:
    """Copies of ``folder/base``, each with a save killed at one step; and of these, each with a killed cleaning."""
    made = []
    for how in ("kill", "exit"):
        step, more = 0, True
        while more:
            target = folder / f"{how}-{step:03}"
            shutil.copytree(folder / "base", target)
            more = killed("save", target, step, how, names, overwrite)
            made.append(target.name)
            again = 0
            while how == "kill" and more:
                retried = folder / f"{target.name}-{again:03}"
                shutil.copytree(target, retried)
                more_again = killed("clean", retried, again, how, names, overwrite)
                made.append(retried.name)
                if not more_again:
                    break
                again += 1
            step += 1
    return made


def list_beside(folder: Path, names: list[str], overwrite: bool) -> list[list[str]]:
    """All distinct listings by a reader beside a save: ``first`` steps come before it, ``more`` at its ``look``."""
    found: set[tuple[str, ...]] = set()
    first = 0
    while True:
        for more in (1, 3, 10**6):
            look = 0
            while True:
                target = folder / "beside"
                shutil.copytree(folder / "base", target)
                save = Stepped(lambda: run("save", target, names, overwrite))  # noqa: B023
                save.advance(first)
                ended = save.ended
                looks = [look]

                def step() -> None:
                    if threading.current_thread() is threading.main_thread():
                        if looks[0] == 0:  # noqa: B023
                            save.advance(more)  # noqa: B023
                        looks[0] -= 1  # noqa: B023

                global before_look
                before_look = step
                listing = list_files(str(target))
                before_look = None
                found.add(tuple(os.path.basename(path) for path in listing))
                save.advance(10**6)
                shutil.rmtree(target)
                look += 1
                if looks[0] >= 0:
                    break
        if ended:
            return [list(one) for one in found]
        first += 1


class Stepped:
    """Work in a thread that stops before every change until it may go on."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.ended = False
        self._work = work
        self._go, self._at = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._at.acquire()

    def advance(self, steps: int) -> None:
        while steps and not self.ended:
            self._go.release()
            self._at.acquire()
            steps -= 1

    def _run(self) -> None:
        global before_change
        before_change = self._wait
        self._work()
        before_change = None
        self.ended = True
        self._at.release()

    def _wait(self) -> None:
        if threading.current_thread() is self._thread:
            self._at.release()
            self._go.acquire()


if __name__ == "__main__":
    commit.flush = lambda path: None  # a killed process loses nothing that the system has, on its disk or not
    sys.addaudithook(hook)
    do = {"kill": kill_everywhere, "beside": list_beside}[sys.argv[1]]
    arguments = json.loads(sys.argv[3])
    print(json.dumps(do(Path(sys.argv[2]), arguments["names"], arguments["overwrite"])))
