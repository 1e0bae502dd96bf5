"""What a guest of the boot tests has more than the image of examples/images/debian: a directory for `build.sh --site`.

Every guest has the agent and the way to arm failpoints. The fast guest also has an initramfs of busybox and
ostree-prepare-root, and no units it can do without: a boot under TCG takes half the time.
"""

import os
import re
import shutil
import subprocess
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest")
MODULES = ("virtio_pci", "virtio_blk", "ext4", "xfs", "overlay", "erofs")
APPLETS = ("sh", "mount", "insmod", "sleep", "cat", "switch_root")
# Units of rasupd that a story may want to be cut in.
ARMED = ("rasupd-finalize", "rasupd-health", "rasupd-firstboot")
UNIT = "usr/lib/systemd/system"


def _put(path, content, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(content)
    os.chmod(path, mode)


def _link(path, target):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(target, path)


def with_agent(site):
    """The agent, the network, and for each unit of rasupd a drop-in through which a failpoint reaches it."""
    for name in ("agent", "network", "arm"):
        os.makedirs(os.path.join(site, "usr/libexec/rasupd-test"), exist_ok=True)
        shutil.copy(os.path.join(HERE, name), os.path.join(site, "usr/libexec/rasupd-test", name))
    unit = "rasupd-test-agent.service"
    os.makedirs(os.path.join(site, UNIT), exist_ok=True)
    shutil.copy(os.path.join(HERE, unit), os.path.join(site, UNIT, unit))
    _link(os.path.join(site, UNIT, "multi-user.target.wants", unit), "../" + unit)
    for name in ARMED:
        text = f"[Service]\nExecStartPre=-/usr/libexec/rasupd-test/arm {name}\nEnvironmentFile=-/run/rasupd-test/{name}.env\n"
        _put(os.path.join(site, UNIT, name + ".service.d", "90-test.conf"), text)
    _put(os.path.join(site, "usr/lib/rasupd/rasupd.conf.d/90-test.conf"), "[health]\ncheck_timeout=60\ndeadline=90\n")
    _put(os.path.join(site, "usr/lib/systemd/system.conf.d/90-test.conf"), "[Manager]\nDefaultTimeoutStopSec=20s\nShowStatus=no\n")


def trimmed(site, base, kver, busybox):
    """Makes the fast guest of it; `base` is the directory base.sh printed, `busybox` a static one for the guest."""
    with open(os.path.join(HERE, "masked"), encoding="utf-8") as source:
        masked = [word for line in source if not line.startswith("#") for word in line.split()]
    for unit in masked:
        _link(os.path.join(site, UNIT, unit), "/dev/null")
    _link(os.path.join(site, UNIT, "default.target"), "multi-user.target")
    # Disks get their names; nothing else of a virtual machine needs udev.
    trigger = "[Service]\nExecStart=\nExecStart=/usr/bin/udevadm trigger --type=devices --action=add --subsystem-match=block\n"
    _put(os.path.join(site, UNIT, "systemd-udev-trigger.service.d/90-test.conf"), trigger)
    _put(os.path.join(site, "usr/lib/systemd/journald.conf.d/90-test.conf"), "[Journal]\nStorage=volatile\nForwardToConsole=yes\nTTYPath=/dev/ttyS0\nMaxLevelConsole=info\n")
    initramfs = os.path.join(site, "usr/lib/modules", kver, "initramfs.img")
    os.makedirs(os.path.dirname(initramfs), exist_ok=True)
    fast_initramfs(base, kver, busybox, initramfs)


def _extract(archive, into, names):
    subprocess.run(["tar", "-C", into, "-xf", archive, *names], check=True)


def module_order(dep_text, wanted):
    """The modules of `wanted` with what they need, each after its needs; built-in ones are left out."""
    needs = {}
    for line in dep_text.splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
    name = lambda path: re.sub(r"\.ko.*$", "", os.path.basename(path)).replace("-", "_")
    order = []
    for path in needs:
        if name(path) in wanted:
            order += [need for need in [*reversed(needs[path]), path] if need not in order]
    return order


def _libraries(root, program):
    listed = subprocess.run(["chroot", root, "ldd", program], check=True, capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", listed)


def fast_initramfs(base, kver, busybox, out):
    """Busybox, the modules of the root's file system, ostree-prepare-root; a gzip-compressed archive at `out`."""
    with tempfile.TemporaryDirectory(prefix="rasupd-initramfs-") as work:
        root, image = os.path.join(work, "root"), os.path.join(work, "image")
        os.makedirs(root)
        _extract(os.path.join(base, "base.tar"), root, ["."])
        _extract(os.path.join(base, "kernel.tar"), root, ["./usr/lib/modules"])
        for folder in ("bin", "dev", "proc", "sys", "run", "sysroot", "modules", "etc", "usr/lib/ostree"):
            os.makedirs(os.path.join(image, folder))
        shutil.copy(busybox, os.path.join(image, "bin/busybox"))
        for applet in APPLETS:
            os.symlink("busybox", os.path.join(image, "bin", applet))
        shutil.copy(os.path.join(HERE, "init"), os.path.join(image, "init"))
        programs = ["/usr/lib/ostree/ostree-prepare-root", "/usr/sbin/findfs"]
        libraries = {path for program in programs for path in _libraries(root, program)}
        for path in ["/usr/lib/ostree/prepare-root.conf", *programs, *libraries]:
            os.makedirs(os.path.dirname(image + path), exist_ok=True)
            shutil.copy(_inside(root, path), image + path)
        _copy_modules(os.path.join(root, "usr/lib/modules", kver), os.path.join(image, "modules"))
        _pack(image, out)


def _inside(root, path):
    """The file a link means when `root` is /."""
    done = subprocess.run(["chroot", root, "readlink", "-f", path], check=True, capture_output=True, text=True)
    return root + done.stdout.strip()


def _copy_modules(source, target):
    with open(os.path.join(source, "modules.dep"), encoding="utf-8") as text:
        order = module_order(text.read(), MODULES)
    names = []
    for path in order:
        name = os.path.basename(path)
        if name.endswith(".xz"):
            name = name[:-3]
            with open(os.path.join(target, name), "wb") as out:
                subprocess.run(["xz", "-dc", os.path.join(source, path)], check=True, stdout=out)
        else:
            shutil.copy(os.path.join(source, path), target)
        names.append(name)
    _put(os.path.join(target, "order"), "".join(name + "\n" for name in names))


def _pack(image, out):
    names = subprocess.run(["find", ".", "-mindepth", "1"], cwd=image, check=True, capture_output=True).stdout
    packed = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=image, input=names, check=True, stdout=subprocess.PIPE)
    with open(out, "wb") as target:
        subprocess.run(["gzip", "-1n"], input=packed.stdout, check=True, stdout=target)
