#!/usr/bin/python3
"""Tells the boot stories: real machines in QEMU that are installed, updated, broken and rolled back.

    python3 -B -m tests.vm.run [--core] [-j N] [--suite bookworm|trixie] [--arch amd64|arm64] [--list] [--keep] [NAME…]

NAMEs are globs over the stories' names. --core: those that continuous integration runs. --keep leaves the files of
the run. As root, with QEMU; RASUPD is the program (default build/dev/bin/rasupd, with fault injection), RASUPD_GUEST
the one for the guests when their release needs another (tests/debian13.sh builds it); RASUPD_VM_ACCEL=tcg|kvm forces
the accelerator. Ends with one line that counts, and 1 when a story failed.
"""

import argparse
import fnmatch
import os
import queue
import random
import signal
import sys
import threading
import time
import traceback

from . import architecture, cuts, stories
from .lab import GuestError, Lab, Skip, World
from .machine import Machine

assert cuts  # registers its stories
print_lock = threading.Lock()


def say(text):
    """One line, whole."""
    with print_lock:
        print(text, flush=True)


class Tally:
    """What came of the stories and of the power cuts."""

    def __init__(self):
        self.lock = threading.Lock()
        self.stories = {"passed": 0, "failed": 0, "skipped": 0}
        self.cuts = {"old": 0, "new": 0, "broken": 0}

    def cut(self, outcome):
        """A machine came up after a power cut: "old", "new", or it is "broken"."""
        with self.lock:
            self.cuts[outcome] += 1

    def story(self, outcome):
        """A story ended."""
        with self.lock:
            self.stories[outcome] += 1

    def line(self):
        """The last line of a run."""
        told, cut = self.stories, self.cuts
        return (f"stories: {told['passed']} passed, {told['failed']} failed, {told['skipped']} skipped; "
                f"cuts: {sum(cut.values())}, old: {cut['old']}, new: {cut['new']}, broken: {cut['broken']}")


def tell(lab, story, tally, keep):
    """One story from its beginning to its end; what it started is ended."""
    world = World(lab.full() if story.full else lab, story.name, say, tally)
    try:
        story.tell(world)
        outcome = "passed"
    except Skip as reason:
        world.say(f"skipped: {reason}")
        outcome = "skipped"
    except Exception as error:  # a story that fails must not end the others
        outcome = "failed"
        text = str(error) if isinstance(error, (AssertionError, GuestError)) else traceback.format_exc()
        where = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(where) if "/vm/stories" in frame.filename or "/vm/cuts" in frame.filename), 0)
        consoles = "".join(f"\n--- console of {machine.folder}\n{machine.console(40)}\n--- the guest\n{machine.diagnosis()}" for machine in world.machines)
        world.say(f"FAILED at line {line}: {text}{consoles}")
    finally:
        world.close(keep)
    if outcome == "passed":
        world.say("passed")
    tally.story(outcome)


def chosen(options):
    """The stories that were asked for."""
    wanted = [story for story in stories.ALL if not options.core or story.core]
    for name in options.names:
        if not any(fnmatch.fnmatchcase(story.name, name) for story in wanted):
            raise SystemExit(f"no story is called {name}; --list shows them")
    if options.names:
        wanted = [story for story in wanted if any(fnmatch.fnmatchcase(story.name, name) for name in options.names)]
    return wanted


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--core", action="store_true")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("--arch", default="amd64", choices=architecture.ALL)
    parser.add_argument("--seed", type=int, default=random.randrange(10000), help="of the random power cuts")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


def main():
    """Runs; returns the exit code."""
    options = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wanted = chosen(options)
    if options.list:
        for story in wanted:
            print(f"{story.name:28} {'core' if story.core else '    '}  {story.about}")
        return 0
    if os.geteuid() != 0:
        print("needs root: disks are made and looked into", file=sys.stderr)
        return 2
    begun, tally, work = time.monotonic(), Tally(), queue.Queue()
    for story in wanted:
        work.put(story)
    lab = Lab(options.suite, options.keep, seed=options.seed, architecture=architecture.ALL[options.arch])
    try:
        say(f"accelerator {lab.choose_accelerator()}, seed {options.seed}, files {lab.folder}")
        run_all(lab, work, tally, options)
    finally:
        lab.close()
    say(f"{time.monotonic() - begun:.0f} s")
    say(tally.line())
    return 1 if tally.stories["failed"] or tally.cuts["broken"] else 0


def run_all(lab, work, tally, options):
    """The stories, `jobs` at a time."""
    def worker():
        while True:
            try:
                story = work.get_nowait()
            except queue.Empty:
                return
            tell(lab, story, tally, options.keep)
    threads = [threading.Thread(target=worker) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:  # Ctrl-C, or a polite end: nothing goes on running
        while not work.empty():
            work.get_nowait()
        Machine.cut_all()
        for thread in threads:
            thread.join()
        raise


if __name__ == "__main__":
    sys.exit(main())
