"""Walks the syntax tree of a source for all its places: statements, constants, and those of places.py."""
from mutation import places, syntax

# What must be constant, what is not run, and what is written once and visited elsewhere.
CLOSED = {"ConstantExpr", "StaticAssertDecl", "EnumDecl", "CXXDefaultArgExpr", "CXXDefaultInitExpr",
          "UnaryExprOrTypeTraitExpr", "CXXNoexceptExpr", "RequiresExpr", "ConceptDecl", "TypedefDecl",
          "TypeAliasDecl", "UsingDecl", "FriendDecl"}
CALLS = {"CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr"}
REMOVABLE = CALLS | {"CompoundAssignOperator", "ContinueStmt", "BreakStmt"}
KEPT_CALLS = (".reserve(", "->reserve(", "(void)")  # that are not seen from outside


class Finder:
    def __init__(self, source, roots):
        self.source, self.function = source, ""
        self.enums = {}
        for root in roots:
            for node in syntax.walk(root):
                if node["kind"] == "EnumDecl":
                    values = [c for c in syntax.children(node) if c["kind"] == "EnumConstantDecl"]
                    names = [value["name"] for value in values]
                    self.enums.update((value["id"], (value["name"], names)) for value in values)
        for root in roots:
            self.visit(root, None)

    def visit(self, node, parent):
        kind = node["kind"]
        if kind in CLOSED or node.get("constexpr") or node.get("isImplicit"):
            return
        before = self.function
        if kind in ("FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXConversionDecl"):
            if node.get("name") != "operator()":
                self.function = node.get("name", "")
        handler = getattr(self, "on_" + kind, None)
        inner = syntax.children(node)
        if kind == "CXXForRangeStmt":  # the others are made up by the compiler
            inner = [inner[1], inner[-2], inner[-1]] if len(inner) >= 4 else inner
        elif kind == "LambdaExpr":
            inner = [c for c in inner if c["kind"] != "CXXRecordDecl"]
        elif kind == "IfStmt" and node.get("isConstexpr"):
            inner, handler = inner[1:], None
        if handler:
            handler(node, inner)
        if kind in CALLS and inner:
            self.call(node, inner)
        for child in inner:
            self.visit(child, node)
        self.function = before

    def choice(self, kind, span, mutated, bool_too=False):
        self.source.choice(kind, self.function, span, mutated, bool_too)

    def on_IfStmt(self, node, inner):
        self.bodies(inner[1:])
        inner = inner[1:] if node.get("hasInit") else inner
        if node.get("hasVar"):
            if not node.get("hasInit"):
                places.declared_condition(self.source, self.function, inner[0])
        else:
            places.condition(self.source, self.function, inner[0])

    def on_WhileStmt(self, node, inner):
        self.bodies(inner[1:])
        if not node.get("hasVar"):
            places.condition(self.source, self.function, inner[0], never_only=True)

    def on_DoStmt(self, node, inner):
        self.bodies(inner[:1])
        places.condition(self.source, self.function, inner[1], never_only=True)

    def on_ConditionalOperator(self, node, inner):
        places.condition(self.source, self.function, inner[0])

    def on_ReturnStmt(self, node, inner):
        if inner and inner[0].get("span") and syntax.type_of(inner[0]) == "bool":
            if syntax.plain(inner[0])["kind"] in CALLS | {"DeclRefExpr", "MemberExpr"}:
                span = inner[0]["span"]
                self.choice("condition negated", span, f"!({self.source.text(span)})", True)

    def on_CompoundStmt(self, node, inner):
        self.bodies(inner)

    def on_CXXForRangeStmt(self, node, inner):
        self.bodies(inner[-1:])

    def on_ForStmt(self, node, inner):
        self.bodies(inner[-1:])

    on_CaseStmt = on_DefaultStmt = on_ForStmt

    def bodies(self, statements):
        """Each statement that can go is left out."""
        for statement in statements:
            plain, source = syntax.plain(statement), self.source
            kind, start = plain["kind"], statement.get("macro")
            if statement.get("span"):
                begin, end = statement["span"]
            elif start is not None and source.content[start:start + 3] == b"TW_":
                begin, end = start, closing(source.content, source.content.find(b"(", start))
                declares = source.text((begin, end)).startswith(("TW_ASSIGN(auto", "TW_ASSIGN(const"))
                kind = "DeclStmt" if declares else "CallExpr"
            else:
                continue
            assigns = kind == "BinaryOperator" and plain.get("opcode") == "="
            steps = kind == "UnaryOperator" and plain.get("opcode") in ("++", "--")
            returns = kind == "ReturnStmt" and not syntax.children(plain)
            text, semicolon = source.text((begin, end)), source.content.find(b";", end)
            if not (kind in REMOVABLE or assigns or steps or returns) or semicolon < 0:
                continue
            if source.content[end:semicolon].strip() or any(k in text for k in KEPT_CALLS):
                continue
            edit = (begin, semicolon + 1, "{ if (!MUTANT) { ", " } }")
            source.add("statement removed", self.function, [edit], text, "")

    def on_BinaryOperator(self, node, inner):
        if len(inner) == 2:
            places.operator(self.source, self.function, node, inner)

    on_CompoundAssignOperator = on_BinaryOperator

    def on_UnaryOperator(self, node, inner):
        span = node.get("span")
        operand, sign = inner[0].get("span"), node.get("opcode")
        if not span or not operand or sign not in ("!", "-") or inner[0]["kind"].endswith("Literal"):
            return
        if self.source.text((span[0], operand[0])).strip() == sign:
            text = self.source.text(operand)
            self.choice("sign dropped", span, f"static_cast<bool>({text})" if sign == "!" else text)

    def on_IntegerLiteral(self, node, inner):
        text = self.source.text(node["span"]) if node.get("span") else ""
        if text[:1].isdigit():
            for step in (1, -1) if node.get("value") != "0" else (1,):
                other = str(int(text) + step) if text in ("0", text.lstrip("0")) and text.isdigit() else ""
                self.choice("constant", node["span"], other or f"({text} + {step})")

    def on_FloatingLiteral(self, node, inner):
        text = self.source.text(node["span"]) if node.get("span") else ""
        if text[:1].isdigit():
            self.choice("constant", node["span"], f"({text} * 2)" if float(node["value"]) else f"({text} + 1)")

    def on_CXXBoolLiteralExpr(self, node, inner):
        text = self.source.text(node["span"]) if node.get("span") else ""
        if text in ("true", "false"):
            self.choice("constant", node["span"], "false" if text == "true" else "true")

    def on_DeclRefExpr(self, node, inner):
        name, names = self.enums.get(node.get("referencedDecl", {}).get("id"), ("", []))
        text = self.source.text(node["span"]) if node.get("span") else ""
        if text.endswith(name) and len(names) > 1:
            other = names[(names.index(name) + 1) % len(names)]
            self.choice("constant", node["span"], text[:len(text) - len(name)] + other)

    def on_CXXConstructExpr(self, node, inner):
        if len(inner) > 1:
            places.arguments(self.source, self.function, node, inner, "")

    on_CXXTemporaryObjectExpr = on_InitListExpr = on_CXXConstructExpr

    def call(self, node, inner):
        callee = syntax.plain(inner[0])
        if node["kind"] == "CXXOperatorCallExpr":
            if len(inner) == 3:
                places.operator(self.source, self.function, node, inner[1:])
            return
        name = callee.get("name") or callee.get("referencedDecl", {}).get("name", "")
        places.arguments(self.source, self.function, node, inner[1:], name.lstrip("->."))
        places.extremum(self.source, self.function, node, callee)


def closing(content, at):
    """The byte after the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(max(at, 0), len(content)):
        depth += {40: 1, 41: -1}.get(content[i], 0)
        if depth == 0 and i > at:
            return i + 1
    return len(content)


def places_of(source, roots):
    """All places of a source, in its order."""
    Finder(source, roots)
    return sorted(source.places.values(), key=lambda p: (p.edits[0][:2], p.kind, p.mutated))
