"""Where a source may be mutated, and how: what conditions, operators and arguments give.

A place is written as insertions around parts of the source, in which MUTANT stands for the question
whether the mutant is chosen: `a < b` becomes `(MUTANT ? (a <= b) : (a < b))`."""
import bisect
import dataclasses

from mutation import syntax

INTEGERS = {sign + size for size in ("char", "short", "int", "long", "long long")
            for sign in ("", "unsigned ", "signed ")}
NUMBERS = INTEGERS | {"float", "double"}
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OPPOSITE = {"==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+", "*": "+", "/": "*",
            "%": "/", "&": "|", "|": "&", "<<": ">>", ">>": "<<", "+=": "-=", "-=": "+=", "|=": "&=",
            "&=": "|="}
OVERLOADED = {"+", "-", "*", "/", "%", "==", "!="}  # of these the others mean something else
ORDERED = {"-", "/", "%", "<<", ">>"}  # their operands are not swapped in vain
SYMMETRIC = {"min", "max", "gcd", "lcm", "equal", "swap", "mul", "add"}


@dataclasses.dataclass
class Place:
    path: str
    line: int
    kind: str
    function: str
    text: str        # of the line
    original: str
    mutated: str
    edits: list      # (first byte, the one after the last, text before, text after)

    @property
    def key(self):
        return self.path, self.text, self.kind, self.original, self.mutated


def bare(type_name):
    return type_name.removeprefix("const ").removeprefix("volatile ")


class Source:
    """A file's bytes, and the places found in it."""

    def __init__(self, path, content):
        self.path, self.content, self.places = path, content, {}
        self.starts = [0] + [i + 1 for i, byte in enumerate(content) if byte == 10]

    def text(self, span):
        return self.content[span[0]:span[1]].decode()

    def add(self, kind, function, edits, original, mutated):
        line = bisect.bisect_right(self.starts, edits[0][0])
        text = self.content.split(b"\n", line)[line - 1].decode().strip()
        short = [" ".join(part.split())[:160] for part in (original, mutated)]
        place = Place(self.path, line, kind, function, text, *short, edits)
        self.places.setdefault((tuple(edits), kind), place)

    def choice(self, kind, function, span, mutated, bool_too=False):
        """An expression, or another in its place."""
        after = ")))" if bool_too else "))"
        before = f"(MUTANT ? ({mutated}) : (" + ("static_cast<bool>(" if bool_too else "")
        self.add(kind, function, [(*span, before, after)], self.text(span), mutated)

    def joint(self, left, right):
        """The operator between two operands; "" if there is more than that."""
        return self.text((left[1], right[0])).strip() if left[1] <= right[0] else ""


def condition(source, function, node, never_only=False):
    """A condition of if, while or ?: negated, and taken for true or false."""
    while not node.get("span") or node["kind"] == "ParenExpr":  # of a macro: what it is given
        inner = syntax.children(node)
        if len(inner) != 1:
            return
        node = inner[0]
    node, span = syntax.plain(node), node["span"]
    if node["kind"] in ("CXXBoolLiteralExpr", "IntegerLiteral"):
        return
    source.choice("condition is false", function, span, "false", True)
    if never_only:
        return
    source.choice("condition is true", function, span, "true", True)
    if not (node["kind"] == "BinaryOperator" and node["opcode"] in ("==", "!=")):
        source.choice("condition negated", function, span, f"!({source.text(span)})", True)


def declared_condition(source, function, declaration):
    """`if (auto x = f())`, whose branch is never taken."""
    span, inner = declaration.get("span"), syntax.children(declaration)
    if span and len(inner) == 1 and inner[0].get("name"):
        after = f"; !MUTANT && static_cast<bool>({inner[0]['name']})"
        span = (span[0], span[1] - 1) if source.text(span).endswith(";") else span
        source.add("condition is false", function, [(*span, "", after)], source.text(span), "false")


def operator(source, function, node, operands):
    """An operator of two operands: another one, a boundary moved, an operand dropped or swapped."""
    left, right = (operand.get("span") for operand in operands)
    span = node.get("span")
    if not (span and left and right) or left[0] != span[0] or right[1] != span[1]:
        return
    sign, built_in = source.joint(left, right), node["kind"] != "CXXOperatorCallExpr"
    a, b = source.text(left), source.text(right)
    if sign in ("&&", "||") and built_in:
        value = "true" if sign == "&&" else "false"
        source.choice("operand dropped", function, left, value, True)
        source.choice("operand dropped", function, right, value, True)
    types = [bare(syntax.type_of(operand)) for operand in operands]
    if sign in BOUNDARY:
        source.choice("boundary", function, span, f"{a} {BOUNDARY[sign]} {b}")
        if set(types) <= INTEGERS and syntax.plain(operands[1])["kind"] != "IntegerLiteral":
            source.choice("off by one", function, right, f"({b}) - 1")
    numeric = built_in and set(types) <= NUMBERS
    if sign in OPPOSITE and (numeric or sign in OVERLOADED or sign in ("&&", "||")):
        texts = any("basic_string" in name or "path" in name for name in types)
        if not texts or sign in ("==", "!="):
            source.choice("operator", function, span, f"{a} {OPPOSITE[sign]} {b}")
    if sign in ORDERED and (numeric or sign == "-") and a != b and types[0] == types[1]:
        source.choice("operands swapped", function, span, f"({b}) {sign} ({a})")


def arguments(source, function, node, values, name):
    """Two neighbours of equal type change places."""
    if name in SYMMETRIC or name.startswith("operator"):
        return
    for left, right in zip(values, values[1:]):
        spans = left.get("span"), right.get("span")
        kinds = {syntax.plain(left)["kind"], syntax.plain(right)["kind"]}
        if not all(spans) or spans[0][1] > spans[1][0] or kinds & {"InitListExpr", "LambdaExpr"}:
            continue
        alike = left.get("valueCategory") == right.get("valueCategory")
        if not alike or not syntax.type_of(left) or syntax.type_of(left) != syntax.type_of(right):
            continue
        a, b = source.text(spans[0]), source.text(spans[1])
        if a == b or source.joint(*spans) != ",":
            continue
        edits = [(*spans[0], f"(MUTANT ? ({b}) : (", "))"), (*spans[1], f"(MUTANT ? ({a}) : (", "))")]
        source.add("arguments swapped", function, edits, f"{a}, {b}", f"{b}, {a}")


def extremum(source, function, node, callee):
    """The smaller instead of the larger, or the other way round."""
    span, name = node.get("span"), callee.get("span")
    spelled = source.text(name) if name else ""
    other = {"std::min": "std::max", "std::max": "std::min"}.get(spelled.split("<")[0])
    if span and other and name[0] == span[0]:
        rest = spelled[len("std::min"):] + source.text((name[1], span[1]))
        source.choice("operator", function, span, other + rest)
