"""Reading a batch of serialised Examples in step, with NumPy.

An Example is Features, a map from keys to Features, each with one list. All examples are joined into one
buffer; a position per example walks from entry to entry. A length of one or two bytes is looked up in a table
by the two bytes behind its tag, so a step costs three NumPy calls for the whole batch. That the walk ends
where the example ends proves that it was right. What isn't laid out so (longer lengths, unpacked lists, keys
that come twice, damage) is left to the exact reader: None.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: zeros behind the examples: keys and small lists are looked at beyond their end
_PAD = 256
_MOST_STEPS = 1000
#: lists of up to so many bytes are copied as rows of a table
_SMALL = 64
_KEY_TAG, _VALUE_TAG, _ITEM_TAG = 0x0A, 0x12, 0x0A
_LIST_TAGS = np.array([0, 0x0A, 0x12, 0x1A], np.uint8)  # by kind
_BYTES, _FLOAT, _INT64 = 1, 2, 3


@functools.cache
def _tables() -> tuple[np.ndarray, np.ndarray]:
    """By the two bytes behind a tag: the size of tag and length, and of tag, length and content.

    Lengths of three bytes and more get a size that reaches past any end.
    """
    pair = np.arange(1 << 16, dtype=np.int64)
    first, second = pair & 0xFF, pair >> 8
    long = first >= 0x80
    head = np.where(long, 3, 2)
    length = np.where(long, (first & 0x7F) | (second << 7), first)
    length[long & (second >= 0x80)] = 1 << 40
    return head, head + length


#: values, counts, present, and how many values each example has, where all have as many (else -1)
_Parts = tuple[np.ndarray, np.ndarray, np.ndarray, int]


def scan_batch(serialized: Sequence[bytes], kinds: Mapping[bytes, int]) -> dict[bytes, _Parts] | None:
    """What a Column has, for each key; None where the exact reader must look."""
    buffer = b"".join([*serialized, bytes(_PAD)])
    entries = _Entries(buffer, np.fromiter(map(len, serialized), np.int64, len(serialized)))
    if not entries.walk(len(kinds)):
        return None
    keys = sorted(kinds, key=kinds.__getitem__)  # those of a kind together
    places = entries.find(tuple(keys))
    if places is None:
        return None
    found = _values(entries, *places, [kinds[key] for key in keys])
    return None if found is None else dict(zip(keys, found, strict=True))


class _Entries:
    """The entries of the Features maps of a batch."""

    def __init__(self, buffer: bytes, sizes: np.ndarray) -> None:
        self.buffer = buffer
        self.bytes = np.frombuffer(buffer, np.uint8)
        #: the two bytes behind each position
        self.pairs = np.ndarray((len(buffer) - 2,), "<u2", buffer, 1, (1,))
        self.ends = np.cumsum(sizes)
        self.begins = self.ends - sizes
        self._head, self._whole = _tables()
        #: where the values of keys nobody asked for start and end
        self._unasked: list[tuple[np.ndarray, np.ndarray]] = []

    def walk(self, least: int) -> bool:
        """Finds where the content of the entries starts (`body`), and their end, in step.

        least: so many entries are expected, and their number isn't looked at before.
        """
        pos = self._features()
        if pos is None:
            return False
        total = int(self.ends[-1])
        rows: list[np.ndarray] = []
        pairs: list[np.ndarray] = []
        while len(rows) < least or bool((pos < self.ends).any()):
            if len(rows) >= _MOST_STEPS:
                return False
            pair = self.pairs[pos]
            rows.append(pos)
            pairs.append(pair)
            pos = np.minimum(pos + self._whole.take(pair), total)
        while rows and not (rows[-1] < self.ends).any():
            rows.pop()
            pairs.pop()
        if not rows:
            return False
        shape = len(rows), len(self.ends)
        at, pair = np.concatenate(rows).reshape(shape), np.concatenate(pairs).reshape(shape)
        self.is_entry = at < self.ends
        self.body = at + self._head.take(pair)
        self.end = at + self._whole.take(pair)
        good = (self.bytes.take(at) == _ITEM_TAG) & (self.end <= self.ends)
        self.is_full = bool(self.is_entry.all())
        return bool(good.all() if self.is_full else good[self.is_entry].all())

    def lengths(self, at: np.ndarray) -> tuple[Any, np.ndarray]:
        """The size of tag and length, and of tag, length and content, of the fields at these places."""
        first = self.bytes.take(at + 1)
        if len(first) == 0 or first.max() < 0x80:
            return 2, first.astype(np.int64) + 2
        pair = first | self.bytes.take(at + 2).astype(np.int64) << 8
        return self._head.take(pair), self._whole.take(pair)

    def _features(self) -> Any:
        """Where the content of the one field of each example starts, or None."""
        begins, ends = self.begins, self.ends
        if bool((ends - begins < 2).any()) or bool((self.bytes[begins] != _ITEM_TAG).any()):
            return None
        length = np.zeros_like(begins)
        at = begins + 1
        more = np.ones(begins.shape, np.bool_)
        for shift in range(0, 35, 7):
            byte = self.bytes[at].astype(np.int64)
            length += np.where(more, (byte & 0x7F) << shift, 0)
            at += more
            more &= byte >= 0x80
            if not more.any():
                break
        return None if bool((at + length != ends).any()) or bool(more.any()) else at

    def find(self, keys: tuple[bytes, ...]) -> tuple[np.ndarray, np.ndarray] | None:
        """Where the value of each key and example starts (-1: nowhere) and ends."""
        index = _key_table(keys)
        n = len(self.ends)
        start = np.full((len(keys), n), -1, np.int64)
        end = np.zeros((len(keys), n), np.int64)
        rest: list[int] = []
        for step in range(len(self.body)):
            body = self.body[step]
            key = (
                self._common_key(body)
                if len(rest) < 3 and (self.is_full or self.is_entry[step].all())
                else None
            )
            if key is None:
                rest.append(step)
                continue
            k = index.place.get(key)
            if k is None:
                self._unasked.append((body + (2 + len(key)), self.end[step]))
                continue
            if start[k, 0] >= 0:
                return None
            start[k] = body + (2 + len(key))
            end[k] = self.end[step]
        if rest and not (index.is_plain and self._find_mixed(rest, index, start, end)):
            return None
        return (start, end) if all(self._are_values(*places) for places in self._unasked) else None

    def _are_values(self, at: np.ndarray, stop: np.ndarray) -> bool:
        """Whether the rests of entries are values, whatever is in them."""
        whole = self.lengths(at)[1]
        return bool(((self.bytes.take(at) == _VALUE_TAG) & (at + whole == stop)).all())

    def _common_key(self, body: np.ndarray) -> bytes | None:
        """The key that all entries of a step have."""
        first = int(body[0])
        size = 2 + self.buffer[first + 1]
        head = self.buffer[first : first + size]
        if size >= 2 + 0x80 or len(head) < size or head[0] != _KEY_TAG:
            return None
        heads = np.ndarray((len(self.buffer) - size + 1,), f"V{size}", self.buffer, 0, (1,))
        return head[2:] if heads[body].tobytes() == head * len(body) else None

    def _find_mixed(self, steps: list[int], index: _KeyTable, start: np.ndarray, end: np.ndarray) -> bool:
        """The same for steps whose entries have different keys; False where one isn't as expected.

        Keys are compared eight bytes at a time, all entries at once.
        """
        is_entry = self.is_entry[steps]
        lane = np.broadcast_to(np.arange(len(self.ends)), is_entry.shape)[is_entry]
        body, stop = self.body[steps][is_entry], self.end[steps][is_entry]
        size = self.bytes.take(body + 1).astype(np.int64)
        at = body + 2
        if not ((self.bytes.take(body) == _KEY_TAG) & (size < 0x80) & (at + size <= stop)).all():
            return False
        eights = np.ndarray((len(self.buffer) - 7,), "<u8", self.buffer, 0, (1,))
        words = [
            eights[at + i] & _LOW_BYTES.take(np.clip(size - i, 0, 8)) for i in range(0, index.longest, 8)
        ]
        row = index.sorted_hashes.searchsorted(_mixed(words, size))
        k = index.order.take(row, mode="clip")
        found = index.size.take(k) == size
        for mine, word in zip(index.words, words, strict=True):
            found &= mine.take(k) == word
        at += size
        self._unasked.append((at[~found], stop[~found]))
        k, lane, at, stop = k[found], lane[found], at[found], stop[found]
        taken = int((start >= 0).sum())
        start[k, lane] = at
        end[k, lane] = stop
        return int((start >= 0).sum()) == taken + len(k)  # else a key comes twice


class _KeyTable:
    """Keys, cut into words of eight bytes."""

    def __init__(self, keys: tuple[bytes, ...]) -> None:
        self.place = {key: i for i, key in enumerate(keys)}
        self.longest = max(map(len, keys), default=0)
        self.size = np.array([len(key) for key in keys], np.int64)
        self.words = [
            np.array([int.from_bytes(key[i : i + 8], "little") for key in keys], np.uint64)
            for i in range(0, self.longest, 8)
        ]
        hashes = _mixed(self.words, self.size)
        self.order = np.argsort(hashes, kind="stable")
        self.sorted_hashes = hashes[self.order]
        #: whether no two have the same hash
        self.is_plain = len(np.unique(hashes)) == len(keys)


def _mixed(words: list[np.ndarray], size: np.ndarray) -> np.ndarray:
    """A number for each key; different ones for different keys, but for rare accidents."""
    result = size.astype(np.uint64)
    for word in words:
        result = (result ^ word) * np.uint64(0x9E3779B97F4A7C15)
        result ^= result >> np.uint64(29)
    return result


_key_table = functools.lru_cache(maxsize=256)(_KeyTable)
_LOW_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def _values(entries: _Entries, start: np.ndarray, end: np.ndarray, kinds: list[int]) -> list[_Parts] | None:
    """What a Column has, for each row of places; kinds: of the rows, in order."""
    data = entries.bytes
    present = start >= 0
    is_full = bool(present.all())
    sizes = np.full(len(kinds), present.shape[1]) if is_full else present.sum(axis=1)
    kind_of = np.array(kinds).repeat(sizes)  # the kind of each list
    at, stop = (start.reshape(-1), end.reshape(-1)) if is_full else (start[present], end[present])
    # entry -> Feature -> list -> items: packed numbers, or one string
    head, whole = entries.lengths(at)
    good = (data.take(at) == _VALUE_TAG) & (at + whole == stop)
    feature = np.minimum(at + head, len(data) - 3)
    head, whole = entries.lengths(feature)
    good &= (data.take(feature) == _LIST_TAGS.take(kind_of)) & (feature + whole == stop)
    if not good.all():
        return None
    inside = feature + head
    head, whole = entries.lengths(inside)
    is_empty = inside == stop
    is_one = (data.take(inside) == _ITEM_TAG) & (inside + whole == stop)
    if not (is_one | is_empty | (kind_of == _BYTES)).all():
        return None
    payload = np.where(is_empty, stop, inside + head)
    bounds = [0, *np.cumsum(sizes).tolist()]
    column = _Columns(entries, present, payload, stop, bounds)
    integers = column.integers([r for r, kind in enumerate(kinds) if kind == _INT64])
    if integers is None:
        return None
    result: list[_Parts] = []
    for r, kind in enumerate(kinds):
        lo, hi = bounds[r], bounds[r + 1]
        made: tuple[np.ndarray, np.ndarray, int] | None
        if kind == _INT64:
            made = integers[r]
        elif kind == _FLOAT:
            made = column.floats(lo, hi)
        else:
            made = column.strings(lo, hi, inside, is_one)
        if made is None:
            return None
        values, counts, each = made
        if hi - lo < present.shape[1]:
            counts, each = _spread(counts, present[r]), -1
        result.append((values, counts, present[r], each))
    return result


def _spread(counts: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Counts of the examples that have a key as counts of all examples."""
    result = np.zeros(len(present), np.int64)
    result[present] = counts
    return result


class _Columns:
    """Makes columns from where the lists are: those of row r are payload[bounds[r]:bounds[r + 1]]."""

    def __init__(
        self, entries: _Entries, present: np.ndarray, payload: np.ndarray, stop: np.ndarray, bounds: list[int]
    ) -> None:
        self._buffer, self._bytes = entries.buffer, entries.bytes
        self._present, self._payload, self._stop, self._bounds = present, payload, stop, bounds

    def floats(self, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray, int] | None:
        """Values, counts, and how many each has (or -1)."""
        start, stop = self._payload[lo:hi], self._stop[lo:hi]
        sizes = stop - start
        size = int(sizes[0]) if len(sizes) else 0
        if size and not size & 3 and bool((sizes == size).all()):
            lists = np.ndarray((len(self._buffer) - size + 1,), f"V{size}", self._buffer, 0, (1,))
            return lists[start].view("<f4"), np.full(len(sizes), size >> 2), size >> 2
        if (sizes & 3).any():
            return None
        return np.frombuffer(self._joined(start, stop), "<f4"), sizes >> 2, -1

    def _joined(self, start: np.ndarray, stop: np.ndarray) -> bytes:
        buffer = self._buffer
        return b"".join([buffer[a:b] for a, b in zip(start.tolist(), stop.tolist(), strict=True)])

    def integers(self, rows: list[int]) -> dict[int, tuple[np.ndarray, np.ndarray, int]] | None:
        """The same for these rows, which follow one another: decoded together."""
        from_, to = (self._bounds[rows[0]], self._bounds[rows[-1] + 1]) if rows else (0, 0)
        start, stop = self._payload[from_:to], self._stop[from_:to]
        sizes = stop - start
        longest = int(sizes.max()) if len(sizes) else 0
        if 0 < longest <= _SMALL:  # one row of a table each
            lists = np.ndarray((len(self._buffer) - longest + 1,), f"V{longest}", self._buffer, 0, (1,))
            table = lists[start].view(np.uint8).reshape(-1, longest)
            data = table.reshape(-1)
            begin = np.arange(0, len(data), longest)
            last = np.flatnonzero((table < 0x80) & (np.arange(longest) < sizes[:, None]))
            owner = last // longest
        else:
            data = np.frombuffer(self._joined(start, stop), np.uint8)
            ends = np.cumsum(sizes)
            begin = ends - sizes
            last = np.flatnonzero(data < 0x80)
            owner = ends.searchsorted(last, "right")
        final = (begin + sizes - 1)[sizes > 0]
        if len(final) and data.take(final).max() >= 0x80:
            return None
        values = _varints(data, last, begin.take(owner))
        if values is None:
            return None
        counts = np.bincount(owner, minlength=len(sizes))
        before = np.cumsum(counts)  # how many values end before each list does
        result = {}
        for r in rows:
            lo, hi = self._bounds[r] - from_, self._bounds[r + 1] - from_
            first = before[lo - 1] if lo else 0
            stop_at = before[hi - 1] if hi else 0
            of_row = counts[lo:hi]
            each = int(of_row[0]) if hi > lo and bool((of_row == of_row[0]).all()) else -1
            result[r] = values[first:stop_at], of_row, each
        return result

    def strings(
        self, lo: int, hi: int, inside: np.ndarray, is_one: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, int] | None:
        """The same for a row of strings."""
        start, stop = self._payload[lo:hi].tolist(), self._stop[lo:hi].tolist()
        buffer = self._buffer
        each = -1
        if bool(is_one[lo:hi].all()):
            items = [buffer[a:b] for a, b in zip(start, stop, strict=True)]
            counts = np.ones(len(items), np.int64)
            each = 1
        else:
            lists = [_items(buffer, a, b) for a, b in zip(inside[lo:hi].tolist(), stop, strict=True)]
            if None in lists:
                return None
            items = [item for one in lists for item in one]  # type: ignore[union-attr]
            counts = np.array([len(one) for one in lists], np.int64)  # type: ignore[arg-type]
        values = np.empty(len(items), object)
        values[:] = items
        return values, counts, each


def _varints(data: np.ndarray, last: np.ndarray, begin: np.ndarray) -> np.ndarray | None:
    """The varints that end at `last`, as int64; None where one is too long. begin: of the list of each."""
    if len(last) == 0:
        return np.empty(0, np.int64)
    start = np.empty_like(last)
    start[0] = 0
    np.add(last[:-1], 1, start[1:])
    np.maximum(start, begin, out=start)
    sizes = last - start
    longest = int(sizes.max())
    if longest > 9:
        return None
    values = (data.take(start) & 0x7F).astype(np.uint64)
    for k in range(1, longest + 1):
        longer = np.flatnonzero(sizes >= k)
        part = (data.take(start.take(longer) + k) & 0x7F).astype(np.uint64)
        values[longer] |= part << np.uint64(7 * k)
    return values.view(np.int64)


def _items(buffer: bytes, at: int, end: int) -> list[bytes] | None:
    items = []
    while at < end:
        if buffer[at] != _ITEM_TAG:
            return None
        size = buffer[at + 1]
        at += 2
        if size >= 0x80:
            more = buffer[at]
            if more >= 0x80:
                return None
            size = (size & 0x7F) | more << 7
            at += 1
        if at + size > end:
            return None
        items.append(buffer[at : at + size])
        at += size
    return items
