"""scripts/mutants breaks the source by rule: what it breaks, and that it breaks anything."""

from pathlib import Path

import pytest

from scripts import mutants


def test_there_are_enough_of_every_layer_and_each_is_another_program(tmp_path: Path) -> None:
    chosen = mutants.chosen()
    for layer in mutants.LAYERS:
        assert sum(one.file.startswith(f"{layer}/") for one in chosen) == mutants.PER_LAYER
    for one in chosen:
        copy = tmp_path / "src" / "colibri" / one.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        one.write(tmp_path)
        compile(copy.read_bytes(), one.file, "exec")
        assert copy.read_bytes() != (mutants.PACKAGE / one.file).read_bytes()


@pytest.mark.parametrize(
    ("statement", "change"),
    [
        ("a < b", "a < b -> a <= b"),
        ("a is None", "a is None -> a is not None"),
        ("a and b", "a and b -> a or b"),
        ("not a", "not a -> a"),
        ("a + b", "a + b -> a - b"),
        ("x = 7", "7 -> 8"),
        ("x = True", "True -> False"),
        ("run()", "run() -> pass"),
        ("raise a", "raise a -> pass"),
        ("a.b = c", "a.b = c -> pass"),
    ],
)
def test_a_rule_changes_one_thing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, change: str
) -> None:
    file = tmp_path / "m.py"
    file.write_text(f'def f():\n    """Words."""\n    {statement}\n')
    monkeypatch.setattr(mutants, "PACKAGE", tmp_path)
    assert [one.name for one in mutants.candidates(file)] == [f"m.py f: {change}"]
