"""Secrets recognised by what surrounds them, such as `API_TOKEN=…` or a PEM block.

Texts are searched without their escapes, so a quote here is any quote; see escapes.py.
"""

from colibri.core.secret_tokens import WORD, Shape, begins

_VALUE = 160  # bytes of a value that are judged
_QUOTE, _BLANK, _EQUALS = rb"""["'`]""", rb"[ \t]", rb"(?:={1,3}>?|:=?|>)"
_IS = b"%b?%b{0,4}%b%b{0,4}%b?" % (_QUOTE, _BLANK, _EQUALS, _BLANK, _QUOTE)
_GAP = rb"[ +]"
_TEXT = rb"[a-z0-9._~+/=-]"
_NO_BREAK = rb"""[^\s"'`<>]"""
_BARE = rb"""[^\s"'`<>;,&|()]"""
_UNSIGNED = rb"""[^\s"'`<>;,&|()=]"""  # keeps a=a=a= cheap


def _secret(characters: bytes, least: int, most: int = _VALUE) -> bytes:
    return b"(?P<secret>%b{%d,%d}+)" % (characters, least, most)


# How names of secrets end, after a part that says which key it is.
_KEY_OF = (
    b"api access secret private signing encryption master auth account app deploy license service"
    b" admin shared consumer storage client session webhook jwt hmac"
).split()
_NAMES: tuple[tuple[bytes, bytes], ...] = (
    (b"pass", rb"pass(?:word|wd|phrase|code|(?<=_pass)|(?<=-pass)|(?<=dbpass))"),
    (b"pwd", rb"pwd(?:(?<=_pwd)|(?<=-pwd)|(?<=;pwd)|(?<=; pwd)|(?<=dbpwd))"),
    (b"secret", rb"secret"),
    (b"token", rb"token"),
    (
        b"key",
        b"key(?:"
        + b"|".join(rb"(?<=%b%bkey)" % (of, joint) for of in _KEY_OF for joint in (b"", b"[_-]"))
        + b"|(?<=secret_)key_base|(?<=api )key)",
    ),
    (b"secret", rb"secret_key_base"),
)
_NAMED = b"(?P<close>%b?)(?P<is>%b{0,4}%b%b{0,4}|[ =])" % (
    _QUOTE,
    _BLANK,
    _EQUALS,
    _BLANK,
) + b"(?:%b%b(?=%b|(?<=\\S{%d}))|(?P<bare>%b{4,%d}+={0,2}))" % (
    _QUOTE,
    _secret(_NO_BREAK, 4).replace(b"secret", b"quoted"),
    _QUOTE,
    _VALUE,
    _UNSIGNED,
    _VALUE,
)

FRAMES: tuple[Shape, ...] = (
    Shape(
        "private-key",
        b"private",
        rb"-{4,5} ?BEGIN%b(?:[A-Z0-9]{2,12}%b){0,3}PRIVATE%bKEY(?:%bBLOCK)? ?-{4,5}"
        % (_GAP, _GAP, _GAP, _GAP),
        judge="PEM",
    ),
    Shape("private-key", b"private", rb"Private-Lines: [0-9]{1,4}", judge="PuTTY"),
    Shape(
        "aws-key",
        b"secret",
        rb"secret_?(?:access_?)?key" + _IS + rb"(?P<secret>[a-z0-9/+]{40})(?![\w/+=])",
        folds=True,
    ),
    Shape(
        "aws-key",
        b"token",
        rb"session_?token" + _IS + rb"(?P<secret>[a-z0-9/+=%]{100})",
        rb"[a-z0-9/+=%]",
        folds=True,
    ),
    *(
        Shape("azure-key", b"key", name + _EQUALS + _secret(rb"[\w+/%]", 40), rb"[\w+/=%]")
        for name in (b"AccountKey", b"SharedAccessKey")
    ),
    Shape("azure-key", b"sig=", rb"sig=(?<=[?&;]sig=)" + _secret(rb"[\w%+/]", 40), rb"[\w%+/=]"),
    Shape("azure-key", b"q~", rb"(?<![A-Za-z0-9~])[\w~.-]{3}[0-9]Q~[\w~.-]{31}", rb"[\w~.-]"),
    Shape("gcp-key", b"1//0", begins(b"1//0") + rb"[\w-]{30}", WORD),
    Shape("openshift-token", b"sha256~", rb"sha256~[\w-]{43}(?![\w-])"),
    Shape(
        "npm-token",
        b"auth",
        rb":_auth(?:token)?=" + _secret(rb"""[^\s"']""", 8),
        folds=True,
        judge="value",
    ),
    Shape(
        "slack-webhook",
        b"hooks",
        rb"hooks\.slack\.com/[a-z]{1,16}/(?P<secret>[A-Za-z0-9/]{20})",
        rb"[A-Za-z0-9/]",
    ),
    Shape(
        "discord-webhook",
        b"hooks",
        rb"/api/webhooks/[0-9]{15,20}/(?P<secret>[\w-]{60})",
        WORD,
    ),
    Shape("telegram-token", b":aa", rb":(?P<secret>AA(?<=[0-9]{8}:AA)[\w-]{33})(?![\w-])"),
    Shape(
        "authorization",
        b"auth",
        rb"authorization%b(?:basic|token|bearer|apikey|api-key|key|ssws|bot)%b{1,4}" % (_IS, _BLANK)
        + _secret(_TEXT, 8),
        _TEXT,
        folds=True,
        judge="value",
    ),
    Shape(
        "authorization",
        b"bearer",
        rb"bearer%b{1,4}" % _BLANK + _secret(_TEXT, 16),
        _TEXT,
        folds=True,
        judge="no words",
    ),
    *(
        Shape(
            "authorization", hint, header + _IS + _secret(_TEXT, 16), _TEXT, True, judge="no words"
        )
        for hint, header in (
            (b"key", rb"x-api-key"),
            (b"token", rb"x-auth-token"),
            (b"auth", rb"authorization"),
        )
    ),
    Shape(
        "url-password",
        b"://",
        rb"""://[^\s/?#:"'<>]{0,128}+:(?![0-9]{1,5}[/?#])(?P<secret>[^\s/"'<>]{1,256})@""",
        judge="value",
    ),
    *(
        Shape(
            "password",
            hint,
            rb"%b=(?:(?<=;%b=)|(?<=; %b=))" % (name, name, name) + _secret(rb"""[^\s;"']""", 4),
            folds=True,
            judge="value",
        )
        for hint, name in ((b"pass", b"password"), (b"pwd", b"pwd"))
    ),
    Shape(
        "password",
        b"curl",
        rb"curl [^\n]{0,200}?(?:-u[ =]?|--(?:proxy-)?user[ =])%b?[^\s:\"']{1,64}:" % _QUOTE
        + _secret(_NO_BREAK, 3),
        folds=True,
        judge="value",
    ),
    Shape(
        "password",
        b"machine",
        rb"machine\s{1,8}\S{1,128}+\s{1,8}login\s{1,8}\S{1,64}+\s{1,8}password\s{1,8}"
        + _secret(rb"""[^\s"']""", 4),
        folds=True,
        judge="value",
    ),
    *(
        Shape(
            "password",
            words,
            words + b"%b{1,4}%b" % (_BLANK, _QUOTE) + _secret(_NO_BREAK, 4),
            folds=True,
            judge="value",
        )
        for words in (b"identified by", b"with password", b"encrypted password")
    ),
    *(
        Shape(
            "named-secret",
            hint,
            command
            + rb" [A-Z0-9_]{0,60}(?:PASSWORD|PASSWD|SECRET|TOKEN|_KEY)%b{1,4}%b?" % (_BLANK, _QUOTE)
            + _secret(_NO_BREAK, 6),
            judge="value",
        )
        for hint, command in (
            (b"env ", rb"(?:ENV|setenv)"),
            (b"setx ", rb"setx"),
            (b"set -", rb"set -[a-zA-Z]{1,4}"),
        )
    ),
    Shape(
        "authorization",
        b"auth",
        rb"%bauth%b%b{0,4}:%b{0,4}%b(?P<secret>[a-z0-9+/]{12,160}+={0,2})(?=%b)"
        % (_QUOTE, _QUOTE, _BLANK, _BLANK, _QUOTE, _QUOTE),
        folds=True,
        judge="no words",
    ),
    *(Shape("named-secret", hint, name + _NAMED, _BARE, True, "named") for hint, name in _NAMES),
)
# Only a text with one of these signs is searched for the hints of frames.
HINTS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    ((":", "=", ">", "--"), ("pass", "pwd", "secret", "token", "key", "auth")),
    (("//",), ("://", "1//0", "hooks")),
    (("~",), ("q~", "sha256~")),
    (("-",), ("private", "curl", "set -")),
    (("password",), ("machine", "with password", "encrypted password")),
    (("identified",), ("identified by",)),
    (("_", "token", "password", "secret"), ("env ", "setx ")),
    (("=",), ("sig=",)),
    ((":",), (":aa",)),
    (("",), ("bearer",)),
)
