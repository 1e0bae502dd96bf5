"""What every black-box test stands on: the program, a sysroot, a configuration, and eyes for what changed.

The environment: RASUPD is the program under test. OSTREE_SYSROOT_DEBUG=mutable-deployments is set here so
that a test's trees can be removed again.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest
from dataclasses import dataclass

from . import sign
from .registry import Registry
from .schemas import complaints

CODES = {
    "Failed": 1, "Usage": 2, "Config": 3, "Offline": 4, "Untrusted": 5, "NoSpace": 6, "Held": 7, "Busy": 8,
    "Unsuitable": 9, "Boot": 10, "Denied": 11, "NotFound": 12, "Bug": 70, "Cancelled": 130,
}
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def program():
    """The path of the program under test."""
    path = os.environ.get("RASUPD", os.path.join(SOURCE, "build", "dev", "bin", "rasupd"))
    if not os.access(path, os.X_OK):
        raise RuntimeError(f"no program at {path}: build it, or set RASUPD")
    return path


def environment(**more):
    """The environment the program runs in."""
    return {**os.environ, "OSTREE_SYSROOT_DEBUG": "mutable-deployments", "LC_ALL": "C", **more}


@dataclass
class Outcome:
    """One run of the program."""

    words: list
    code: int
    stdout: str
    stderr: str

    @property
    def document(self):
        """The JSON document on stdout; raises when stdout is anything else."""
        return json.loads(self.stdout)

    @property
    def error(self):
        """The document's `error`, or {}."""
        return self.document.get("error") or {}

    def __str__(self):
        return f"rasupd {' '.join(self.words)}\nexit {self.code}\nstdout: {self.stdout}\nstderr: {self.stderr}"


def run(*words, timeout=180, wrapper=(), **env):
    """Runs the program to its end."""
    done = subprocess.run(
        [*wrapper, program(), *words], env=environment(**env), stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout
    )
    return Outcome(list(words), done.returncode, done.stdout.decode(), done.stderr.decode())


def start(*words, **env):
    """Starts the program and returns the process; the caller waits for it."""
    return subprocess.Popen(
        [program(), *words], env=environment(**env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _describe(path, times):
    """Everything about one path that a person would call its state."""
    info = os.lstat(path)
    kind = stat.S_IFMT(info.st_mode)
    content = ""
    if kind == stat.S_IFREG:
        with open(path, "rb") as source:
            content = hashlib.sha256(source.read()).hexdigest()
    elif kind == stat.S_IFLNK:
        content = os.readlink(path)
    xattrs = {} if kind == stat.S_IFLNK else {name: os.getxattr(path, name) for name in os.listxattr(path)}
    described = (oct(info.st_mode), info.st_uid, info.st_gid, content, tuple(sorted(xattrs.items())))
    return described + ((info.st_mtime_ns,) if times else ())


def snapshot(root, skip=(), times=False):
    """{relative path: description} of a tree; `skip` names relative paths to leave out."""
    seen = {}
    for folder, folders, files in os.walk(root):
        relative = os.path.relpath(folder, root)
        folders[:] = [name for name in folders if os.path.normpath(os.path.join(relative, name)) not in skip]
        for name in folders + files:
            path = os.path.normpath(os.path.join(relative, name))
            if path not in skip:
                seen[path] = _describe(os.path.join(folder, name), times)
    return seen


def differences(before, after):
    """The paths in which two snapshots differ, each with how."""
    found = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            found.append(f"{path}: {before.get(path)} -> {after.get(path)}")
    return found


class Sysroot:
    """A sysroot directory seen without the program: entries, deployments, files."""

    STATE = "ostree/deploy/default/var/lib/rasupd"

    def __init__(self, path):
        self.path = str(path)

    def __truediv__(self, relative):
        return os.path.join(self.path, relative)

    def entries(self):
        """The boot entries, first (default) to last, as {key: value}."""
        folder = self / "boot/loader/entries"
        found = []
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name), encoding="utf-8") as source:
                found.append(dict(line.strip().split(None, 1) for line in source if len(line.split(None, 1)) == 2))
        return sorted(found, key=lambda entry: -int(entry["version"]))

    def deployment_of(self, entry):
        """The directory an entry boots, by its ostree= link."""
        link = re.search(r"(?:^|\s)ostree=(\S+)", entry["options"]).group(1)
        return os.path.realpath(self / link.lstrip("/"))

    def deployments(self):
        """The deployment directories in boot order."""
        return [self.deployment_of(entry) for entry in self.entries()]

    def default(self, relative=""):
        """A path in the deployment that boots next."""
        return os.path.join(self.deployments()[0], relative)

    def kernel_of(self, entry):
        """The bytes of the kernel an entry boots."""
        return read(self / os.path.join("boot", entry["linux"].removeprefix("/boot").lstrip("/")), "rb")

    def origin(self, deployment):
        """The text of a deployment's origin file."""
        return read(deployment + ".origin")

    def fsck(self):
        """ostree's own verdict on every object."""
        done = subprocess.run(["ostree", "fsck", "--quiet", "--repo=" + (self / "ostree/repo")], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def admin_status(self):
        """What `ostree admin status` prints; raises when it fails."""
        command = ["ostree", "admin", "status", "--sysroot=" + self.path]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
        if done.returncode:
            raise AssertionError("ostree admin status: " + done.stderr)
        return done.stdout

    def boot_state(self):
        """What must not change when an operation is refused: entries, kernels, deployments, /etc, /var.

        Left out are the repository (verified layers may stay as a cache) and the program's own state."""
        seen = {"boot/" + path: what for path, what in snapshot(self / "boot", skip=("lost+found",)).items()}
        seen.update({"deploy/" + path: what for path, what in snapshot(self / "ostree/deploy", skip=("default/var/lib/rasupd",)).items()})
        return seen

    def var_state(self):
        """Everything under /var but the program's own state, with times."""
        return snapshot(self / "ostree/deploy/default/var", skip=("lib/rasupd", "lib"), times=True) | snapshot(
            self / "ostree/deploy/default/var/lib", skip=("rasupd",), times=True
        )


def read(path, mode="r"):
    """A file's content."""
    with open(path, mode) as source:
        return source.read()


def write(path, content, mode=0o644):
    """Writes a file and the directories above it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(content, bytes) else "w") as out:
        out.write(content)
    os.chmod(path, mode)


class ConfigRoot:
    """A directory for --config-root."""

    def __init__(self, path):
        self.path = str(path)
        os.makedirs(os.path.join(self.path, "etc/rasupd"), exist_ok=True)
        os.makedirs(os.path.join(self.path, "run"), exist_ok=True)

    def policy(self, value):
        """Writes policy.json; text is written as it is."""
        write(os.path.join(self.path, "etc/rasupd/policy.json"), value if isinstance(value, str) else json.dumps(value))

    def no_policy(self):
        """Removes policy.json."""
        os.unlink(os.path.join(self.path, "etc/rasupd/policy.json"))

    def plain_http(self, *hosts):
        """registries.conf: these registries speak HTTP."""
        text = "".join(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n\n' for host in hosts)
        write(os.path.join(self.path, "etc/containers/registries.conf"), text)

    def credentials(self, host, user, password):
        """auth.json with one entry."""
        token = sign.base64.b64encode(f"{user}:{password}".encode()).decode()
        write(os.path.join(self.path, "etc/rasupd/auth.json"), json.dumps({"auths": {host: {"auth": token}}}), 0o600)

    def conf(self, text):
        """rasupd.conf."""
        write(os.path.join(self.path, "etc/rasupd/rasupd.conf"), text)


class WorldCase(unittest.TestCase):
    """A test with a temporary directory that holds a configuration, a key and a sysroot."""

    REPOSITORY = "tests/os"

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rasupd-test-")
        self.addCleanup(remove_tree, self.folder)
        self.config = ConfigRoot(self / "config")
        self.key = sign.KeyPair(self / "keys", "release")
        self.sysroot = Sysroot(self / "sysroot")

    def __truediv__(self, relative):
        return os.path.join(self.folder, relative)

    def start_registry(self, **options):
        """A registry that this test's configuration and policy know; it ends with the test."""
        os.makedirs(self / "registry", exist_ok=True)
        registry = Registry(self / "registry", **options)
        self.addCleanup(registry.stop)
        self.trust_registry(registry.host)
        return registry

    def trust_registry(self, host):
        """Configuration for a plain registry at `host` whose images the release key signs."""
        self.config.plain_http(host)
        self.config.policy(sign.policy(docker={host: sign.signed_by(self.key, sign.MATCH_REPOSITORY)}))

    def rasupd(self, *words, sysroot=None, timeout=180, wrapper=(), **env):
        """Runs the program with --json and checks what holds for every run."""
        roots = ["--config-root", self.config.path, "--sysroot", (sysroot or self.sysroot).path]
        outcome = run(*roots, "--json", *words, timeout=timeout, wrapper=wrapper, **env)
        self.check_contract(outcome)
        return outcome

    def check_contract(self, outcome):
        """One JSON document that fits its schema, and an exit code that fits the document."""
        try:
            document = outcome.document
        except ValueError:
            self.fail(f"stdout is not one JSON document\n{outcome}")
        self.assertEqual([], complaints(document), outcome)
        if document.get("kind") == "BootcHost":
            return
        error = document.get("error")
        if error is None:
            self.assertIn(outcome.code, (0, 77), outcome)
            return
        self.assertEqual(outcome.code, error["code"], outcome)
        wanted = (130, 143) if error["kind"] == "Cancelled" else (CODES[error["kind"]],)
        self.assertIn(outcome.code, wanted, outcome)
        self.assertTrue(error["message"], outcome)
        self.assertNotIn("\n", error["message"], outcome)

    def ok(self, *words, changed=None, **options):
        """Runs the program, which must succeed; returns its document."""
        outcome = self.rasupd(*words, **options)
        self.assertEqual(0, outcome.code, outcome)
        if changed is not None:
            self.assertIs(outcome.document["changed"], changed, outcome)
        return outcome.document

    def wait_for(self, condition, seconds=20):
        """Until the condition holds; the test fails when it never does."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it never came to pass")
            time.sleep(0.05)

    def refused(self, kind, *words, **options):
        """Runs the program, which must fail with `kind` and leave what boots alone; returns the outcome."""
        with self.unchanged():
            outcome = self.rasupd(*words, **options)
        self.assertEqual(kind, outcome.error.get("kind"), outcome)
        self.assertIs(outcome.document["changed"], False, outcome)
        return outcome

    @contextlib.contextmanager
    def unchanged(self):
        """Fails when the block changed entries, kernels, deployments, /etc or /var."""
        before = self.sysroot.boot_state()
        yield
        self.assertEqual([], differences(before, self.sysroot.boot_state()))

    def status(self):
        """The `status` of status --json."""
        return self.ok("status")["status"]

    def assert_sound(self):
        """Repository and sysroot are fine by ostree's own judgement, and every entry boots something whole."""
        code, said = self.sysroot.fsck()
        self.assertEqual(0, code, said)
        self.sysroot.admin_status()
        for entry in self.sysroot.entries():
            self.assertTrue(os.path.isdir(self.sysroot.deployment_of(entry)), entry)
            self.assertTrue(self.sysroot.kernel_of(entry), entry)
            initrd = entry["initrd"].removeprefix("/boot").lstrip("/")
            self.assertTrue(os.path.getsize(self.sysroot / os.path.join("boot", initrd)), entry)


def remove_tree(path):
    """Removes a test's directory, also what rasupd or ostree made read-only or immutable."""
    subprocess.run(["chattr", "-R", "-f", "-i", path], capture_output=True, check=False)
    shutil.rmtree(path, ignore_errors=True)


def interrupt(process):
    """Ctrl-C for one process."""
    process.send_signal(signal.SIGINT)
