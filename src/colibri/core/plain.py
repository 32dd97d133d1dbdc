"""Plain payloads: those that a pattern knows, so that a check of many need not parse each.

What a pattern matches is JSON with the members of its kind, so parsing it could find nothing more.
What it does not match may be just as good: it is parsed.
"""

import re

_TEXT = rb'"[ !#-\[\]-~]*+"'  # printable ASCII without escapes
_NUMBER = rb"(?:0|[1-9][0-9]{0,14}+)"
_HASH = rb'(?:null|"[0-9a-f]{64}+")'

# Of a call's arguments nothing is plain that is deeper than the digest of a text.
_DIGEST = rb'\{"sha256":"[0-9a-f]{64}+","size":%b\}' % _NUMBER
_MEMBER = rb"%b:(?:%b|%b|null|true|false|%b)" % (_TEXT, _TEXT, _NUMBER, _DIGEST)
# Groups: the tool.
ENTER = re.compile(
    rb'\{"arguments":(?:null|\{(?:%b(?:,%b)*+)?\}),"server":%b,"sha256":%b'
    rb',"size":(?:null|%b),"tool":(%b)\}\Z' % (_MEMBER, _MEMBER, _TEXT, _HASH, _NUMBER, _TEXT)
)
# Groups: the seq of the enter, the tool.
EXIT = re.compile(
    rb'\{"code":(?:null|%b),"duration_ms":%b,"enter":(%b),"outcome":"[a-z]++","result_sha256":%b'
    rb',"tool":(%b)\}\Z' % (_TEXT, _NUMBER, _NUMBER, _HASH, _TEXT)
)
# The front of a thought: any content that JSON can have in UTF-8; whether it is UTF-8 is for
# decoding to say.
CONTENT = re.compile(
    rb'\{"content":"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u00[0-9a-f]{2})[^"\\\x00-\x1f]*+)*+'
)
