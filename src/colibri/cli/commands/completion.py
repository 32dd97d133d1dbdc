"""`colibri completion`: what a shell needs to complete commands, options and their values."""

import argparse
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import NamedTuple

from colibri.cli import commands as folder
from colibri.cli.show import help

HELP = "complete commands and options in bash, zsh or fish"

DESCRIPTION = """\
Print the completions for a shell. They know every command, option and fixed value, such as states
and priorities; where a file or directory is asked for, the shell completes its names.
"""

EPILOG = """\
examples:
  colibri completion bash
  colibri completion fish > colibri.fish

bash: put this into ~/.bashrc
  source <(colibri completion bash)

zsh: put this into ~/.zshrc, after compinit
  source <(colibri completion zsh)

fish:
  colibri completion fish > ~/.config/fish/completions/colibri.fish

Exit codes: 0 printed.
"""

PATHS = ("DIR", "FILE", "BUNDLE")  # the metavars of arguments that are paths


class Word(NamedTuple):
    """An argument of a command: an option or a positional value."""

    names: tuple[str, ...]  # none for a positional value
    values: tuple[str, ...]  # the fixed ones
    takes_value: bool
    is_path: bool
    help: str


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def run(options: argparse.Namespace) -> int:
    print("\n".join(SHELLS[options.shell](_commands())))
    return 0


Commands = dict[str, tuple[str, list[Word]]]  # what each is for, and what it takes


def _commands() -> Commands:
    """The modules in this directory; cli/__init__.py, which lists them, imports this one."""
    found: Commands = {}
    for name in sorted(one.name for one in pkgutil.iter_modules(folder.__path__)):
        module = importlib.import_module(f"{folder.__name__}.{name}")
        parser = help.Parser(prog=f"colibri {name}")
        module.configure(parser)
        found[name.replace("_", "-")] = (module.HELP, [*_words(parser)])
    return found


def _words(parser: argparse.ArgumentParser) -> Iterator[Word]:
    for action in parser._actions:
        values = tuple(map(str, action.choices or ()))
        path = str(action.metavar) in PATHS
        yield Word(tuple(action.option_strings), values, action.nargs != 0, path, action.help or "")


def _bash(commands: Commands) -> Iterator[str]:
    yield "_colibri() {"
    yield "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}"
    yield "  COMPREPLY=()"
    yield "  if [ $COMP_CWORD -eq 1 ]; then"
    yield f'    COMPREPLY=($(compgen -W "{" ".join(commands)} help --help --version" -- "$word"))'
    yield "    return"
    yield "  fi"
    yield '  case "${COMP_WORDS[1]} $before" in'
    for name, (_, words) in commands.items():
        for word in words:
            if word.names and word.takes_value:
                patterns = "|".join(f'"{name} {one}"' for one in word.names)
                yield f"    {patterns}) {_bash_values(word)}; return ;;"
    yield "  esac"
    yield '  case "${COMP_WORDS[1]}" in'
    yield f'    help) COMPREPLY=($(compgen -W "{" ".join(commands)}" -- "$word")) ;;'
    for name, (_, words) in commands.items():
        known = " ".join(one for word in words for one in (*word.names, *_placed(word)))
        files = any(word.is_path and not word.names for word in words)
        more = ' COMPREPLY+=($(compgen -f -- "$word"))' if files else ""
        yield f'    {name}) COMPREPLY=($(compgen -W "{known}" -- "$word"));{more} ;;'
    yield "  esac"
    yield "}"
    yield "complete -o filenames -F _colibri colibri"


def _bash_values(word: Word) -> str:
    if word.values:
        return f'COMPREPLY=($(compgen -W "{" ".join(word.values)}" -- "$word"))'
    return 'COMPREPLY=($(compgen -f -- "$word"))' if word.is_path else "true"


def _placed(word: Word) -> tuple[str, ...]:
    """The fixed values of an argument that has no option before it."""
    return () if word.names else word.values


def _zsh(commands: Commands) -> Iterator[str]:
    yield "_colibri() {"
    yield "  if (( CURRENT == 2 )); then"
    yield "    local -a commands=("
    yield from (f"      {_quoted(f'{name}:{purpose}')}" for name, (purpose, _) in commands.items())
    yield "    )"
    yield "    _describe command commands"
    yield "    return"
    yield "  fi"
    yield "  local command=$words[2]"
    yield "  shift words; (( CURRENT-- ))"
    yield '  case "$command" in'
    yield f"    help) _values command {' '.join(commands)} ;;"
    for name, (_, words) in commands.items():
        specs = [_quoted(spec) for word in words for spec in _zsh_specs(word)]
        placed = " ".join(one for word in words for one in _placed(word))
        files = any(word.is_path and not word.names for word in words)
        rest = f"({placed})" if placed else "_files" if files else " "
        yield f"    {name}) _arguments -s {' '.join(specs)} {_quoted(f'*:value:{rest}')} ;;"
    yield "  esac"
    yield "}"
    yield "compdef _colibri colibri"


def _zsh_specs(word: Word) -> Iterator[str]:
    action = f"({' '.join(word.values)})" if word.values else "_files" if word.is_path else " "
    purpose = word.help.replace("[", "(").replace("]", ")").replace(":", ";")
    for name in word.names:
        yield f"*{name}[{purpose}]" + (f":value:{action}" if word.takes_value else "")


def _fish(commands: Commands) -> Iterator[str]:
    yield "complete -c colibri -f"
    names = " ".join(commands)
    yield f"complete -c colibri -n '__fish_seen_subcommand_from help' -a '{names}'"
    first = "complete -c colibri -n __fish_use_subcommand"
    for name, (purpose, words) in commands.items():
        yield f"{first} -a {name} -d {_quoted(purpose)}"
        here = f"complete -c colibri -n {_quoted(f'__fish_seen_subcommand_from {name}')}"
        for word in words:
            values = f" -a {_quoted(' '.join(word.values))}" if word.values else ""
            path = " -F" if word.is_path else ""
            if not word.names:
                yield f"{here}{values}{path}"
                continue
            names = " ".join(
                f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in word.names
            )
            yield f"{here} {names}{' -r' * word.takes_value}{values}{path} -d {_quoted(word.help)}"


def _quoted(text: str) -> str:
    """As one word of a shell, of each of the three."""
    return "'" + text.replace("\\", "").replace("'", "’") + "'"


SHELLS: dict[str, Callable[[Commands], Iterator[str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
