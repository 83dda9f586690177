"""What the interpreter lacks in places it knows; the lowering puts these names in (see ``lower.py``)."""

# The interpreter that runs this file is not CPython.
# ruff: noqa: B004, B034, B905, SIM110, T201

import asyncio
import functools
import json
import re
from collections import namedtuple
from datetime import date, timedelta, timezone
from typing import Any

_METHODS = {
    "str": "capitalize casefold center count encode endswith expandtabs find format index isalnum isalpha isdigit islower "
    "isspace istitle isupper join ljust lower lstrip partition replace rfind rindex rjust rpartition rsplit rstrip split "
    "splitlines startswith strip swapcase title upper zfill __iter__ __len__ __getitem__ __contains__",
    "list": "append clear copy count extend index insert pop remove reverse sort __iter__ __len__ __getitem__ __contains__",
    "dict": "clear copy get items keys pop popitem setdefault update values __iter__ __len__ __getitem__ __contains__",
    "tuple": "count index __iter__ __len__ __getitem__ __contains__",
    "set": "add clear copy difference discard intersection pop remove union update __iter__ __len__ __contains__",
    "bytes": "decode hex find split strip __iter__ __len__ __getitem__ __contains__",
    "datetime": "isoformat strftime date time timestamp timetuple weekday replace",
    "date": "isoformat strftime weekday replace",
    "int": "bit_length",
    "float": "is_integer",
    "generator": "__iter__ __next__",
}


def hasattr_(thing: Any, name: str) -> bool:
    if hasattr(thing, name):
        return True
    return name in _METHODS.get(type(thing).__name__, "").split()


def callable_(thing: Any) -> bool:
    kind = type(thing).__name__
    if kind in ("function", "builtin_function_or_method", "type", "method", "partial"):
        return True
    if hasattr(thing, "__call__"):
        return True
    return str(thing)[:6] in ("<bound", "<built", "<funct", "<class")


def name_(thing: Any) -> str:
    try:
        name: str = thing.__name__
        return name
    except AttributeError:
        text = str(thing)
        if text.startswith("<function '"):
            return text.split("'")[1].split(".")[-1]
        if text.startswith("<built-in function "):
            return text[19:-1]
        raise


def issubclass_(kind: Any, parents: Any) -> bool:
    parents = parents if isinstance(parents, tuple) else (parents,)
    return kind in parents or object in parents or (kind is bool and int in parents)


def map_(function: Any, *iterables: Any) -> Any:
    if len(iterables) == 1:
        return iter([function(item) for item in iterables[0]])
    return iter([function(*items) for items in zip(*iterables)])


def filter_(function: Any, iterable: Any) -> Any:
    return iter([item for item in iterable if function(item)])


def sorted_(iterable: Any, *, key: Any = None, reverse: bool = False) -> Any:
    items = list(iterable)
    keys = items if key is None else [key(item) for item in items]
    return [items[i] for i in sorted(range(len(items)), key=lambda i: keys[i], reverse=reverse)]


def sort_(items: Any, *, key: Any = None, reverse: bool = False) -> None:
    items[:] = sorted_(items, key=key, reverse=reverse)


def _best(args: Any, key: Any, default: Any, greatest: bool) -> Any:
    items = list(args[0]) if len(args) == 1 else list(args)
    if not items:
        if len(default) == 0:
            raise ValueError(f"{'max' if greatest else 'min'}() iterable argument is empty")
        return default[0]
    best, score = items[0], key(items[0])
    for item in items[1:]:
        other = key(item)
        if other > score if greatest else other < score:
            best, score = item, other
    return best


def max_(*args: Any, key: Any, **default: Any) -> Any:
    return _best(args, key, list(default.values()), True)


def min_(*args: Any, key: Any, **default: Any) -> Any:
    return _best(args, key, list(default.values()), False)


def reduce_(function: Any, iterable: Any, *initial: Any) -> Any:
    items = list(iterable)
    if initial:
        value = initial[0]
    elif items:
        value, items = items[0], items[1:]
    else:
        raise TypeError("reduce() of empty iterable with no initial value")
    for item in items:
        value = function(value, item)
    return value


def any_(iterable: Any, wanted: Any, test: Any) -> bool:
    for item in iterable:
        if wanted(item) and test(item):
            return True
    return False


def all_(iterable: Any, wanted: Any, test: Any) -> bool:
    for item in iterable:
        if wanted(item) and not test(item):
            return False
    return True


def next_(iterable: Any, wanted: Any, make: Any, *default: Any) -> Any:
    for item in iterable:
        if wanted(item):
            return make(item)
    if default:
        return default[0]
    raise StopIteration


IsoCalendarDate_ = namedtuple("IsoCalendarDate_", ["year", "week", "weekday"])


def isocalendar_(day: Any) -> Any:
    own = date(day.year, day.month, day.day)
    weekday = own.weekday() + 1
    thursday = own + timedelta(days=4 - weekday)
    week = (thursday - date(thursday.year, 1, 1)).days // 7 + 1
    return IsoCalendarDate_(thursday.year, week, weekday)


def delete_(holder: Any, key: Any) -> None:
    if isinstance(holder, (dict, list)):
        holder.pop(key)
    else:
        holder.__delitem__(key)


def delete_slice_(items: Any, start: Any, stop: Any, step: Any) -> None:
    gone = set(list(range(len(items)))[start:stop:step])
    items[:] = [item for i, item in enumerate(items) if i not in gone]


def print_(*things: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: bool = False) -> None:
    sep, end = " " if sep is None else sep, "\n" if end is None else end
    if file is None:
        print(*things, sep=sep, end=end)
    else:
        file.write(sep.join([str(thing) for thing in things]) + end)


def write_(text: str) -> int:
    print(text, end="")
    return len(text)


def _plain(thing: Any, default: Any, seen: int) -> Any:
    if seen > 100:
        raise ValueError("Circular reference detected")
    if thing is None or isinstance(thing, (str, int, float, bool)):
        return thing
    if isinstance(thing, dict):
        return {
            (k if k is None or isinstance(k, (str, int, float, bool)) else _key(k)): _plain(
                v, default, seen + 1
            )
            for k, v in thing.items()
        }
    if isinstance(thing, (list, tuple)):
        return [_plain(item, default, seen + 1) for item in thing]
    return _plain(default(thing), default, seen + 1)


def _key(key: Any) -> Any:
    raise TypeError(f"keys must be str, int, float, bool or None, not {type(key).__name__}")


def dumps_(thing: Any, *, default: Any = None, cls: Any = None, **options: Any) -> str:
    return json.dumps(thing if default is None else _plain(thing, default, 0), **options)


def failure_(error: Any, name: str) -> Any:
    """Return an attribute of a JSONDecodeError, which carries its text only."""
    head, _, tail = str(error).rpartition(": line ")
    if not head:
        return getattr(error, name)
    numbers = [int(n) for n in re.findall(r"\d+", tail)]
    values = {"msg": head, "lineno": numbers[0], "colno": numbers[1], "pos": numbers[2]}
    return values[name] if name in values else getattr(error, name)


def sub_(pattern: Any, repl: Any, string: str, count: int = 0, flags: int = 0) -> str:
    text: str = subn_(pattern, repl, string, count, flags)[0]
    return text


def subn_(pattern: Any, repl: Any, string: str, count: int = 0, flags: int = 0) -> Any:
    pattern = re.compile(pattern, flags) if isinstance(pattern, str) else pattern
    out: list[str] = []
    last = done = 0
    for found in re.finditer(pattern, string):
        if count and done >= count:
            break
        text = pattern.sub(repl, found.group(0)) if isinstance(repl, str) else repl(found)
        out.append(string[last : found.start()])
        out.append(text)
        last = found.end()
        done += 1
    out.append(string[last:])
    if isinstance(repl, str):
        return re.sub(pattern, repl, string, count), done
    return "".join(out), done


def pattern_sub_(pattern: Any, repl: Any, string: str, count: int = 0) -> Any:
    if isinstance(pattern, re.Pattern) and not isinstance(repl, str):
        return sub_(pattern, repl, string, count)
    return pattern.sub(repl, string, count) if count else pattern.sub(repl, string)


def pattern_subn_(pattern: Any, repl: Any, string: str, count: int = 0) -> Any:
    if isinstance(pattern, re.Pattern):
        return subn_(pattern, repl, string, count)
    return pattern.subn(repl, string, count) if count else pattern.subn(repl, string)


def wraps_(wrapped: Any, *args: Any, **options: Any) -> Any:
    return lambda wrapper: wrapper


def asdict_(thing: Any, *, dict_factory: Any = None) -> Any:
    if isinstance(thing, (list, tuple)):
        items = [asdict_(item, dict_factory=dict_factory) for item in thing]
        return items if isinstance(thing, list) else tuple(items)
    if isinstance(thing, dict):
        return {k: asdict_(v, dict_factory=dict_factory) for k, v in thing.items()}
    if not hasattr(thing, "__dataclass_fields__"):
        return thing
    names = list(thing.__dataclass_fields__)
    pairs = [(name, asdict_(getattr(thing, name), dict_factory=dict_factory)) for name in names]
    return dict(pairs) if dict_factory is None else dict_factory(pairs)


def astuple_(thing: Any) -> Any:
    if isinstance(thing, list):
        return [astuple_(item) for item in thing]
    if isinstance(thing, tuple):
        return tuple([astuple_(item) for item in thing])
    if isinstance(thing, dict):
        return {k: astuple_(v) for k, v in thing.items()}
    if not hasattr(thing, "__dataclass_fields__"):
        return thing
    return tuple([astuple_(getattr(thing, name)) for name in thing.__dataclass_fields__])


_Field = namedtuple("_Field", "name type")


def fields_(thing: Any) -> Any:
    return tuple([_Field(name, f.type) for name, f in thing.__dataclass_fields__.items()])


def replace_(thing: Any, **changes: Any) -> Any:
    values = {name: getattr(thing, name) for name in thing.__dataclass_fields__}
    return type(thing)(**{**values, **changes})


def maketrans_(x: Any, y: Any = None, z: str = "") -> Any:
    if y is None:
        return {(ord(k) if isinstance(k, str) else k): v for k, v in x.items()}
    table: dict[int, Any] = {ord(a): b for a, b in zip(x, y)}
    for gone in z:
        table[ord(gone)] = None
    return table


def translate_(text: Any, table: Any) -> Any:
    if not isinstance(text, str):
        return text.translate(table)
    out = []
    for one in text:
        new = table.get(ord(one), one)
        out.append(chr(new) if isinstance(new, int) else new or "")
    return "".join(out)


async def _caught(awaitable: Any) -> Any:
    try:
        return await awaitable
    except Exception as error:  # noqa: BLE001 - that is what return_exceptions means
        return error


async def gather_(*awaitables: Any, return_exceptions: bool = False) -> Any:
    if not return_exceptions:
        return await asyncio.gather(*awaitables)
    return await asyncio.gather(*[_caught(one) for one in awaitables])


def create_task_(awaitable: Any, *, name: Any = None, context: Any = None) -> Any:
    return awaitable


def ordered_(*args: Any, **values: Any) -> Any:
    return dict(*args, **values)


utc_ = timezone.utc  # noqa: UP017 - the interpreter has no datetime.UTC


def cast_(kind: Any, value: Any) -> Any:
    return value


def new_type_(name: str, kind: Any) -> Any:
    return lambda value: value


def cached_(function: Any) -> Any:
    return functools.lru_cache(maxsize=None)(function)
