"""The stories, each told on one machine. Most begin with a machine that already runs v1 and is marked good."""

import json
import os
from dataclasses import dataclass
from typing import Callable

from .lab import settled

ALL = []
LOADERS = (("bios", "grub"), ("uefi", "grub"), ("uefi", "systemd-boot"))


@dataclass
class Story:
    """One story; `core`: continuous integration tells it."""

    name: str
    about: str
    core: bool
    tell: Callable
    full: bool = False  # told with the untrimmed guest


def story(name, about, core=False, full=False):
    """Registers a function of a world as a story."""
    def register(function):
        ALL.append(Story(name, about, core, function, full))
        return function
    return register


def each_loader(name, about, core):
    """The same story for every bootloader; `core` names those of continuous integration."""
    def register(function):
        for firmware, loader in LOADERS:
            kind = f"{loader}-{firmware}"
            given = {"firmware": firmware, "loader": loader}
            ALL.append(Story(f"{name}-{kind}", about, kind in core, lambda world, given=given: function(world, **given)))
        return function
    return register


@story("boots", "the image boots as installed, within the time the suite is planned with", core=True)
def boots(world):
    """A quiet boot takes 24 s under TCG; twice the 40 s of the plan is what a second guest beside it may cost."""
    machine = world.fresh().start()
    seconds = machine.wait_up()
    world.say(f"power to agent {seconds:.1f} s")
    world.check(seconds < 80 * world.lab.architecture.patience, f"the boot took {seconds:.1f} s")
    status = world.runs(machine, "1.0")
    world.check(status["rasupd"].get("trial") is None, "a first installation is no trial")
    world.equal("", machine.sh("systemctl --failed --no-legend --plain"), "failed units")


ETC = "cd /etc/test && grep . default.conf edited.conf late.conf mine.conf; ls | grep only"
VAR = "cd /var && find . -path ./lib/rasupd -prune -o -path ./lib/rasupd-test -prune -o -path ./tmp -prune -o -path ./lib/systemd -prune -o -path ./log -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum"


def _leave_traces(machine):
    """What this machine has of its own before an upgrade: edits in /etc, data in /var, a role."""
    machine.sh("echo edited > /etc/test/edited.conf; echo mine > /etc/test/mine.conf; mkdir -p /var/data /var/lib/rasupd; "
               "echo precious > /var/data/file; touch /var/lib/rasupd/role.api")


def _etc_of(version, late):
    kept = {"default.conf": f"default of {version}", "edited.conf": "edited", "late.conf": late, "mine.conf": "mine"}
    return "\n".join([*(f"{name}:{text}" for name, text in kept.items()), f"only-{version}.conf"])


@each_loader("upgrade-and-back", "v1 to v2 by the registry, back without it, and forth and back again", core=("grub-bios", "grub-uefi", "systemd-boot-uefi"))
def upgrade_and_back(world, firmware, loader):
    """Kernel, kernel arguments, /etc and /var of each version; the rollback needs no network."""
    machine = world.running(firmware, loader)
    _leave_traces(machine)
    world.channel.move_to("2.0")
    document = world.rasupd(machine, "upgrade")
    world.check(document["changed"], "nothing staged")
    status = world.status(machine)
    world.equal(world.digests["2.0"], status["staged"]["image"]["imageDigest"], "the digest staged")
    world.check("Staged: yes" in machine.sh("ostree admin status -v 2>&1; true") or "staged" in machine.sh("ostree admin status"), "ostree admin status shows no staged deployment")
    machine.sh("echo late > /etc/test/late.conf")  # after staging, and still merged
    before = machine.sh(VAR)
    world.say(f"into v2 after {machine.reboot():.0f} s")
    world.runs(machine, "2.0")
    world.check("rasupd.test=v2" in machine.sh("cat /proc/cmdline"), "v2's kernel argument is missing")
    world.equal(_etc_of("2.0", "late"), machine.sh(ETC), "/etc of v2")
    world.equal(before, machine.sh(VAR), "/var")
    machine.sh("test -e /var/lib/rasupd/role.api")
    world.good(machine)

    for version, argument in (("1.0", False), ("2.0", True), ("1.0", False)):
        _back(world, machine, version, argument, before)
    world.say("rolled back, forth and back with the registry out of reach")


def _back(world, machine, version, argument, var):
    """`rollback --apply` without a registry: the other version in one boot, with its own /etc."""
    nowhere = '[[registry]]\nprefix = "registry.test"\nlocation = "10.0.2.2:1"\n'
    machine.write("/etc/containers/registries.conf.d/test.conf", nowhere)
    machine.write("/etc/rasupd/rasupd.conf.d/impatient.conf", "[download]\nretries=0\n")
    world.equal(4, machine.rasupd("upgrade", "--check")[0], "the exit code of a check without a registry")
    before = machine.boots
    world.say(f"{version} after {machine.reboot('rasupd rollback --apply'):.0f} s")
    world.equal(1, machine.boots - before, "boots")
    world.runs(machine, version)
    world.equal(argument, "rasupd.test=v2" in machine.sh("cat /proc/cmdline"), "v2's kernel argument is there")
    world.equal(_etc_of(version, "late"), machine.sh(ETC), f"/etc of {version}")
    world.equal(var, machine.sh(VAR), "/var after the rollback")
    machine.sh("test -e /var/lib/rasupd/role.api")
    world.good(machine)


def _explained(world, machine, version, reason, why=""):
    """status, the journal and motd say why the machine does not run `version`; its digest is held."""
    held = [(entry["digest"], entry["reason"]) for entry in world.status(machine)["rasupd"]["held"]]
    world.equal([(world.digests[version], reason)], held, "held")
    told = machine.sh("rasupd status")
    world.check(reason in told and why in told, f"status does not say why: {told}")
    events = [json.loads(line) for line in machine.sh("cat /var/lib/rasupd/journal").splitlines()]
    backs = [event for event in events if event["event"] == "rollback"]
    world.check(backs and reason in backs[-1]["error"] and why in backs[-1]["error"], f"the journal does not say why: {events[-4:]}")
    motd = machine.sh("cat /run/motd.d/*")
    world.check(reason in motd and why in motd and world.digests[version] in motd, f"motd does not say why: {motd}")
    world.rasupd(machine, "upgrade", code=7)


def _broken(world, version, boots, timeout):
    """v1 takes `version`, which is broken, and runs again in the end. Returns the machine."""
    machine = world.running()
    machine.sh("mkdir -p /etc/rasupd/rasupd.conf.d; printf '[health]\\ntries=2\\n' > /etc/rasupd/rasupd.conf.d/tries.conf")
    world.channel.move_to(version)
    world.rasupd(machine, "upgrade")
    before, seconds = machine.boots, machine.reboot(timeout=timeout, max_boots=boots + 1)
    while machine.sh("cat /usr/share/rasupd-image/version") != "1.0":  # it got as far as the agent, and will reboot
        world.check(machine.boots - before < boots, f"{version} still runs after {boots} boots")
        seconds += machine.next_boot(timeout)
    world.say(f"v1 again after {seconds:.0f} s and {machine.boots - before} boots")
    world.equal(boots, machine.boots - before, "boots")
    world.runs(machine, "1.0")
    settled(machine)
    return machine


def _fixed(world, machine):
    """What is published next goes through."""
    world.channel.move_to("7.0")
    document = world.rasupd(machine, "upgrade")
    world.check(document["changed"], "v7 is not taken")
    world.equal(world.digests["7.0"], world.status(machine)["staged"]["image"]["imageDigest"], "staged")


@story("panics", "an initramfs that panics: two tries, then v1", core=True)
def panics(world):
    """The kernel resets the machine; the bootloader counts."""
    machine = _broken(world, "3.0", boots=3, timeout=200)
    _explained(world, machine, "3.0", "boot-failed")
    _fixed(world, machine)


@story("hangs", "userspace that never gets ready: the deadline resets, then v1", core=True)
def hangs(world):
    """Nothing fails, so only time can tell."""
    machine = _broken(world, "4.0", boots=3, timeout=600)
    _explained(world, machine, "4.0", "boot-failed")
    _fixed(world, machine)


@story("unhealthy", "a required check fails: two tries, then v1; v7 goes through", core=True)
def unhealthy(world):
    """The check's name and words reach the operator."""
    machine = _broken(world, "5.0", boots=3, timeout=300)
    _explained(world, machine, "5.0", "health-failed", "50-broken")
    _fixed(world, machine)
    world.say(f"into v7 after {machine.reboot():.0f} s")
    world.runs(machine, "7.0")
    world.good(machine)


@story("unmergeable", "an /etc that cannot be merged at shutdown: v1 stays and says why", core=True)
def unmergeable(world):
    """The conflict appears after staging, so that only finalize can meet it."""
    machine = world.running()
    world.channel.move_to("6.0")
    world.rasupd(machine, "upgrade")
    machine.sh("mkdir /etc/clash; echo mine > /etc/clash/file")
    machine.reboot()
    status = world.runs(machine, "1.0")
    last = status["rasupd"]["lastFinalize"]
    world.check(last and last["error"] and "clash" in str(last), f"lastFinalize does not tell: {last}")
    world.check("clash" in machine.sh("rasupd status"), "status does not name the file")
    machine.sh("rm -r /etc/clash")
    world.rasupd(machine, "unstage", code=0)
    world.channel.move_to("7.0")
    world.rasupd(machine, "upgrade")
    machine.reboot()
    world.runs(machine, "7.0")


@story("unhealthy-without-upgrade", "a check fails on a machine nobody upgraded: a warning, no reboot", core=True)
def unhealthy_without_upgrade(world):
    """The machine keeps running what it runs, for longer than any deadline."""
    machine = world.running()
    machine.sh("mkdir -p /etc/rasupd/health.d/required.d; cd /etc/rasupd/health.d/required.d; printf '#!/bin/sh\\nexit 1\\n' > 60-sick; chmod +x 60-sick")
    machine.reboot()
    boot = machine.boot_id
    settled(machine)
    machine.sh("sleep 100", timeout=300)
    world.equal(boot, machine.sh("cat /proc/sys/kernel/random/boot_id"), "the boot")
    status = world.runs(machine, "1.0")
    world.equal([], status["rasupd"]["held"], "held")
    world.check("60-sick" in machine.sh("rasupd health status; cat /run/motd.d/* 2>/dev/null; true"), "nothing warns of 60-sick")


@story("taken-over-from-bootc", "a machine whose origin bootc wrote is upgraded", core=True)
def taken_over_from_bootc(world):
    """The origin as ostree-ext writes it, none of rasupd's own memory, no layer refs."""
    machine = world.running()
    origin = "[origin]\ncontainer-image-reference=ostree-image-signed:docker://registry.test/fleet/os:stable\n"
    machine.sh(f"""set -e
      mount -o remount,rw /sysroot
      rm -rf /var/lib/rasupd
      ostree refs --list ostree/container | sed 's|^|ostree/container/|' | xargs -r -n1 ostree refs --delete
      for f in /sysroot/ostree/deploy/default/deploy/*.origin; do cat > $f <<'END'
{origin}END
      done""")
    _goes_to_v2(world, machine)


def _goes_to_v2(world, machine):
    world.channel.move_to("2.0")
    world.rasupd(machine, "upgrade")
    machine.reboot()
    world.runs(machine, "2.0")
    world.good(machine)


@story("taken-over-from-ostree", "a machine that `ostree admin` deployed is upgraded", core=True)
def taken_over_from_ostree(world):
    """A commit without the image's metadata, deployed by ostree with an origin that names the image."""
    machine = world.running()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "by_ostree.sh"), encoding="utf-8") as source:
        machine.sh("IMAGE=ostree-image-signed:docker://registry.test/fleet/os:stable\n" + source.read(), timeout=200)
    machine.reboot()
    status = world.status(machine)
    world.check((status["booted"] or {}).get("ostree"), f"what ostree deployed is not understood: {status}")
    _goes_to_v2(world, machine)


@story("small-boot", "/boot has no room for the kernel: refused at upgrade, the machine unchanged", core=True)
def small_boot(world):
    """A /boot of its own that holds two kernels, and an image whose initramfs has grown."""
    machine = world.fresh(options=("--boot-size=64M",)).start()
    machine.wait_up()
    world.connect(machine)
    settled(machine)
    seen = "ostree admin status; find /boot /sysroot/ostree/deploy -maxdepth 4 | sort; cat /boot/loader/entries/*"
    before = machine.sh(seen)
    world.channel.move_to("8.0")
    document = world.rasupd(machine, "upgrade", code=6)
    message = document["error"]["message"]
    world.check("/boot" in message and any(letter.isdigit() for letter in message), f"the message names no place and numbers: {message}")
    world.equal(before, machine.sh(seen), "the machine after a refusal")
    world.channel.move_to("2.0")
    world.rasupd(machine, "upgrade")
    machine.reboot()
    world.runs(machine, "2.0")


@story("full-guest", "dracut's initramfs, udev and every unit: v1 to v2", full=True)
def full_guest(world):
    """What the trimmed guest could hide: devices that udev names, the ESP's mount, the network as the image sets it up."""
    for firmware, loader in ((None, "grub"), ("uefi", "systemd-boot")):
        machine = world.fresh(firmware, loader).start()
        world.say(f"{loader}: power to agent {machine.wait_up(timeout=400):.0f} s")
        settled(machine, timeout=400)
        world.equal("", machine.sh("systemctl --failed --no-legend --plain"), "failed units")
        world.connect(machine)
        world.channel.move_to("2.0")
        world.rasupd(machine, "upgrade")
        machine.reboot(timeout=400)
        world.runs(machine, "2.0")
        settled(machine, timeout=400)
        world.good(machine)
        world.check("vfat" in machine.sh("ls /efi > /dev/null; findmnt -n -o FSTYPE -t vfat"), "the ESP is not mounted")
        machine.off(120)
