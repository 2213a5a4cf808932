"""The house: imports point down, files and functions are small, classes abstract or final, public names documented."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import gibbsite as gb

ROOT = Path(gb.__file__).parent
TOP_DOWN = """cli recipes apps datasets report learn estimate sample diagnose exact distributions models algebra local space
    model processes random files check _fast"""
LAYERS = TOP_DOWN.split()
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]
MODULES = [importlib.import_module(m.name) for m in pkgutil.walk_packages(gb.__path__, "gibbsite.") if "_fast" not in m.name]
CLASSES = sorted(
    {c for m in MODULES for c in vars(m).values() if inspect.isclass(c) and c.__module__ == m.__name__},
    key=lambda c: c.__name__,
)
by_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
by_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def layer(path: Path) -> int:
    return LAYERS.index(path.relative_to(ROOT).parts[0].removesuffix(".py"))


def imports(path: Path):
    """The gibbsite names that a file imports when it runs, as dotted parts below the package."""
    tree = ast.parse(path.read_text())
    guards = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    typing = {inner for guard in guards for inner in ast.walk(guard)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in typing:
            module = (node.module or "").split(".") if node.module else []
            if node.level:
                package = path.relative_to(ROOT).parent.parts
                module = [*package[: len(package) - node.level + 1], *module]
            elif module[:1] == ["gibbsite"]:
                module = module[1:]
            else:
                continue
            yield from ((*module, alias.name) for alias in node.names)


@by_file
def test_imports_point_down(path):
    for parts in imports(path):
        if parts[0] in LAYERS:
            assert LAYERS.index(parts[0]) >= layer(path), f"imports {'.'.join(parts)}, which is in a layer above"


def test_the_import_rule_sees_an_import_that_points_up(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "models").mkdir()
    wrong = tmp_path / "models" / "wrong.py"
    wrong.write_text("from ..sample.run import run\n")
    with pytest.raises(AssertionError, match=r"sample\.run\.run"):
        test_imports_point_down(wrong)


@by_file
def test_files_and_functions_are_small(path):
    text = path.read_text()
    assert len(text.splitlines()) <= (200 if path.name == "algebra.py" else 400)
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a file says its one idea in a docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = node.end_lineno - body[0].lineno + 1 if body else 0
            assert lines <= 40, f"{node.name} has {lines} lines"


@by_class
def test_classes_are_abstract_or_final_and_override_nothing_concrete(cls):
    own = [base for base in cls.__mro__[1:] if base.__module__.startswith("gibbsite")]
    if own:
        assert inspect.isabstract(cls) or getattr(cls, "__final__", False), "neither abstract nor final"
    assert len(own) - sum(base.__bases__ in ((object,), (gb.model.ABC,)) for base in own) <= 2, "inherits too deep"
    for name, value in vars(cls).items():
        if inspect.isfunction(value) and not name.startswith("__"):
            for base in own:
                above = vars(base).get(name)
                assert above is None or getattr(above, "__isabstractmethod__", False), f"overrides {base.__name__}.{name}"


@by_class
def test_public_classes_and_functions_are_documented(cls):
    if not cls.__name__.startswith("_"):
        assert vars(cls).get("__doc__"), "no docstring"


def test_public_functions_are_documented():
    for module in MODULES:
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"):
                assert value.__doc__, f"{module.__name__}.{name}"


def test_nothing_looks_for_attributes_or_draws_globally():
    for path in FILES:
        text = path.read_text()
        assert "hasattr(" not in text and "torch.manual_seed" not in text and "np.random." not in text, path
