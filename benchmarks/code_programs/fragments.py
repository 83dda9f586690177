"""Pieces of programs: each uses one part of the language with random values, prints what comes out, and calls tools on the way.

``$i`` an integer, ``$n`` a number, ``$t`` a text, ``$p`` any value, ``$L`` a list, ``$I`` a list of integers, ``$N`` of numbers,
``$W`` of texts, ``$D`` a dict, ``$S`` a set, ``$b`` a condition, ``$s`` what stands in ``[]``, ``$k`` a key, ``$m`` a result of a
text's method; ``$T`` a call of a tool, ``$B`` one that gives a bool. ``{a/b/c}`` between doubled braces is one of them.
"""

from __future__ import annotations

VALUES = """\
show(lambda: $n)
====
show(lambda: $n)
show(lambda: $n)
====
show(lambda: $t)
====
show(lambda: $m)
show(lambda: $m)
====
show(lambda: $L[$s])
show(lambda: $t[$s])
====
show(lambda: $D)
show(lambda: $S)
====
show(lambda: $p == $p)
show(lambda: $n {{</==/>=/!=}} $n {{</==/>}} $n)
show(lambda: $p < $p)
====
show(lambda: $p + $p)
show(lambda: $p * $i)
show(lambda: $p in $p)
====
show(lambda: {{round/abs/int/float/bool/complex/str/repr/len/sum/sorted/list/tuple/max/min/any/all/ord/chr/bin/hex/oct/dict/bytes/callable/type}}($p){{/ is None}})
====
show(lambda: round($n, $i))
show(lambda: round($n))
show(lambda: round($n, None))
show(lambda: (2.675, round(2.675, 2), round($n * 100) / 100, format($n, '.2f')))
====
show(lambda: divmod($n, $n))
show(lambda: $n // $n)
show(lambda: $n % $n)
show(lambda: pow($n, $n))
====
show(lambda: {{int/float}}({{'12'/' 7 '/'1_0'/'0x1f'/'1e3'/'-0'/'nan'/'٣'/''/'+5'/'1.'/'.5'/'--1'/'infinity'/b'12'}}))
show(lambda: int({{'ff'/'0b11'/'z'/'0o7'/'12'}}, {{16/0/36/2/8/1}}))
====
show(lambda: f'{$n:{{5/>10/.2f/,/e/g/%/08.2f/x/s/+d/_/^9.1f}}}')
show(lambda: f'{$p!r:>{{12/3/20}}}|{$t:{{.2/>8/*^9}}}|{$n=}')
show(lambda: f"{$n:{'{'}$i{'}'}}" )
====
show(lambda: '{} {}'.format($p, $p))
show(lambda: '{0} {1!r:>8} {0!s}'.format($n, $t))
show(lambda: '{a[0]} {a[1]} {b.real}'.format(a=$L, b=$n))
show(lambda: '{:{w}.{p}f}'.format($n, w={{8/3/12}}, p={{0/2/5}}))
show(lambda: '{x}'.format_map($D))
====
show(lambda: '%s %r %a' % ($p, $p, $t))
show(lambda: '%(a)s %(b)5.1f' % {'a': $p, 'b': $n})
show(lambda: '%d %i %x' % ($n, $n, $n))
show(lambda: '%*d|%-*d|%.*f' % (6, $i, 4, $i, 2, $n))
====
show(lambda: (hash(1) == hash(1.0) == hash(True), {1: 'a', 1.0: 'b', True: 'c'}, {$k: 1, $k: 2}))
show(lambda: {$k: $k}[$k])
show(lambda: hash($i) == hash(float($i)))
====
show(lambda: sum($L, $p))
show(lambda: sum($N))
show(lambda: min($N, key=lambda v: -v if v == v else 0))
show(lambda: max($L, default=$p))
show(lambda: min([], default=$p))
show(lambda: sorted($W, key=str.lower, reverse={{True/False}}))
show(lambda: sorted($I, key=lambda v: v % 3))
show(lambda: sorted($L))
====
show(lambda: hasattr($p, '{{append/upper/real/keys/__len__/__iter__/nothing/imag/__call__/isoformat/add/__hash__/count}}'))
show(lambda: getattr($p, '{{count/index/real/upper/nothing/imag/numerator}}', 'none') == 'none')
show(lambda: getattr($t, '{{upper/title/strip/nope}}')())
show(lambda: getattr($p, 'nothing'))
====
show(lambda: isinstance($p, {{(int, float)/str/bool/int | None/dict/type(None)/complex/bytes}}))
show(lambda: type($p) is type($p))
show(lambda: type($n).__name__ + str(type($p)))
show(lambda: issubclass({{bool/int/KeyError/dict}}, {{int/object/LookupError/(str, int)}}))
====
show(lambda: {{ord('a')/ord('é')/chr(97)/chr(0x10ffff)/chr(-1)/ord('ab')/bin(-5)/hex(255)/oct(8)/ascii('é')/bytes(3)/bytes([1, 300])/bytes('é', 'utf-8')/complex('1+2j')/int.from_bytes(b'ab', 'big')/(255).to_bytes(2, 'little')/(5).bit_length()/(1.5).as_integer_ratio()/(2.0).is_integer()/float.fromhex('0x1p3')/(0.1).hex()}})
====
show(lambda: b'a b c'.{{split()/upper()/decode()/hex()/replace(b'a', b'')/find(b'b')/startswith(b'a')/join([b'1', b'2'])/strip(b'c')/count(b' ')/center(9)/title()}})
show(lambda: {{b'abc'[1]/b'abc'[1:]/bytes(b'x') + b'y'/b'a' < b'b'/b'a' == 'a'/list(b'ab')/b'%d' % 3/bytearray(b'ab')[0]/memoryview(b'ab')[0]}})
====
show(lambda: {{'a' 'b'/1_000/0xff/0b11/1e3/1j * 1j/.5/10 ** -2/-2 ** 2/2 ** 3 ** 2/not 1 == 2/1 if 0 else 2/() is ()/[] == ()/1 < 2 < 3 == 3/'a' < 'B'/[1, 2] < [1, 3]/(1,) < (1, 0)/{1} < {1, 2}/None == 0}})
"""

BUILT_IN = """\
xs = $L
show(lambda: xs.{{append($p)/extend($p)/insert($i, $p)/pop()/pop($i)/remove($p)/index($p)/count($p)/reverse()/sort()/copy()/clear()}})
print(xs)
====
xs = $I
show(lambda: xs.sort(key=lambda v: (v % 3, -v), reverse={{True/False}}))
print(xs, xs.count(1), xs[::-1], xs[{{1:3/-2:/::2/:0}}])
====
xs = list(range({{6/9/3}}))
try:
    xs[$s] = {{[9, 8]/()/'ab'/[1, 2, 3]/range(2)/5}}
except Exception as e:
    print(type(e).__name__, e)
print(xs)
====
xs = list(range({{6/9}}))
try:
    del xs[$s]
except Exception as e:
    print(type(e).__name__, e)
print(xs)
====
d = $D
show(lambda: d.{{get($k)/get($k, $p)/pop($k)/pop($k, 0)/setdefault($k, $p)/popitem()/update($D)/update(a=1)/keys()/values()/items()/copy()/clear()/fromkeys('ab', 0)/update([(1, 2)])/update(5)}})
print(d, list(d), len(d), $k in d)
show(lambda: d | {'z': 1})
show(lambda: list(reversed(d.items())))
====
d = $D
try:
    for k in d:
        print(k, d[k])
        d[k * 2 if isinstance(k, int) else 'new'] = 1
except RuntimeError as e:
    print(type(e).__name__, e)
print(len(d))
====
xs = $I
for x in xs:
    if x > 5:
        xs.remove(x)
    elif len(xs) < 9:
        xs.append(x + 4)
print(xs)
====
s = $S
show(lambda: sorted(map(str, s)))
show(lambda: s {{&/|/-/^/<=/<}} {{{1, 2}/{3.0, 'a'}/frozenset([1])/[1]/set()}})
show(lambda: s.{{union([7])/intersection([1, 2])/difference([1])/issubset([1, 2, 3, 17, 'a'])/isdisjoint([1])/copy()/symmetric_difference([1])}})
show(lambda: s.{{add(2)/discard(1)/remove(99)/update([5])/add([])/pop()}})
print(len(s))
====
a = b = $L
a += $L
print(a, b, a is b)
a = a + [1]
print(a is b)
t = (1, [2])
try:
    t[1] += [3]
except TypeError as e:
    print(e, t)
n = m = $n
n {{+/-/*/**/%}}= $i
print(n, m)
====
def collect(x, into=[]):
    into.append(x)
    return into
print(collect($p), collect($p), collect(3, []))
fs = [lambda: i for i in range(3)]
gs = [lambda i=i: i for i in range(3)]
print([f() for f in fs], [g() for g in gs])
====
try:
    {{a, *b = $L/*a, b = $t/(a, b) = $p/a, (b, *c) = 1, $I/[a, b] = $I/a, b = b, a/a, *b, c = $W}}
    print(a, b)
except Exception as e:
    print(type(e).__name__, e)
====
def f(a, b=2, *args, c, d=4, **rest):
    return a, b, args, c, d, rest
show(lambda: f({{1, c=3/1, 2, 3, c=$p/*$L, c=1/1, **{'c': 1, 'z': $p}/c=1/1, 2/1, a=2, c=3/b=1, a=0, c=0/1, 2, *'ab', c=0, e=5}}))
def g(a, /, b, *, c=0):
    return a, b, c
show(lambda: g({{1, 2/1, b=2/a=1, b=2/1, 2, 3/1, 2, c=3/1, 2, d=1}}))
====
print(*$L, sep={{', '/''/None/'-'}}, end={{'!\\n'/'\\n'/None}})
print($p, $p, $n)
print()
====
if (n := len($L)) > 1:
    print('long', n)
print([y := 1, y ** 2], y)
print([last := x for x in [0, *$I]], last)
====
show(lambda: list(zip($I, $t)))
show(lambda: list(zip([1, 2], {{[3, 4]/[3]/'abc'}}, strict=True)))
show(lambda: dict(zip($t, $I)))
show(lambda: list(enumerate($t, $i)))
show(lambda: list(map(lambda a, b: (a, b), $L, $t)))
show(lambda: list(filter(None, $L)))
show(lambda: list(reversed($L)))
show(lambda: [*range({{5/0/2}}, {{9/-3}}, {{1/-2/3}})])
show(lambda: range(10)[$s])
show(lambda: list(iter(iter($I).__next__, 5)))
====
it = iter($I)
show(lambda: next(it))
show(lambda: next(it, 'end'))
print(list(it), next(it, 'end'))
show(lambda: next(it))
show(lambda: next((x for x in $I if x > {{0/5/99}}), None))
show(lambda: next(x for x in $I if x > 50))
====
m = map(lambda x: print('map', x) or x, $I)
z = zip(m, [1, 2])
print(list(z), list(m))
e = enumerate(x for x in $I)
print(next(e, None), list(e))
print(type(m).__name__, type(z).__name__, type(e).__name__, iter(m) is m)
====
def late(x):
    print('late', x)
    return x
g = (late(x) for x in $I)
print('made')
for x in g:
    print('got', x)
    if x > {{0/3}}:
        break
print(any(late(x) > 3 for x in $I), all(late(x) < 9 for x in $I), sum(late(x) for x in $I[:2]))
print(list(g))
====
matrix = [[1, 2], [3, 4], [5, 6]]
print([[row[i] for row in matrix] for i in range(2)], {(a, b) for a in 'ab' for b in (1,)}.__len__(), {k: v for k, v in enumerate($t)})
x = 'outer'
print([x for x in $I], x, {x: y for x in (1, 2) for y in (x, 3) if x != y})
"""

LANGUAGE = """\
def f(n):
    try:
        if n == 0:
            return 'try'
        if n == 1:
            raise ValueError('one')
        print(1 / (n - 2))
    except ValueError as e:
        print('except', e)
        return 'except'
    else:
        print('else')
    finally:
        print('finally', n)
        {{pass/if n == 1: return 'finally'/n += 1}}
    return n
for n in (0, 1, 2, 3):
    show(lambda: f(n))
====
for i in range({{5/3/0}}):
    try:
        if i == 1:
            continue
        if i == {{3/9}}:
            break
        print('body', i)
    finally:
        print('end', i)
else:
    print('no break')
i = 0
while i < 3:
    i += 1
    if i == {{2/7}}:
        break
else:
    print('while else', i)
====
try:
    try:
        {{1 % 0/int('x')/{}['k']/[][1]/None.x/'a' + 1/undefined/assert_(0)/raise KeyError('a')/raise ValueError/raise OSError(2, 'gone')/raise Exception('a', 1)/next(iter([]))}}
    except (ValueError, LookupError) as e:
        raise {{RuntimeError('again') from e/RuntimeError('again')/RuntimeError('n') from None/}}
except Exception as e:
    print(type(e).__name__, str(e), repr(e), e.args, type(e.__cause__).__name__, type(e.__context__).__name__, e.__suppress_context__)
====
class Own(ValueError):
    def __init__(self, text, code={{1/None}}):
        super().__init__(text)
        self.code = code
    {{def __str__(self): return f'own {self.code}'/pass}}
try:
    raise Own('bad', $p)
except ValueError as e:
    print(isinstance(e, Own), e, repr(e), e.args, e.code)
try:
    assert $b, 'it is not so'
    print('so')
except AssertionError as e:
    print(repr(e))
====
try:
    raise ExceptionGroup('many', [ValueError(1), TypeError('t'), {{KeyError('k')/ExceptionGroup('in', [ValueError(2)])}}])
except* ValueError as group:
    print('values', group.exceptions, group)
except* (TypeError, KeyError) as group:
    print('others', repr(group))
====
def gen(n):
    print('start')
    got = yield 1
    print('got', got)
    try:
        for i in range(n):
            got = yield i * got if got else i
    finally:
        print('closed')
    return 'done'
g = gen({{0/2/3}})
show(lambda: next(g))
show(lambda: g.send($i))
show(lambda: next(g))
show(lambda: g.{{close()/throw(ValueError('in'))/send(2)}})
show(lambda: next(g))
def outer():
    result = yield from gen(2)
    yield result
print(list(outer()))
====
def counter(start={{0/5}}):
    count = start
    def add(by=1):
        nonlocal count
        count += by
        return count
    def read():
        return count
    return add, read
add, read = counter()
print(add(), add($i), read())
total = 0
def change():
    global total
    total += {{1/2}}
    return total
print(change(), change(), total)
def unbound():
    print(hidden)
    hidden = 1
show(unbound)
====
import functools
def logged(label):
    def decorate(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            print(label, f.__name__, args, kwargs)
            return f(*args, **kwargs)
        return inner
    return decorate
@logged('a')
@logged({{'b'/1}})
def double(x, times=2):
    'Doubles.'
    return x * times
show(lambda: double($p, times={{2/0/'x'}}))
print(double.__name__, double.__doc__)
====
class Point:
    count = 0
    def __init__(self, x, y):
        self.x, self.y = x, y
        Point.count += 1
    def __repr__(self): return f'Point({self.x!r}, {self.y!r})'
    def __eq__(self, other): return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)
    def __hash__(self): return hash((self.x, self.y))
    def __lt__(self, other): return self.x < other.x
    def __add__(self, other): return Point(self.x + other.x, self.y + other.y)
    def __bool__(self): return bool(self.x)
    def __len__(self): return {{2/0}}
    def __getitem__(self, i): return (self.x, self.y)[i]
    def __iter__(self): return iter((self.x, self.y))
    def __contains__(self, v): return v in (self.x, self.y)
    def __call__(self, *a): return a
    def __format__(self, spec): return f'<{spec}>'
    def __neg__(self): return Point(-self.x, self.y)
    @property
    def norm(self): return self.x * self.x
    @norm.setter
    def norm(self, v): self.x = v
    @classmethod
    def origin(cls): return cls(0, 0)
    @staticmethod
    def twice(v): return v * 2
p, q = Point($i, 2), Point($i, $n)
show(lambda: (p == q, p + q, bool(p), len(p), p[{{0/1/2}}], list(p), 2 in p, p(1, 2), f'{p:abc}', -p))
show(lambda: (sorted([p, q]), p < q, p > q, {p: 1}, p.norm, Point.origin(), Point.twice('a'), Point.count, p != q))
p.norm = 9
print(p, min(p, q), [*p], hasattr(p, 'z'), getattr(p, 'z', None), vars(q))
show(lambda: p <= q)
show(lambda: p.zz)
del p.x
show(lambda: p.x)
====
class Base:
    kind = 'base'
    def __init__(self, **kw): self.kw = kw
    def hello(self): return f'{self.kind} {self.name()}'
    def name(self): return type(self).__name__
    def __getattr__(self, name): return f'no {name}'
class Mixin:
    def name(self): return 'mixed ' + super().name()
class Child({{Mixin, Base/Base, Mixin/Base}}):
    {{kind = 'child'/pass}}
    def __init__(self, a, **kw):
        super().__init__(**kw)
        self.a = a
c = Child($p, z=$i)
print(c.hello(), c.a, c.kw, c.missing, isinstance(c, Mixin), issubclass(Child, Base), str(Child), Child.__name__)
====
from dataclasses import dataclass, field, asdict, replace, astuple, fields
@dataclass({{order=True/frozen=True//eq=False, order=False/kw_only=True}})
class Item:
    name: str
    price: float = {{1.5/2}}
    tags: list = field(default_factory=list)
    def total(self, n=2): return round(self.price * n, 2)
show(lambda: Item(name='a'))
show(lambda: (Item(name='a') == Item(name='a'), asdict(Item(name=$t, price=$n)), Item(name='x').total()))
show(lambda: Item(name='a') < Item(name='b'))
show(lambda: setattr(Item(name='a'), 'name', 1))
show(lambda: (replace(Item(name='q'), price=$n), astuple(Item(name='t')), [f.name for f in fields(Item)]))
show(lambda: Item('a', $n))
show(lambda: Item())
====
from enum import Enum, IntEnum, auto
class Color(Enum):
    RED = {{1/auto()/'r'}}
    BLUE = 2
class Level(IntEnum):
    LOW = 1
    HIGH = 5
print(Color.RED, Color['BLUE'], Color(2), list(Color), Color.RED.name, Color.RED.value, Color.RED == Color.BLUE, Level.LOW < Level.HIGH, Level.HIGH + 1, repr(Level.LOW), f'{Level.LOW} {Color.RED}')
show(lambda: Color({{3/2/'x'}}))
====
from typing import NamedTuple, Optional, TypedDict
from collections import namedtuple
class P(NamedTuple):
    x: int
    y: int = 0
Q = namedtuple('Q', 'a b', defaults=[{{1/None}}])
show(lambda: (P(1), P(1, 2) == (1, 2), P(3)._replace(y=$i), P(1)._asdict(), Q(5), Q(1, 2).b, Q._fields, P(2) < P(3)))
show(lambda: P())
class Row(TypedDict, total=False):
    a: int
print(Row(a=1), Optional[int])
====
class Closing:
    def __init__(self, name, swallow): self.name, self.swallow = name, swallow
    def __enter__(self):
        print('enter', self.name)
        return self
    def __exit__(self, kind, error, trace):
        print('exit', self.name, kind and kind.__name__, error)
        return self.swallow
def use(n):
    with Closing('a', {{True/False}}) as a, Closing('b', {{True/False}}):
        if n == 1:
            raise ValueError('in')
        if n == 2:
            return a.name
        print('body', n)
    return 'after'
for n in range(3):
    show(lambda: use(n))
import contextlib
@contextlib.contextmanager
def managed(x):
    print('in', x)
    try:
        yield x * 2
    except ValueError as e:
        print('caught', e)
    finally:
        print('out')
with managed($i) as v:
    print(v)
    {{raise ValueError('v')/pass}}
with contextlib.suppress(KeyError, ZeroDivisionError):
    print({{1 % 0/{}['a']/3}})
====
def what(v):
    match v:
        case 0 | -1: return 'small'
        case bool(): return 'bool'
        case int(n) if n > 5: return f'big {n}'
        case float() | int(): return 'number'
        case '': return 'empty'
        case str() as s: return s.upper()
        case []: return 'none'
        case [x]: return ('one', x)
        case [x, *rest, 'a']: return ('a at end', x, rest)
        case [x, y, *rest]: return (x, y, rest)
        case {'name': str(name), **more}: return (name, more)
        case {1: value}: return ('at 1', value)
        case None: return 'None'
        case _: return type(v).__name__
for v in ($p, $p, $D, $L, $n, $t, {'name': 'n', 'z': 1}):
    show(lambda: what(v))
====
class Vec:
    __match_args__ = ('x', 'y')
    def __init__(self, x, y): self.x, self.y = x, y
for v in (Vec(0, $i), Vec($i, 0), Vec($n, $n), 5):
    match v:
        case Vec(0, y): print('on y', y)
        case Vec(x, y=0): print('on x', x)
        case Vec(x=x) if x == x: print('somewhere', x)
        case _: print('else')
====
class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n <= 0: raise StopIteration
        self.n -= 1
        print('next', self.n)
        return self.n
print(list(Countdown(2)), sum(Countdown(3)), 1 in Countdown(3), max(Countdown({{0/2}}), default='d'))
a, *rest = Countdown(3)
print(a, rest, list(zip(Countdown(2), 'abc')))
"""

MODULES = """\
import itertools as it
show(lambda: list(it.{{chain([1], 'ab')/islice(it.count(3, 2), 4)/accumulate($I)/accumulate($I, max, initial=2)/combinations('abc', 2)/permutations([1, 2, 3], 2)/product('ab', repeat=2)/zip_longest([1], 'ab', fillvalue=0)/takewhile(lambda v: v < 5, $I)/dropwhile(lambda v: v < 5, $I)/starmap(pow, [(2, 3), (3, 2)])/compress('abc', [1, 0, 1])/pairwise($I)/filterfalse(None, $L)/repeat(1, 3)/islice(it.cycle('ab'), 5)/tee([1, 2])[1]/combinations_with_replacement([1, 2], 2)/chain.from_iterable([[1], (2,)])}}))
show(lambda: [(k, list(g)) for k, g in it.groupby($W, len)])
====
import functools
show(lambda: functools.reduce(lambda a, b: (a, b), $L))
show(lambda: functools.reduce(lambda a, b: a + b, $I, {{0/100/'x'}}))
@functools.{{lru_cache(maxsize=2)/cache}}
def fib(n):
    print('fib', n)
    return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib({{3/5}}), fib(2), fib.cache_info())
show(lambda: functools.partial(pow, 2)({{3/-1}}))
@functools.singledispatch
def kind(x): return 'any'
@kind.register
def _(x: int): return 'int'
print(kind($n), kind('s'), sorted($I, key=functools.cmp_to_key(lambda a, b: b - a)))
@functools.total_ordering
class Ver:
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o.v
    def __lt__(self, o): return self.v < o.v
print(Ver(1) >= Ver($i), Ver(2) > Ver(1))
====
from collections import Counter, defaultdict, deque, OrderedDict, ChainMap
c = Counter({{$t/$I/a=2, b=-1}})
show(lambda: (c.most_common(2), c['zz'], c + Counter('ab'), c - Counter('a'), sum(c.values()), c.total()))
d = defaultdict({{list/int/lambda: 5}})
show(lambda: (d['a'], d.get('b'), dict(d), len(d)))
show(lambda: d['a'] + 1)
q = deque($I, maxlen={{3/None}})
q.appendleft(1)
q.append(2)
q.rotate({{1/-1}})
show(lambda: (q, q.popleft(), q.pop(), list(q), q.maxlen, len(q)))
show(lambda: q[5])
o = OrderedDict(a=1, b=2)
o.move_to_end('a')
print(o, list(ChainMap({'a': 1}, {'b': 2, 'a': 3}).items()))
====
import math
show(lambda: math.{{sqrt($n)/floor($n)/ceil($n)/trunc($n)/gcd(12, $i)/lcm(4, 6)/factorial(abs($i))/log($n)/log2(8)/log(8, 2)/log10($n)/exp($n)/pow($n, 2)/hypot(3, 4)/fsum($N)/prod($I)/comb(5, 2)/perm(5, 2)/isclose(0.1 + 0.2, 0.3)/isnan($n)/isinf($n)/copysign(1, $n)/fmod($n, 3)/modf($n)/frexp($n)/degrees($n)/sin($n)/dist((0, 0), (3, 4))/isqrt(17)/remainder($n, 3)/nextafter(1, 2)/ulp(1.0)/atan2(0.0, $n)/tau/inf}})
====
import json
show(lambda: json.dumps($p{{/, indent=2/, sort_keys=True/, ensure_ascii=False/, separators=(',', ':')/, default=str/, allow_nan=False/, indent='-'}}))
show(lambda: json.loads({{'{"a": [1, 2.0, null, true]}'/'[1,'/'nul'/'""'/'1e5'/'NaN'/'{"a": 1, "a": 2}'/'"\\\\u00e9"'/'{1: 2}'/' 7 '/''/'[1] x'/b'[1]'}}))
show(lambda: json.loads(json.dumps($D)))
try:
    json.loads('{"a": }')
except json.JSONDecodeError as e:
    print(e, e.msg, e.pos, e.lineno, e.colno)
====
import re
text = {{'a1b22 c333'/'Hello, World'/'x=1; y=2'/$t/'2024-01-31'}}
show(lambda: re.{{findall(r'\\\\d+', text)/findall(r'(\\\\w)(\\\\d)', text)/sub(r'\\\\d', 'N', text)/sub(r'(\\\\w)(\\\\d)', r'\\\\2\\\\1', text, count=1)/sub(r'\\\\w+', lambda m: m.group(0)[::-1], text)/split(r'[,; ]+', text)/split(r'(\\\\W)', text, 1)/subn('l', 'L', text)/match(r'\\\\w+', text)/search(r'(?P<k>\\\\w)=(?P<v>\\\\d)', text)/fullmatch('.*', text)/escape(text)/findall(r'(?i)h', text)/findall(r'\\\\b\\\\w', text)/findall(r'(?<=a)\\\\d|(?!x)=', text)/sub('', '-', text)/findall(r'(a)?b', text)/compile(r'(\\\\d)(x)?').search(text)/search('(', text)/findall(r'^\\\\w', text, re.M)/sub(r'x*', '-', 'abxd')}})
m = re.search(r'(?P<first>\\w+)\\W*(?P<second>\\w*)', text)
show(lambda: (m.group(), m.groups(), m.groupdict(), m.span(), m.start('first'), m['second'], m.lastindex, m.re.pattern))
show(lambda: [(x.start(), x.group()) for x in re.finditer('[a-z]', text)])
====
from datetime import date, datetime, timedelta, timezone, time
d = date({{2024, 2, 29/2023, 12, 31/2021, 1, 3}})
t = datetime(2024, 1, 31, {{13, 5, 9/0/23, 59, 59, 999999}})
show(lambda: (d.isoformat(), d.weekday(), d.isocalendar(), d + timedelta(days=$i), d.strftime('%d.%m.%y %a %b %j %U %%'), d - date(2024, 1, 1), d.replace(year=2023)))
show(lambda: (t, repr(t), str(t - timedelta(hours=$n)), t.date(), t.time(), t.timestamp() if t.tzinfo else None, t.strftime('%H:%M:%S.%f %p %I %Z')))
show(lambda: timedelta($n, hours=$i) {{* 2/% timedelta(hours=5)/+ t/< timedelta(0)}})
show(lambda: datetime.{{fromisoformat('2024-05-06T07:08:09+02:00')/strptime('06/05/2024 7PM', '%d/%m/%Y %I%p')/strptime('x', '%Y')/fromisoformat('2024-13-01')/fromtimestamp(0, timezone.utc)/combine(d, time(1, 2))/fromisocalendar(2024, 5, 1)/strptime('2024-01-02 03:04:05.678', '%Y-%m-%d %H:%M:%S.%f')/max}})
show(lambda: (datetime(2024, 1, 1, tzinfo=timezone.utc).astimezone(timezone(timedelta(hours={{5.5/-3/0}}))), t < d))
show(lambda: str(timedelta(seconds=$n)))
====
import statistics
show(lambda: statistics.{{mean($N)/median($I)/median_low([1, 2, 3, 4])/mode($I)/stdev($N)/pstdev($I)/variance($I)/fmean($N)/quantiles([1, 2, 3, 4, 5], n=4)/multimode($t)/harmonic_mean([1, 2])/geometric_mean([1, 2, 4])/correlation([1, 2, 3], [2, 4, 7])}})
====
from decimal import Decimal, ROUND_HALF_UP, getcontext
from fractions import Fraction
show(lambda: Decimal({{'1.10'/'2.675'/'-0'/'1e5'/0.1/'NaN'/'x'}}) {{+ 1/* Decimal('3')/% 3/** 2/== 1/< 2}})
show(lambda: (Decimal('2.675').quantize(Decimal('0.01'), rounding=ROUND_HALF_UP), round(Decimal('2.5')), f"{Decimal('1234.5'):,.2f}", repr(Decimal('1.0') / 3)))
show(lambda: Fraction({{1, 3/'0.25'/0.5/-6, 4}}) {{+ 1/* 2/** -1/== 0.5/- Fraction(1, 7)}})
show(lambda: round(Fraction(7, 2)))
====
import heapq, bisect, operator, copy, string, textwrap
h = $I
heapq.heapify(h)
heapq.heappush(h, 4)
show(lambda: (h, heapq.heappop(h), heapq.nlargest(2, h), heapq.nsmallest(2, $I, key=lambda v: -v), list(heapq.merge([1, 4], [2]))))
show(lambda: (bisect.bisect([1, 3, 3, 5], 3), bisect.bisect_left([1, 3, 3, 5], 3), bisect.insort(h, 2)))
show(lambda: (operator.itemgetter(1, 0)($t), operator.attrgetter('real')($n), operator.methodcaller('count', 'a')($t), operator.mul($n, $i)))
x = [[1], {'a': [2]}]
y, z = copy.copy(x), copy.deepcopy(x)
x[0].append(5)
print(y, z)
show(lambda: (textwrap.fill('the quick brown fox jumps', {{10/7}}), textwrap.dedent('  a\\n    b'), textwrap.shorten('hello big world', 11), string.ascii_lowercase[:3], string.Template('$$x and $${y}').safe_substitute(x=1), string.capwords('a b')))
====
import hashlib, base64, random, uuid, csv, io, html, urllib.parse, unicodedata, struct, pprint
show(lambda: (hashlib.{{sha256/md5/sha1}}($t.encode()).hexdigest(), base64.b64encode($t.encode()), base64.b64decode('YQ=='), html.escape('<a&"b">')))
random.seed({{1/'a'/2.5}})
print(random.random(), random.randint(1, 9), random.choice('abc'), random.sample(range(9), 3), random.shuffle([1]), random.gauss(0, 1), random.uniform(1, 2))
show(lambda: (list(csv.reader(['a,"b,c"', '1, 2'])), list(csv.DictReader(io.StringIO('x,y\\n1,2\\n')))))
out = io.StringIO()
w = csv.writer(out)
w.writerow([1, 'a,b', None, 2.5, $t.replace('\\r', '')])
print(repr(out.getvalue()))
show(lambda: (urllib.parse.quote('a b/ü?'), urllib.parse.urlencode({'q': 'x y', 'n': 1}), urllib.parse.urlparse('https://u@h.de:80/p?q=1#f'), urllib.parse.parse_qs('a=1&a=2'), urllib.parse.urljoin('http://a/b/', '../c')))
show(lambda: (unicodedata.normalize('NFKC', $t), unicodedata.name('é'), struct.pack('>hI', 1, 2), struct.unpack('<2b', b'ab')))
pprint.pprint({'b': [1] * 30, 'a': $p, 'c': {'x': 'y' * 50}})
show(lambda: uuid.UUID(int=$i * $i))
"""

TOOLS = """\
for x in map({{lookup/rows/check}}, $I):
    print('got', x)
    {{break/pass/if x: break}}
====
for n in filter(check, $I):
    print('odd', n)
    {{break/pass}}
====
print(next((r['name'] for r in map(lookup, range(5)) if r['id'] >= {{0/2/9}}), None))
print(next((n for n in rows({{0/3}})), None), next(iter(rows(4)), 'none'))
====
show(lambda: any(check(n) for n in $I))
show(lambda: all(check(n) for n in $I))
show(lambda: [n for n in $I if check(n)])
show(lambda: {n: lookup(n)['name'] for n in $I})
show(lambda: sum(lookup(n)['price'] for n in $I))
====
show(lambda: sorted($I, key=lambda n: lookup(n)['name'], reverse={{True/False}}))
show(lambda: max($I, key=lambda n: len(lookup(n)['tags'])))
show(lambda: min(rows(4), key=check))
xs = $I
show(lambda: xs.sort(key=check))
print(xs)
====
g = (lookup(n) for n in $I)
print('nothing called yet')
show(lambda: next(g)['name'])
print('one called')
show(lambda: [r['id'] for r in g])
====
show(lambda: {{True/False/check(1)/check(2)/0}} and lookup(1))
show(lambda: {{0/check(2)/rows(0)}} or lookup(2)['name'])
print(lookup(1)['name'] if check($i) else rows(2))
show(lambda: f"{lookup($i)['price']:.2f} {check(3)!r} {echo($i)=}")
====
def f(x, d=lookup(2)['name']):
    print('f', x, d)
    return check(x)
show(lambda: f($i))
show(lambda: [f(x) for x in rows(3)])
====
try:
    r = lookup({{-1/-5/3}})
except KeyError as e:
    print('missing', e, e.args, repr(e), check(1))
else:
    print(r['tags'])
finally:
    print('finally', rows(2))
====
for n in (12, 13, 14):
    try:
        print(n, check(n))
    except ValueError as e:
        print(type(e).__name__, e)
        {{continue/break/raise RuntimeError('on') from e}}
    finally:
        print('done', n)
====
def pages(n):
    for i in range(n):
        print('page', i)
        yield from rows(i)
for x in pages(4):
    print(x)
    if x > {{0/1/9}}:
        break
print(list(zip(pages(3), 'ab')))
====
class Cart:
    def __init__(self, n): self.n = n
    @property
    def price(self): return lookup(self.n)['price']
    def __repr__(self): return f"Cart({lookup(self.n)['name']})"
    def __eq__(self, other): return check(self.n) == check(other.n)
    def __lt__(self, other): return lookup(self.n)['price'] < lookup(other.n)['price']
    def __bool__(self): return check(self.n)
    def __len__(self): return 1
    def __iter__(self): return iter(rows(self.n))
    def __enter__(self): return lookup(self.n)
    def __exit__(self, *a): print('exit', check(self.n))
    def __call__(self): return echo(self.n)
    def __getitem__(self, i): return rows(3)[i]
    def __contains__(self, v): return check(v)
a, b = Cart({{1/2}}), Cart({{2/3}})
show(lambda: (a == b, a < b, bool(a), list(a), f'{a.price:.1f}', a(), a[{{0/9}}], 4 in b, [a, b]))
show(lambda: sorted([b, a]))
with a as row:
    print(row['name'])
print(a if a else b)
====
import functools, itertools
print(functools.reduce(lambda t, n: t + lookup(n)['id'], $I[:3] + [1], 0) if min($I + [0]) >= 0 else 'negative')
show(lambda: list(itertools.takewhile(check, $I)))
show(lambda: list(itertools.islice(map(lookup, itertools.count()), 2)))
show(lambda: [(k, list(g)) for k, g in itertools.groupby([1, 3, 2], key=check)])
show(lambda: list(itertools.accumulate([1, 2], lambda a, b: a + lookup(b)['id'])))
get = functools.partial(lookup, {{1/-1}})
show(lambda: get()['name'])
from collections import defaultdict
d = defaultdict(lambda: rows(2))
print(d['a'], d['a'], dict(d))
====
import re, json
print(re.sub(r'\\d', lambda m: lookup(int(m.group()))['name'], 'a1b2'))
print(json.dumps([lookup(1)], default=lambda o: check(1), sort_keys=True), json.loads(json.dumps(lookup(2)))['name'])
a, *b = map(check, (1, 2, 4))
print(a, b, *map(check, [5]), {**lookup(1), 'id': 0}['id'], [*rows(2)])
rows(2)[0] if (n := check(3)) else None
print(n, (lambda x=rows(1): x)(), (lambda *a: a)(*rows(2)))
====
@lambda f: (print('decorated', check(1)), f)[1]
def f(n: {{int/rows(1)}} = 1) -> None:
    assert check(n), lookup(n)['name']
show(lambda: f($i))
x = {rows(2)[0]: check(1), 'b': [lookup(2)['id']]}
x['b'][rows(1)[0]:] = rows(2)
x[lookup(3)['name']] = 1
del x[lookup(3)['name']]
print(x, check(1) < check(2) < check(3), -lookup(1)['id'], not check(2))
while check(len(x)):
    x[len(x)] = lookup(len(x))['name']
print(x)
match lookup($i % 5):
    case {'id': 0}: print('zero', check(0))
    case {'tags': [first, *_]} if check(1): print(first)
    case {'name': name}: print(name)
====
show(lambda: lookup({{-1/0/5}}))
====
f = [lookup, rows][{{0/1}}]
g = {'a': check}.get('a')
show(lambda: (f(1), g(2), lookup.__name__, callable(rows), list(map(lambda t: t(1), (rows, check)))))
def retry(tool, n):
    for i in range(3):
        try:
            return tool(n + i)
        except Exception as e:
            print('again', type(e).__name__, e)
    return None
show(lambda: retry({{check/lookup}}, {{-2/13/12}}))
show(lambda: echo($I))
show(lambda: echo({'a': [1, {{2.5/-0.0/1e300}}], 'b': None}))
show(lambda: echo({{(1, 2)/{'a': (1,)}/[True, 1.0, 1]/'é'/0.1/10 ** 20/-0.0/None}}))
"""

AWAITED = """\
import asyncio
async def one(n):
    await asyncio.sleep(0)
    {{if n == 2: raise ValueError('two')/pass}}
    return n * 2
async def ticks():
    for i in range(3):
        yield i
async def main():
    results = await asyncio.gather(*(one(i) for i in range(4)), return_exceptions={{True/False}})
    print(results)
    print([x async for x in ticks()], {x: await one(x) async for x in ticks() if x < 2})
    try:
        await asyncio.wait_for(asyncio.sleep(9), {{0/0.001}})
    except asyncio.TimeoutError as e:
        print('late', repr(e))
    return 'end'
show(lambda: asyncio.run(main()))
====
import asyncio
async def work(n):
    print('begin', n)
    row = await lookup(n)
    print('row', row['name'])
    return row['id'], await check(n)
async def main():
    print(await work({{1/2}}))
    print(await asyncio.gather(*(work(n) for n in (1, 3))))
    tasks = [asyncio.create_task(lookup(n)) for n in range(3)]
    print([(await t)['name'] for t in tasks])
    found = await asyncio.gather(check(13), check(1), lookup({{-1/1}}), return_exceptions=True)
    print(found)
    return sum([n async for n in stream(3)])
async def stream(n):
    for i in range(n):
        yield (await lookup(i))['id']
show(lambda: asyncio.run(main()))
====
import asyncio
row = await lookup({{1/2/-1}})
print(row['name'], await rows(2))
async def guarded(n, room=asyncio.Semaphore(2)):
    async with room:
        try:
            return await check(n)
        except ValueError as e:
            return str(e)
        finally:
            print('done', n)
print(await asyncio.gather(*[guarded(n) for n in (12, 13, 14)]))
print([await check(n) for n in $I], (await lookup(1))['price'] if await check({{1/2}}) else 'even')
====
import asyncio
class Source:
    def __init__(self, n): self.n = n
    def __aiter__(self): return self
    async def __anext__(self):
        if self.n == 0: raise StopAsyncIteration
        self.n -= 1
        return (await lookup(self.n))['name']
    async def __aenter__(self):
        print('open', await check(1))
        return self
    async def __aexit__(self, kind, error, trace):
        print('close', kind and kind.__name__)
        return {{True/False}}
async def main():
    async with Source({{0/2/3}}) as s:
        async for name in s:
            print(name)
        {{raise ValueError('in')/return 'early'/pass}}
    queue = asyncio.Queue()
    async def put():
        for i in range(3):
            await queue.put(await lookup(i))
        await queue.put(None)
    asyncio.create_task(put())
    while (item := await queue.get()) is not None:
        print('item', item['id'])
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(0.001, event.set)
    print(await asyncio.wait_for(event.wait(), 5))
    task = asyncio.create_task(asyncio.sleep(9))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print('cancelled', task.cancelled())
    return 'end'
show(lambda: asyncio.run(main()))
"""
