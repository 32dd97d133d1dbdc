"""Every error that Colibri raises on purpose.

ColibriError          the base of all of these; `.message` can be shown to a user
├── ConfigError       the settings are wrong: `.problems`, one sentence each (exit 73)
├── ResourceError     something the server needs is missing: `.hint` says what to do (exit 75)
├── Invalid           the arguments do not fit: `.issues`, each with path, problem and allowed
├── Refused           a domain rule said no: `.code` is stable, `.fields` has the details
├── Unavailable       the store cannot serve the call now; a later one may succeed
├── Damaged           the database is not the one that was opened, or contradicts itself
└── Malformed         a file that somebody else wrote does not have the right format

Only `server/envelope.py` turns them into answers.
"""

from collections.abc import Mapping, Sequence


class ColibriError(Exception):
    """The base class: an expected failure, with a message for people."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ConfigError(ColibriError):
    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class ResourceError(ColibriError):
    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Invalid(ColibriError):
    """Issues never repeat the offending value: it may be a secret."""

    def __init__(self, issues: Sequence[Mapping[str, object]]) -> None:
        paths = ", ".join(str(issue["path"]) for issue in issues)
        super().__init__(f"schema validation failed: {paths}")
        self.issues = [dict(issue) for issue in issues]


class Refused(ColibriError):
    def __init__(self, code: str, message: str, **fields: object) -> None:
        super().__init__(message)
        self.code = code
        self.fields = fields


class Unavailable(ColibriError):
    pass


class Damaged(ColibriError):
    pass


class Malformed(ColibriError):
    pass
