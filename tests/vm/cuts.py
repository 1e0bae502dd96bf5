"""Power cuts: the machine always boots the old or the new image, whole, and the next upgrade succeeds.

A cut is an immediate reset without a sync, at a named point inside the program (failpoint action `cut`), or QEMU killed at
a random moment. After it the disk is looked at from outside, the machine is started and must come up by itself, and
then it is brought to the next version.
"""

import json
import random
import time

from .lab import GuestError, GuestGone, settled
from .stories import ALL, Story

# Where → points. Each is cut once; `core` runs in continuous integration.
UPGRADE = {"import-layer": True, "import-merge": True, "import-commit": True, "stage": False, "stage-written": True}
FINALIZE = {
    "finalize-started": True, "deploy-checkout": True, "etc.copied": False, "deploy-etc": True, "deploy-entries": True, "trial-recorded": True,
    "menu-written": True, "trial-armed": True, "switch-prepared": True, "switch-written": True, "switch-finished": True, "deploy-done": False,
}
HEALTH = {"mark-good-recorded": True, "mark-good-journaled": False, "mark-good-counter": True}
GIVE_UP = {"give-up-held": False, "give-up-entries": False, "give-up-journaled": False}
RANDOM_CUTS = 5


def _lost_power(machine, timeout):
    """Until the reset of a cut; an orderly reboot instead of it is an error."""
    machine.wait_off(timeout)
    if "sysrq: Resetting" not in machine.console(5):
        raise GuestError("the machine was not cut where it should have been")
    machine.cut()


def _cut_in_upgrade(machine, point):
    machine.fire(f"RASUPD_FAILPOINT={point}=cut rasupd --progress none upgrade")
    _lost_power(machine, 200)


def _cut_in_finalize(machine, point):
    machine.write("/run/rasupd-test/rasupd-finalize.env", f"RASUPD_FAILPOINT={point}=cut\n")
    machine.fire("systemctl reboot")
    _lost_power(machine, 200)


def _cut_in_health(machine, point):
    machine.write("/var/lib/rasupd-test/rasupd-health.env", f"RASUPD_FAILPOINT={point}=cut\n")
    machine.fire("systemctl reboot")
    machine.wait_off(120)
    machine.start()
    _lost_power(machine, 200)


def _cut_in_first_boot(machine, moment):
    machine.fire("systemctl reboot")
    machine.wait_off(120)
    machine.start()
    time.sleep(moment)
    machine.cut()


def _cut_by_clock(machine, moment):
    machine.fire("rasupd --progress none upgrade && systemctl reboot")
    deadline = time.monotonic() + moment
    while time.monotonic() < deadline:
        if machine.process.poll() is not None:  # it rebooted meanwhile: the cut falls into the first boot
            machine.start()
        time.sleep(0.1)
    machine.cut()


def _whole(world, machine, what):
    """What must hold for the disk at any moment. Returns the version that would boot."""
    disk = world.look(machine)
    world.check(not disk.faults, f"{what}: {disk.faults}")
    version = disk.versions[0]
    world.check(version in ("1.0", "2.0"), f"{what}: version {version} boots")
    return version, disk


def _after(world, machine):
    """From the cut to the next upgrade."""
    version, disk = _whole(world, machine, "after the cut")
    events = [json.loads(line) for line in disk.journal if line.endswith("}")]
    good = any(event["event"] == "mark-good" and event["digest"] == world.digests["2.0"] for event in events)
    if version == "2.0" and not good:
        world.check(disk.armed, f"the new deployment would boot unarmed: trial {disk.trial!r}, counter {disk.counter}, {disk.journal[-6:]}")
    world.check("1.0" in disk.versions, f"the way back is gone: {disk.versions}")
    machine.start().wait_up(timeout=200, max_boots=2)
    running = machine.sh("cat /usr/share/rasupd-image/version")
    # GRUB reads ext4 without its journal: for a moment the kernel knows of the new entries and GRUB does not.
    world.check(running == version or (running, version) == ("1.0", "2.0"), f"{running} booted, but the entries say {version}")
    world.runs(machine, running)
    settled(machine)
    world.cuts.cut({"1.0": "old", "2.0": "new"}[running])
    world.say(f"{running} runs after {machine.boot_seconds:.0f} s")
    following = "2.0"
    if running == "2.0":
        following = "7.0"
        world.channel.move_to("7.0")
        world.good(machine)
    world.rasupd(machine, "upgrade")
    machine.off(120)
    last = world.look(machine)
    world.check(not last.faults, f"after the next upgrade: {last.faults}")
    world.equal(following, last.versions[0], "what boots after the next upgrade")


def _tell(world, make, cut, point):
    machine = make(world)
    world.channel.move_to("2.0")
    try:
        cut(machine, point)
        _after(world, machine)
    except (AssertionError, GuestError, GuestGone):
        world.cuts.cut("broken")
        raise


def _register(kind, points, make, cut):
    for point, core in points.items():
        def tell(world, point=point):
            _tell(world, make, cut, point)
        ALL.append(Story(f"cut-{kind}-{point}", f"power is cut at {point}", core, tell))


_register("upgrade", UPGRADE, lambda world: world.running(), _cut_in_upgrade)
_register("finalize", FINALIZE, lambda world: world.staged(), _cut_in_finalize)
_register("health", HEALTH, lambda world: world.staged(), _cut_in_health)
_register("first-boot", {4: True, 9: False}, lambda world: world.staged(), _cut_in_first_boot)


def _cut_while_giving_up(world, point):
    """The way back from a bad image is itself cut: the machine still ends on the old one, and holds the bad one."""
    machine = world.running()
    machine.write("/etc/rasupd/rasupd.conf.d/tries.conf", "[health]\ntries=1\n")
    world.channel.move_to("5.0")
    world.rasupd(machine, "upgrade")
    try:
        _cut_in_health(machine, point)
        disk = world.look(machine)
        world.check(not disk.faults, f"after the cut: {disk.faults}")
        machine.start().wait_up(timeout=200, max_boots=2)
        if machine.sh("cat /usr/share/rasupd-image/version") == "5.0":
            machine.next_boot(200)
        world.runs(machine, "1.0")
        settled(machine)
        held = [entry["digest"] for entry in world.status(machine)["rasupd"]["held"]]
        world.equal([world.digests["5.0"]], held, "held")
    except (AssertionError, GuestError, GuestGone):
        world.cuts.cut("broken")
        raise
    world.cuts.cut("old")
    world.channel.move_to("7.0")
    world.rasupd(machine, "upgrade")


for _point, _core in GIVE_UP.items():
    ALL.append(Story(f"cut-giving-up-{_point}", f"power is cut at {_point}", _core, lambda world, point=_point: _cut_while_giving_up(world, point)))


def _at_random(number):
    def tell(world):
        moment = random.Random(f"{world.lab.seed} {number}").uniform(1, 45)
        world.say(f"cut after {moment:.1f} s (seed {world.lab.seed})")
        _tell(world, lambda world: world.running(), _cut_by_clock, moment)
    return Story(f"cut-at-random-{number}", "power is cut at a random moment from upgrade to the first boot", False, tell)


ALL.extend(_at_random(number) for number in range(RANDOM_CUTS))
