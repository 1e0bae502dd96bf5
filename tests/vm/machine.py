"""One virtual machine: start, run a command in it, reboot, cut its power, keep and resume a running state.

QEMU runs with one processor and single-threaded TCG: with two, QEMU 7.2 lost guests in early boot. It runs with
-no-reboot, and a reboot is a new QEMU on the same disk: under TCG a warm reset takes twice as long as a cold start.
RASUPD_VM_ACCEL=tcg|kvm says which accelerator; without it KVM is used where a guest really boots (see probe()).
"""

import base64
import contextlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import time

from .architecture import AMD64

PORT = "rasupd.agent"


class GuestError(Exception):
    """A command failed in the guest, or the guest did not come up."""


class GuestGone(GuestError):
    """The guest stopped or rebooted while an answer was awaited."""


def overlay(base, path):
    """A qcow2 file that holds what differs from `base`."""
    kind = "qcow2" if base.endswith(".qcow2") else "raw"
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", os.path.realpath(base), "-F", kind, path]
    subprocess.run(command, check=True)
    return path


class Machine:
    """A machine with its files in `folder`; use it as a context manager: nothing of it survives the block."""

    accel = "tcg"
    architecture = AMD64
    ended = False  # True once the run was interrupted: nothing starts any more
    running = set()

    def __init__(self, folder, disk, firmware, memory=1024):
        self.folder, self.disk, self.firmware, self.memory = str(folder), disk, firmware, memory
        os.makedirs(self.folder, exist_ok=True)
        self.serial = os.path.join(self.folder, "serial.log")
        self.process = self.agent = self.boot_id = None
        self.boots = 0
        self.boot_seconds = None
        self._buffer, self._numbers = b"", itertools.count(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()

    # --- power ---

    def start(self, resume=None):
        """Power on; `resume` names a state kept by keep(). Returns at once, see wait_up()."""
        self.cut()
        if Machine.ended:
            raise GuestError("the run was interrupted")
        for name in ("agent", "monitor"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._socket(name))
        command = self._command() + (["-loadvm", resume] if resume else [])
        self.started = time.monotonic()
        with open(os.path.join(self.folder, "qemu.log"), "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        Machine.running.add(self.process)
        self.agent, self._buffer = self._connect("agent"), b""
        self.boots += 0 if resume else 1
        return self

    def _socket(self, name):
        return os.path.join(self.folder, name + ".sock")

    def _command(self):
        command = [self.architecture.qemu, *(self.architecture.kvm if self.accel == "kvm" else self.architecture.machine)]
        command += ["-smp", "1", "-m", str(self.memory), "-no-reboot", "-nodefaults", "-no-user-config", "-display", "none"]
        command += ["-chardev", f"file,id=serial,path={self.serial},append=on", "-serial", "chardev:serial"]
        command += ["-drive", f"file={self.disk},if=none,id=disk,format=qcow2,cache=writeback,discard=unmap"]
        command += ["-device", "virtio-blk-pci,drive=disk,bootindex=1", "-device", "virtio-rng-pci"]
        command += ["-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,path={self._socket('agent')},server=on,wait=off"]
        command += ["-device", f"virtserialport,chardev=agent,name={PORT}"]
        command += ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="]
        command += ["-qmp", f"unix:{self._socket('monitor')},server=on,wait=off"]
        return command + (self._firmware() if self.firmware == "uefi" else [])

    def _firmware(self):
        # The variables are a qcow2 file: a running state cannot be kept with a raw one.
        code, empty = self.architecture.uefi
        variables = os.path.join(self.folder, "nvram.qcow2")
        if not os.path.exists(variables):
            subprocess.run(["qemu-img", "convert", "-O", "qcow2", empty, variables], check=True)
        return ["-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={code}",
                "-drive", f"if=pflash,unit=1,format=qcow2,file={variables}"]

    def _connect(self, name):
        deadline = time.monotonic() + 20
        while True:
            try:
                end = socket.socket(socket.AF_UNIX)
                end.connect(self._socket(name))
                return end
            except OSError:
                end.close()
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise GuestError("QEMU did not start: " + self.qemu_log()) from None
                time.sleep(0.02)

    def cut(self):
        """Power gone: what the guest did not flush is lost."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
            Machine.running.discard(self.process)
        if self.agent:
            self.agent.close()
        self.process = self.agent = None

    @classmethod
    def cut_all(cls):
        """Ends every machine of this run, for good."""
        cls.ended = True
        for process in list(cls.running):
            process.kill()

    def off(self, timeout=60):
        """An orderly power-off."""
        self.fire("systemctl poweroff")
        self.wait_off(timeout)
        self.cut()

    def wait_off(self, timeout=60):
        """Until the guest turned itself off or reset itself."""
        deadline = self._deadline(timeout)
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise GuestError(f"the guest still runs after {timeout} s")
            self._drain()
            time.sleep(0.05)

    def _deadline(self, timeout):
        return time.monotonic() + timeout * self.architecture.patience

    def _drain(self):
        # An agent that waits for somebody to read its answer would hold up the shutdown.
        with contextlib.suppress(OSError):
            self.agent.settimeout(0.01)
            self.agent.recv(1 << 16)

    def reboot(self, command="systemctl reboot", timeout=120, max_boots=1, off_timeout=90):
        """An orderly reboot; more than one boot when the machine resets itself on the way. Returns the seconds."""
        begun = time.monotonic()
        self.fire(command)
        self.wait_off(off_timeout)
        self.start()
        self.wait_up(timeout, max_boots)
        return time.monotonic() - begun

    def next_boot(self, timeout=120):
        """Waits for a reboot the machine does by itself, and through it. Returns the seconds."""
        begun = time.monotonic()
        self.wait_off(timeout)
        self.start()
        self.wait_up(timeout)
        return time.monotonic() - begun

    def wait_up(self, timeout=120, max_boots=1):
        """Until the agent says hello, starting the machine again when it resets itself, `max_boots` boots at most."""
        deadline, boots = self._deadline(timeout), 1
        while True:
            try:
                return self._hello(deadline)
            except GuestGone:
                boots += 1
                if boots > max_boots:
                    raise
                self.start()

    def _hello(self, deadline):
        while True:
            words = self._line(deadline).split()
            if words[:1] == ["HELLO"]:
                self.boot_id = words[1]
                self.boot_seconds = time.monotonic() - self.started
                return self.boot_seconds

    # --- commands ---

    def _line(self, deadline):
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                raise GuestError("no answer from the guest in time")
            self.agent.settimeout(min(left, 1))
            try:
                data = self.agent.recv(1 << 16)
            except socket.timeout:
                if self.process.poll() is None:
                    continue
                data = b""
            except ConnectionError:
                data = b""
            if not data:
                raise GuestGone("the guest stopped")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line.decode(errors="replace").strip("\r")

    def fire(self, script):
        """Runs a script without waiting for it. Returns the request's number."""
        number = f"r{next(self._numbers)}"
        self.agent.settimeout(20)
        self.agent.sendall(f"{number} {base64.b64encode(script.encode()).decode()}\n".encode())
        return number

    def run(self, script, timeout=120):
        """Runs a bash script; returns (exit code, output)."""
        return self.answer(self.fire(script), timeout)

    def answer(self, number, timeout=120):
        """What came of a fired script."""
        deadline = self._deadline(timeout)
        while True:
            words = self._line(deadline).split(" ")
            if words[0] == "HELLO":
                raise GuestGone("the guest rebooted")
            if words[0] == number:
                return int(words[1]), base64.b64decode(words[2]).decode(errors="replace") if len(words) > 2 else ""

    def sh(self, script, timeout=120):
        """Runs a script that must succeed; returns its output without the last newline."""
        code, output = self.run(script, timeout)
        if code:
            raise GuestError(f"exit {code}: {script}\n{output}")
        return output.rstrip("\n")

    def rasupd(self, *words, timeout=300, failpoint=None):
        """Runs `rasupd --json`; returns (exit code, document)."""
        armed = f"RASUPD_FAILPOINT={failpoint} " if failpoint else ""
        script = f"{armed}rasupd --json --progress none {' '.join(words)} 2>/run/rasupd-test.err; c=$?; cat /run/rasupd-test.err >/dev/kmsg; exit $c"
        code, output = self.run(script, timeout)
        try:
            return code, json.loads(output)
        except ValueError:
            raise GuestError(f"rasupd {' '.join(words)}: exit {code}, no JSON: {output}") from None

    def write(self, path, content):
        """Writes a file in the guest and flushes it."""
        packed = base64.b64encode(content.encode()).decode()
        self.sh(f"mkdir -p $(dirname '{path}') && base64 -d <<< '{packed}' > '{path}' && sync -f '{path}'")

    # --- states ---

    def keep(self, name):
        """Keeps the running state in the disk file; start(resume=name) goes on from there."""
        self.sh("sync")
        answer = self._monitor(f"savevm {name}")
        if answer.strip():
            raise GuestError("savevm: " + answer)

    def _monitor(self, line):
        with contextlib.closing(self._connect("monitor")) as end:
            end.settimeout(60)
            stream = end.makefile("rw")
            stream.readline()
            for command in ({"execute": "qmp_capabilities"}, {"execute": "human-monitor-command", "arguments": {"command-line": line}}):
                stream.write(json.dumps(command) + "\n")
                stream.flush()
                answer = {}
                while not answer.keys() & {"return", "error"}:
                    answer = json.loads(stream.readline())
            if "error" in answer:
                raise GuestError(f"{line}: {answer['error']}")
            return answer["return"]

    def copy(self, folder):
        """A powered-off machine of its own with this one's disk, kept states and firmware variables."""
        os.makedirs(folder, exist_ok=True)
        disk = os.path.join(folder, "disk.qcow2")
        subprocess.run(["cp", "--reflink=auto", "--sparse=always", self.disk, disk], check=True)
        if self.firmware == "uefi":
            shutil.copy(os.path.join(self.folder, "nvram.qcow2"), folder)
        return type(self)(folder, disk, self.firmware, self.memory)

    # --- looking back ---

    def qemu_log(self):
        """What QEMU said."""
        with open(os.path.join(self.folder, "qemu.log"), encoding="utf-8", errors="replace") as source:
            return source.read()[-2000:]

    def console(self, lines=60):
        """The last lines of the serial console."""
        if not os.path.exists(self.serial):
            return ""
        with open(self.serial, encoding="utf-8", errors="replace") as source:
            return "\n".join(source.read().splitlines()[-lines:])


    def diagnosis(self):
        """What the guest itself says of its state, when it still answers."""
        if not self.process or self.process.poll() is not None:
            return "(off)"
        script = """rasupd status; echo "--- /var/lib/rasupd"; head -c 4000 /var/lib/rasupd/{trial,good,held}; tail -n 12 /var/lib/rasupd/journal
            echo "--- journal"; journalctl -b -o short-monotonic --no-pager -u 'rasupd-*' | grep -v agent | tail -n 30
            echo "--- entries"; tail -n +1 /boot/loader/entries/* | grep -v '^$'; find /efi/loader /efi/EFI -type f; findmnt -lo TARGET,SOURCE,FSTYPE -t ext4,vfat,autofs
            systemctl --failed --no-legend"""
        try:
            return self.run(script, timeout=40)[1]
        except (GuestError, OSError) as error:
            return f"(no answer: {error})"


def probe(folder, disk):
    """Which accelerator to use: "kvm" where a guest really boots with it, else "tcg".

    That /dev/kvm can be opened says little: nested virtualisation may stop at the first unusual instruction or
    run a hundred times too slow. A usable KVM boots the guest within seconds.
    """
    forced = os.environ.get("RASUPD_VM_ACCEL")
    if forced in ("tcg", "kvm"):
        return forced
    if forced:
        raise SystemExit("RASUPD_VM_ACCEL is tcg or kvm")
    if not Machine.architecture.kvm or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    with Machine(folder, overlay(disk, os.path.join(folder, "probe.qcow2")), Machine.architecture.firmwares[0]) as machine:
        machine.accel = "kvm"
        try:
            machine.start().wait_up(timeout=25)
        except GuestError:
            return "tcg"
    return "kvm"
