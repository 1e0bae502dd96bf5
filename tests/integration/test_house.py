"""The house's own rules, checked on the source text."""

import glob
import os
import re
import unittest

from tests.support.world import SOURCE, read

CODE = ("updater", "bootloader", "policy")
C_LIBRARIES = re.compile(
    r'#\s*include\s*[<"](ostree|glib|gio|gobject|curl/|archive|openssl/|zlib|zstd|isa-l|igzip|systemd/)[^>"]*\.?h?[>"]'
)
FUNCTION_START = re.compile(r"^[A-Za-z_].*\)( const| noexcept| override)*\s*\{\s*$")


def sources(*suffixes, folders=CODE):
    """The paths of all source files with one of the suffixes."""
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(SOURCE, folder, "**", "*"), recursive=True)):
            if path.endswith(suffixes) and os.path.isfile(path):
                yield path


def named(path):
    """A path as a person names it."""
    return os.path.relpath(path, SOURCE)


def long_functions(text, limit):
    """Functions at file scope, by clang-format's layout: from a line that opens one to the next bare brace."""
    begun = None
    for number, line in enumerate(text.splitlines(), 1):
        if begun is None and FUNCTION_START.match(line) and not line.startswith(("namespace", "class", "struct", "enum")):
            begun = number
        elif begun is not None and line.startswith("}"):
            if number - begun + 1 > limit:
                yield f"line {begun}: {number - begun + 1} lines"
            begun = None


class House(unittest.TestCase):
    """Each rule lists all of its offenders."""

    def test_c_libraries_only_in_the_fence(self):
        strays = [
            named(path) for path in sources(".cpp", ".hpp", ".h")
            if C_LIBRARIES.search(read(path)) and not (named(path).startswith("updater/fence/") and path.endswith(".cpp"))
        ]
        self.assertEqual([], strays)
        self.assertTrue(C_LIBRARIES.search("#include <ostree.h>") and C_LIBRARIES.search("#include <openssl/evp.h>"))

    def test_files_are_short(self):
        long = [
            f"{named(path)}: {lines}" for path in sources(".cpp", ".hpp", ".py", ".sh", folders=(*CODE, "tests", "examples"))
            if (lines := len(read(path).splitlines())) > 500
        ]
        self.assertEqual([], long)

    def test_headers_are_short(self):
        self.assertEqual([], [named(path) for path in sources(".hpp") if len(read(path).splitlines()) > 120])

    def test_functions_are_short(self):
        found = [f"{named(path)} {what}" for path in sources(".cpp") for what in long_functions(read(path), 60)]
        self.assertEqual([], found)
        self.assertEqual(["line 1: 62 lines"], list(long_functions("int f() {\n" + "x;\n" * 60 + "}\n", 60)))

    def test_nothing_is_left_for_later(self):
        words = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
        paths = sources(".cpp", ".hpp", ".py", ".sh", ".txt", ".md", folders=(*CODE, "tests", "docs", "examples"))
        self.assertEqual([], [named(path) for path in paths if words.search(read(path)) and "/fixtures/" not in path])

    def test_failpoints_of_the_bootloaders_are_interrupted(self):
        """By the backend's own unit tests; those of updater/ are test_bad_input's."""
        points = {name for path in sources(".cpp", folders=("bootloader",)) for name in re.findall(r'failpoint\("([^"]+)"\)', read(path))}
        tests = "\n".join(read(path) for path in sources("_test.cpp", folders=("tests/unit/bootloader",)))
        self.assertEqual([], sorted(name for name in points if f'"{name}' not in tests))
        self.assertIn("menu-written", points)

    def test_behaviours_name_tests_that_exist(self):
        text = read(os.path.join(SOURCE, "docs", "behaviours.md"))
        tests = "\n".join(read(path) for path in sources(".cpp", ".py", ".sh", folders=("tests",)))
        known = set(re.findall(r"def (test_\w+)|^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", tests, re.M))
        python = {one for one, _, _ in known if one}
        modules = {os.path.basename(path)[:-3] for path in sources(".py", folders=("tests",))}
        google = {f"{suite}.{name}" for _, suite, name in known if suite}
        cited = re.findall(r"`([^`\n]+)`", text)
        wrong = [name for name in cited if re.fullmatch(r"[A-Z]\w+\.[A-Z]\w+", name) and name not in google]
        wrong += [name for name in cited for part in re.findall(r"\btest_\w+", name) if part not in python | modules]
        self.assertEqual([], wrong)
        self.assertTrue(any("test_" in name or name in google for name in cited), "it names no test at all")


if __name__ == "__main__":
    unittest.main()
