"""``heapq`` for programs: lists in heap order, smallest first."""

from typing import Any


def heappush(heap: Any, item: Any) -> None:
    heap.append(item)
    i = len(heap) - 1
    while i > 0:
        parent = (i - 1) // 2
        if not heap[i] < heap[parent]:
            return
        heap[i], heap[parent] = heap[parent], heap[i]
        i = parent


def _sift(heap: Any, i: int) -> None:
    n = len(heap)
    while True:
        child = 2 * i + 1
        if child >= n:
            return
        if child + 1 < n and not heap[child] < heap[child + 1]:
            child += 1
        if not heap[child] < heap[i]:
            return
        heap[i], heap[child] = heap[child], heap[i]
        i = child


def heappop(heap: Any) -> Any:
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    heap[0] = last
    _sift(heap, 0)
    return first


def heapify(heap: Any) -> None:
    for i in range(len(heap) // 2 - 1, -1, -1):
        _sift(heap, i)


def heapreplace(heap: Any, item: Any) -> Any:
    first = heap[0]
    heap[0] = item
    _sift(heap, 0)
    return first


def heappushpop(heap: Any, item: Any) -> Any:
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        _sift(heap, 0)
    return item


def nsmallest(n: int, iterable: Any, key: Any = None) -> Any:
    return _ranked(iterable, key, False)[: max(n, 0)]


def nlargest(n: int, iterable: Any, key: Any = None) -> Any:
    return _ranked(iterable, key, True)[: max(n, 0)]


def _ranked(iterable: Any, key: Any, reverse: bool) -> Any:
    items = list(iterable)
    keys = items if key is None else [key(item) for item in items]
    order = sorted(range(len(items)), key=lambda i: keys[i], reverse=reverse)
    return [items[i] for i in order]


def merge(*iterables: Any, key: Any = None, reverse: bool = False) -> Any:
    items = [item for iterable in iterables for item in iterable]
    return iter(sorted(items, key=key, reverse=reverse))
