"""Changes of the sources that a good suite notices: random ones, drawn by rule, and faults that were chosen by hand.

A random mutant changes one place of one line. Places are found by patterns over the text without comments and
strings, so that some mutants do not compile: those count as nothing. A fault is an entry of faults.json: a text that
stands once in a file, what it becomes, and why a user would be hurt.
"""
import dataclasses
import hashlib
import json
import random
import re

HIDDEN = re.compile(r"""(?s)//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)'"""
                    r"""|^[ \t]*#[^\n]*""", re.M)

# Clang-format puts spaces around binary operators and none into templates and pointers.
OPERATORS = [
    ("comparison", " <= ", " < "), ("comparison", " < ", " <= "), ("comparison", " >= ", " > "),
    ("comparison", " > ", " >= "), ("comparison", " == ", " != "), ("comparison", " != ", " == "),
    ("arithmetic", " + ", " - "), ("arithmetic", " - ", " + "), ("arithmetic", " * ", " / "),
    ("arithmetic", " / ", " * "), ("arithmetic", " % ", " / "), ("arithmetic", " += ", " -= "),
    ("arithmetic", " -= ", " += "), ("arithmetic", "std::min(", "std::max("), ("arithmetic", "std::max(", "std::min("),
    ("boolean", " && ", " || "), ("boolean", " || ", " && "), ("boolean", "true", "false"),
    ("boolean", "false", "true"), ("boolean", "(!", "("), ("boolean", "return !", "return "),
]
INTEGER = re.compile(r"(?<![\w.'])\d[\d']*(?![\w.'])")
REAL = re.compile(r"(?<![\w.'])\d[\d']*\.\d+(?:e-?\d+)?(?![\w.])|(?<![\w.'])\d+e-?\d+(?![\w.])")
CONDITION = re.compile(r"\bif \((?!constexpr)(.*)\)(?= [^)]*$)")
STATEMENT = re.compile(r"^\s+(?!return\b|using\b|throw\b|case\b|break\b|continue\b|static\b|const\b|auto\b)"
                       r"(?:[\w.:\[\]()*]|->)+(?: [-+*/]?= .*|\(.*\));$")


@dataclasses.dataclass(frozen=True)
class Mutant:
    id: str
    path: str
    line: int
    kind: str
    begin: int        # offsets into the file's text
    end: int
    replacement: str
    why: str = ""
    tests: tuple = ()  # of faults: what has to notice, instead of the suites of the file's folder

    def apply(self, text):
        return text[:self.begin] + self.replacement + text[self.end:]

    def change(self, text):
        begin, end = text.rfind("\n", 0, self.begin) + 1, text.find("\n", self.end)
        new_end = end + len(self.replacement) - (self.end - self.begin)
        return text[begin:end].strip(), self.apply(text)[begin:new_end].strip()


def visible(text):
    """The text with everything that is no code blanked; offsets and lines stay."""
    return HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def places(line):
    """(kind, begin, end, replacement) of each change that the patterns find in one line of code."""
    for kind, before, after in OPERATORS:
        for match in re.finditer(re.escape(before), line):
            yield kind, match.start(), match.end(), after
    for match in INTEGER.finditer(line):
        yield "constant", *match.span(), str(int(match.group().replace("'", "")) + 1)
    for match in REAL.finditer(line):
        yield "constant", *match.span(), f"({match.group()} * 1.5)"
    for match in CONDITION.finditer(line):
        yield "condition", *match.span(1), "false"
        yield "condition", *match.span(1), "true"
    if STATEMENT.match(line):
        indent = len(line) - len(line.lstrip())
        yield "dropped statement", indent, len(line), ";"
        yield "early return", indent, indent, "return; "


def mutants_of(path, text, lines=None):
    """Every random mutant of a file; with `lines`, of those lines alone. Identity: the change, not its place."""
    offset, seen = 0, {}
    for number, line in enumerate(visible(text).split("\n"), 1):
        for kind, begin, end, replacement in places(line) if lines is None or number in lines else ():
            source = text[offset:offset + len(line)]
            key = "\0".join((path, source.strip(), kind, str(begin), replacement))
            seen[key] = seen.get(key, 0) + 1
            digest = hashlib.sha256(f"{key}\0{seen[key]}".encode()).hexdigest()[:10]
            yield Mutant(digest, path, number, kind, offset + begin, offset + end, replacement)
        offset += len(line) + 1


def draw(root, paths, seed, changed=None):
    """Random mutants without end, no one twice: a file by its number of lines, a kind, a place of that kind.

    `changed`: lines by path, to which the draw keeps."""
    rng = random.Random(seed)
    texts = {path: (root / path).read_text() for path in paths}
    found = {path: list(mutants_of(path, text, None if changed is None else changed.get(path, set())))
             for path, text in texts.items()}
    weights = {path: len(texts[path].splitlines()) for path in paths if found[path]}
    while weights:
        path = rng.choices(list(weights), list(weights.values()))[0]
        kind = rng.choice(sorted({mutant.kind for mutant in found[path]}))
        mutant = rng.choice([mutant for mutant in found[path] if mutant.kind == kind])
        found[path].remove(mutant)
        if not found[path]:
            del weights[path]
        yield mutant


def faults(root, file):
    """The chosen faults. ValueError where one no longer fits the sources."""
    for entry in json.loads(file.read_text()):
        text = (root / entry["path"]).read_text()
        if text.count(entry["text"]) != 1:
            raise ValueError(f"{file.name}: {entry['id']}: its text stands {text.count(entry['text'])} times in "
                             f"{entry['path']}, not once: give the fault the text that the file has now")
        begin = text.index(entry["text"])
        yield Mutant(entry["id"], entry["path"], text.count("\n", 0, begin) + 1, "fault", begin,
                     begin + len(entry["text"]), entry["replacement"], entry["why"], tuple(entry.get("tests", ())))
