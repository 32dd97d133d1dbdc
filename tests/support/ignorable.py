"""Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt, written out."""

from collections.abc import Iterator

_RANGES = (
    "00AD 034F 061C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F"
    " FEFF FFA0 FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)


def ignorable() -> Iterator[str]:
    """Every character that a display may ignore."""
    for part in _RANGES.split():
        first, _, last = part.partition("-")
        yield from map(chr, range(int(first, 16), int(last or first, 16) + 1))
