"""RFC 6962, 2.1, word for word: the reference for every tree and proof."""

from hashlib import sha256


def largest_power_below(number: int) -> int:
    return 1 << (number - 1).bit_length() - 1


class NaiveTree:
    """The leaves from low to high form a subtree; by default the whole tree."""

    def __init__(self, leaves: list[bytes]) -> None:
        self.leaves = leaves
        self._roots: dict[tuple[int, int], bytes] = {}

    def root(self, low: int = 0, high: int = -1) -> bytes:
        high = len(self.leaves) if high < 0 else high
        if high - low == 1:
            return self.leaves[low]
        if (low, high) not in self._roots:
            k = low + largest_power_below(high - low)
            both = self.root(low, k) + self.root(k, high)
            self._roots[low, high] = sha256(b"\x01" + both).digest()
        return self._roots[low, high]

    def inclusion(self, index: int, low: int = 0, high: int = -1) -> list[bytes]:
        high = len(self.leaves) if high < 0 else high
        if high - low == 1:
            return []
        k = low + largest_power_below(high - low)
        if index < k:
            return [*self.inclusion(index, low, k), self.root(k, high)]
        return [*self.inclusion(index, k, high), self.root(low, k)]

    def consistency(self, size: int, low: int, high: int, *, whole: bool = True) -> list[bytes]:
        if size == high:
            return [] if whole else [self.root(low, high)]
        k = low + largest_power_below(high - low)
        if size <= k:
            return [*self.consistency(size, low, k, whole=whole), self.root(k, high)]
        return [*self.consistency(size, k, high, whole=False), self.root(low, k)]
