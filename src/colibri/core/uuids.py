"""A uuid of version 4 from given bytes, without the cost of importing uuid."""


def uuid4(raw: bytes) -> str:
    """Of the first 16 bytes."""
    text = raw.hex()
    variant = _VARIANT[text[16]]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"


# A hexadecimal digit with its two upper bits set to 10.
_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
