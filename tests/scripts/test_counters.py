"""Feeds the checker of scripts/counters.py small bad sources and sees each rule fire, and good ones pass."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from places import SCRIPTS

CHECKER = SCRIPTS / "counters.py"
PORTS = "class Records(Protocol):\n    pass\n\nclass Chunk:\n    pass\n"
EMIT = "def run_stages():\n    try:\n        go()\n    {}\n        pass\n"
BLIND = "try:\n    go()\n{}\n    pass\n"
GOOD_TEST = 'def test_it():\n    """It holds."""\n    {}\n'
REASON = "  # noqa: BLE001 - one failing handler stops nothing"
BAD = {
    "a long function": ("R__a", "def f():\n" + "    x = 1\n" * 50, "f has 51 lines; 50 at most"),
    "a long method in a script": ("scripts__a", "class A:\n async def f():\n" + "  x = 1\n" * 50, "f has 51 lines"),
    "a long README": ("README.md", "line\n" * 251, "251 lines; 250 at most"),
    "an import below other code": ("R__a", "x = 1\nimport os\n", "an import below other code"),
    "a constant below a function": ("R__a", "def f():\n    pass\n\n\nX = 1\n", "X needs nothing above it"),
    "an import below a script's code": ("scripts__a", "x = 1\nimport os\n", "an import below other code"),
    "a constant below a test": (
        "tests__a",
        "def f():\n    pass\n\n\nX = 1\n",
        "X needs nothing above it",
    ),
    "os.environ": ("R__a", "import os\nx = os.environ['X']\n", "only process.py"),
    "os.getenv": ("R__doors__a", "import os\nx = os.getenv('X')\n", "only process.py"),
    "getenv by name": ("R__a", "from os import getenv\n", "only process.py"),
    "hasattr": ("R__a", "x = hasattr(y, 'z')\n", "hasattr asks"),
    "isinstance on a port": ("R__a", "x = isinstance(y, Records)\n", "the port Records"),
    "isinstance on a port among others": ("R__a", "x = isinstance(y, (int, ports.Records))\n", "the port Records"),
    "a bare except": ("R__a", BLIND.format("except:"), "a blind except;"),
    "except Exception": ("R__a", BLIND.format("except Exception:" + REASON), "a blind except;"),
    "except BaseException": ("R__a", BLIND.format("except (ValueError, BaseException):"), "a blind except;"),
    "suppress(Exception)": ("R__a", "with contextlib.suppress(Exception):\n    go()\n", "a blind except;"),
    "a blind except in another room": (
        "R__policy__a",
        EMIT.format("except Exception:" + REASON),
        "a blind except;",
    ),
    "a door's except with no reason": ("R__doors__a", BLIND.format("except Exception:"), "without its reason"),
    "a door's except with a bare noqa": (
        "R__doors__a",
        BLIND.format("except Exception:  # noqa: BLE001, S110"),
        "without its reason",
    ),
    "run_stages with no reason": ("R__sessions__pipeline", EMIT.format("except Exception:"), "without its reason"),
    "the index with no reason": ("R__store__vectors__chroma", BLIND.format("except Exception:"), "without its reason"),
    "a retired name": ("R__a", "twi" + "ns = 1\n", "use the field's word"),
    "a hidden import of our own": (
        "R__doors__a",
        "def f():\n    import_module('recollect.b')\n",
        "import_module hides",
    ),
    "an import in a function": ("R__a", "def f():\n    import json\n", "inside a function"),
    "a relative import in a function": ("R__a", "def f():\n    from . import torch\n", "inside a function"),
    "a heavy import at the top": ("R__store__vectors__chroma", "import chromadb.config\n", "chromadb is heavy"),
    "a heavy import outside its home": ("R__a", "def f():\n    from torch import nn\n", "torch belongs to"),
    "a print": ("R__a", "print(1)\n", "only a door prints"),
    "a vague name": ("R__a", "class StoreManager:\n    pass\n", "ends in Manager"),
    "a second version": ("R__a", "class StoreV2:\n    pass\n", "ends in V2"),
    "something unfinished": ("scripts__a", "# TO" + "DO: later\n", "unfinished"),
    "something unfinished that is not Python": ("R__a.html", "<!-- FIX" + "ME -->\n", "unfinished"),
    "a test that asserts nothing": ("tests__test_a", GOOD_TEST.format("go()"), "test_it asserts nothing"),
    "a test without a docstring": ("tests__test_a", "def test_it():\n    assert x\n", "has no docstring"),
    "an assert that cannot fail": ("tests__test_a", GOOD_TEST.format(f"assert {True}"), "cannot fail"),
}
GOOD = {
    "a file and a function at their limits": ("R__a", "def f():\n" + "    x = 1\n" * 49 + "f()\n" * 350),
    "a README at its limit": ("README.md", "line\n" * 250),
    "the one room reading the environment": ("R__process", "import os\nx = os.environ['X']\n"),
    "isinstance on a noun": ("R__a", "x = isinstance(y, Chunk)\n"),
    "an except with a name": ("R__a", BLIND.format("except (OSError, ValueError):")),
    "a suppress with a name": ("R__a", "with suppress(OSError):\n    go()\n"),
    "a blind except at a door": ("R__doors__a", BLIND.format("except Exception:" + REASON)),
    "a blind except in run_stages": ("R__sessions__pipeline", EMIT.format("except Exception:" + REASON)),
    "a blind except around the index": ("R__store__vectors__chroma", BLIND.format("except Exception as e:" + REASON)),
    "an import that a command puts off": ("R__doors__a", "def f():\n    from recollect import b\n"),
    "a framework in its module": ("R__frameworks__langgraph", "from langgraph.store.base import BaseStore\n"),
    "a heavy import in its home": ("R__store__vectors__chroma", "def f():\n    import chromadb\n"),
    "a heavy import for types alone": ("R__store__vectors__chroma", "if TYPE_CHECKING:\n    import chromadb\n"),
    "alembic at the top of a migration": ("R__store__sql__migrations__a", "from alembic import op\n"),
    "a table of functions below them": ("R__a", "def f():\n    pass\n\n\nX = (f,)\nY = X[0]\n"),
    "a print at a door": ("R__doors__a", "print(1)\n"),
    "another object's print": ("R__a", "console.print(1)\n"),
    "a name that says what it is": ("R__a", "class Database:\n    pass\n"),
    "a recorded output": ("tests__sessions__a.jsonl", "bring" + "ing up nodes\n"),
    "an answer of somebody else": ("scripts__evaluation__data__worth__a.json", "# TO" + "DO: twi" + "ns\n"),
    "a test that asserts": ("tests__test_a", GOOD_TEST.format("assert x")),
    "a test that expects an error": ("tests__test_a", GOOD_TEST.format("with pytest.raises(OSError): go()")),
    "a test whose helper asserts": ("tests__test_a", GOOD_TEST.format("assert_same(x, y)")),
    "a test whose helper checks": ("tests__test_a", GOOD_TEST.format("suite.check_all(x)")),
}


def found(root: Path, **sources: str) -> list[str]:
    """Write sources, named by their paths with `__` for `/`, and return what is said of each of them."""
    spec = importlib.util.spec_from_file_location("counters", CHECKER)
    assert spec is not None
    assert spec.loader is not None
    counters = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(counters)
    for name, text in sources.items():
        path = root / name.replace("R__", "src/recollect/").replace("__", "/")
        path = path if path.suffix else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [sentence for _, _, sentence in counters.violations(root)]


@pytest.mark.parametrize(("name", "source", "sentence"), BAD.values(), ids=BAD)
def test_each_rule_fires(tmp_path: Path, name: str, source: str, sentence: str) -> None:
    """A source that breaks one rule is found once, in words that say which."""
    said = found(tmp_path, R__ports=PORTS, **{name: source})
    assert len(said) == 1
    assert sentence in said[0]


@pytest.mark.parametrize(("name", "source"), GOOD.values(), ids=GOOD)
def test_good_sources_pass(tmp_path: Path, name: str, source: str) -> None:
    """A source that keeps the rules, or stands where one is lifted, is passed in silence."""
    assert found(tmp_path, R__ports=PORTS, **{name: source}) == []


def test_a_heavy_library_has_one_owner(tmp_path: Path) -> None:
    """The second module to import a heavy library is told who owns it."""
    source = "def f():\n    import onnxruntime\n"
    said = found(tmp_path, R__engines__a=source, R__engines__b=source)
    assert said == ["onnxruntime has an owner already: src/recollect/engines/a.py."]


def test_no_module_leads_back_to_itself(tmp_path: Path) -> None:
    """A circle of imports is named, also where it is closed inside a function."""
    first, second = "from recollect.b import y\n", "def f():\n    from recollect import a\n"
    (circle,) = [one for one in found(tmp_path, R__a=first, R__b=second) if "circle" in one]
    assert circle.startswith("a circle of imports: recollect.")
    assert not [one for one in found(tmp_path / "other", R__a=first, R__b="y = 1\n") if "circle" in one]


def test_migrations_share_alembic(tmp_path: Path) -> None:
    """Any number of migrations may import alembic at their top."""
    assert (
        found(
            tmp_path, R__store__sql__migrations__a="import alembic\n", R__store__sql__migrations__b="import alembic\n"
        )
        == []
    )


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        ("x = 1\n", 0, "counters: nothing found"),
        ("x = 1\nprint(x)\n", 1, "src/recollect/a.py:2: only a door prints."),
        ("def f(:\n", 1, "src/recollect/a.py:1: this is not Python"),
    ],
)
def test_the_script_prints_path_and_line(tmp_path: Path, source: str, code: int, line: str) -> None:
    """Run as a script it prints `path:line: sentence` for the checkout it lies in and ends in 1 when it found any."""
    (tmp_path / "scripts").mkdir()
    script = Path(tmp_path / "scripts" / "counters.py")
    script.write_text(CHECKER.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "src" / "recollect").mkdir(parents=True)
    (tmp_path / "src" / "recollect" / "a.py").write_text(source, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stdout.startswith(line)


def test_a_word_above_its_ceiling_is_found(tmp_path: Path) -> None:
    """A word in place of a noun is counted in names and docstrings, and found once it stands too often."""
    sentence = "'" + "told " * 3 + "'"
    few = found(tmp_path, src__recollect__a=f"def told():\n    {sentence}\n")
    assert not any("`told`" in line for line in few)
    many = found(tmp_path, src__recollect__a=f"def told():\n    '{'told ' * 10_000}'\n")
    assert [line for line in many if "`told` stands 10001 times" in line]
