"""Every way in which Colibri says no.

ColibriError          what all of these are; `.message` is fit to be shown
├── ConfigError       the settings are wrong: `.problems`, one sentence each (exit 73)
├── ResourceError     what the server needs could not be had: `.hint` says what to do (exit 75)
├── Invalid           the arguments do not fit: `.issues`, each with path, problem and allowed
├── Refused           a rule of the domain said no: `.code` is stable, `.fields` carry its facts
├── Unavailable       the store cannot serve the call now; a later one may succeed
├── Damaged           the database is not the one that was opened, or contradicts itself
└── Malformed         a file that somebody else wrote is not in its format

Exceptions inside, values on the wire: `server/envelope.py` converts them, nothing else does.
"""

from collections.abc import Mapping, Sequence


class ColibriError(Exception):
    """The root: something expected went wrong and there are words for it."""

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
