"""A uuid of version 4 from given bytes, without the cost of importing uuid."""


def uuid4(raw: bytes) -> str:
    """Of the first 16 bytes."""
    made = bytearray(raw[:16])
    made[6] = made[6] & 0x0F | 0x40
    made[8] = made[8] & 0x3F | 0x80
    text = made.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
