"""Programs of the kind models write, compared with CPython; and those that are refused before a tool has run."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import json
from typing import Any

import pytest

from tests.toolloop.code_mode.support import fixture_module, run_case

PROGRAMS = {
    "max_key_get": """\
d={'a':3,'b':5,'c':1}
print(max(d,key=d.get), min(d,key=d.get), sorted(d,key=d.get,reverse=True))
""",
    "json_err": """\
import json
try:
    json.loads('{"a": }')
except json.JSONDecodeError as e:
    print('bad json at', e.pos, e.msg, e.lineno, e.colno)
""",
    "stats": """\
import statistics
ps=[p['price'] for p in search_products('', limit=10)]
print(statistics.mean(ps), statistics.median(ps), round(statistics.stdev(ps),4), statistics.pstdev([1,2,3,4]), statistics.mean([1,2,3]), statistics.mode([1,1,2]), statistics.quantiles(ps, n=4), statistics.fmean(ps), statistics.variance([1.5,2.5,4.0]))
""",
    "stats_from": """\
from statistics import mean, median, stdev, pvariance
print(mean([1,2]), median([3,1,2]), stdev([2,4,4,4,5,5,7,9]), pvariance([0.1,0.2,0.3]))
""",
    "textwrap": """\
import textwrap
t=read_file('notes.md')
print(textwrap.shorten(t, width=30))
print(textwrap.fill('The quick brown fox jumps over the lazy dog and runs away', width=20))
print(textwrap.dedent('''
    a
      b
    c'''))
print(textwrap.indent('a\\nb','> '))
print(textwrap.wrap('a well-known long-winded hyphenated text', 12))
""",
    "urllib": """\
from urllib.parse import quote, urlencode, urlparse, parse_qs, urljoin, unquote
print(quote('a b/ü?'), urlencode({'q':'a b','n':1}), parse_qs('a=1&b=2&a=3'))
u=urlparse('https://user:pw@Example.com:8080/p/a;x?q=1#f')
print(u.scheme, u.netloc, u.path, u.query, u.fragment, u.hostname, u.port, u)
print(urljoin('https://a.b/c/d','../e?x=1'), unquote('a%20b%C3%BC'))
""",
    "urllib2": """\
import urllib.parse
print(urllib.parse.quote_plus('a b&c'), urllib.parse.urlsplit('http://x.y/z').netloc, urllib.parse.urlencode([('a',[1,2])], doseq=True))
""",
    "asdict": """\
from dataclasses import dataclass, field, asdict, astuple, replace
@dataclass
class In:
    a: int
@dataclass
class Out:
    x: In
    ys: list = field(default_factory=list)
o=Out(In(1),[In(2)])
print(asdict(o), astuple(In(3)), replace(o, ys=[]))
""",
    "callable": """\
print(callable(len), callable(3), callable(lambda: 1), callable(get_user), [callable(x) for x in (str, 'a', print)])
""",
    "gather_exc": """\
import asyncio
async def main():
    rs = await asyncio.gather(get_user(1), get_user(99), return_exceptions=True)
    print([type(r).__name__ if isinstance(r, Exception) else r['name'] for r in rs])
asyncio.run(main())
""",
    "del_many": """\
xs=list(range(10))
del xs[0], xs[-1]
del xs[1:3]
d={'a':{'b':1,'c':2}}
del d['a']['b']
del xs[::2]
print(xs,d)
y=3
del y
try:
    del d['zz']
except KeyError as e:
    print('KeyError', e)
""",
    "strmethods": """\
words=['b','A','c']
print(sorted(words,key=str.lower), list(map(str.upper,words)), list(map(str.strip,[' a ','b '])), [*filter(str.isalpha, ['a','1'])])
""",
    "bound_append": """\
out=[]
add=out.append
for i in range(3): add(i)
get={'a':1}.get
print(out, get('a'), get('z', 9))
""",
    "re_sub": """\
import re
print(re.sub(r'(\\w+)@(\\w+)', lambda m: m.group(2)+'/'+m.group(1), 'a@b c@d'))
pat=re.compile('[aeiou]')
print(pat.sub(lambda m: m.group().upper(), 'banana', count=2), pat.sub('*','banana'))
def f(m): return str(int(m[0])+1)
print(re.sub(r'\\d+', f, 'a1 b22'), re.subn('a','b','banana'))
""",
    "heap": """\
import heapq
h=[]
for p in search_products('',limit=10): heapq.heappush(h,(p['price'],p['name']))
print(heapq.heappop(h), heapq.nsmallest(2,h), len(h))
xs=[5,2,8,1]
heapq.heapify(xs)
print(xs, heapq.heappushpop(xs, 0), heapq.heapreplace(xs, 9), list(heapq.merge([1,4],[2,3])))
""",
    "operator": """\
from operator import itemgetter, attrgetter, add, mul
from functools import reduce
ps=search_products('',limit=10)
print([p['name'] for p in sorted(ps,key=itemgetter('category','price'))], reduce(add,[1,2,3]), reduce(mul,[1,2,3,4],1))
""",
    "io_write": """\
import io, csv
buf=io.StringIO()
w=csv.writer(buf)
w.writerow(['a','b'])
w.writerows([[1,2],[3,'x,y']])
print(repr(buf.getvalue()))
print('hello', 1, file=buf)
print(buf.getvalue().splitlines()[-1])
with io.StringIO('l1\\nl2\\n') as f:
    for line in f: print(line.strip())
""",
    "dictwriter": """\
import csv
from io import StringIO
b=StringIO()
w=csv.DictWriter(b, fieldnames=['name','price'], extrasaction='ignore')
w.writeheader()
for p in search_products('rain'): w.writerow(p)
print(b.getvalue())
""",
    "tool_in_key": """\
print(sorted([3,1,2], key=lambda i: get_user(i)['name'], reverse=True), max([1,2,3], key=lambda i: len(list_orders(i))), list(map(get_user,[1]))[0]['name'])
""",
    "map_tool": """\
names=[u['name'] for u in map(get_user,[1,2,3])]
vip=list(filter(lambda i: 'vip' in get_user(i)['tags'], [1,2,3]))
print(names, vip)
""",
    "any_tool": """\
print(any('vip' in get_user(i)['tags'] for i in [1,2,3]), all(list_orders(i) for i in (1,3,2)), next((i for i in [1,2,3] if not get_user(i)['email']), None))
""",
    "groupby": """\
from itertools import groupby
ps=sorted(search_products('',limit=10), key=lambda p: p['category'])
for k,g in groupby(ps, key=lambda p: p['category']):
    print(k, [p['id'] for p in g])
""",
    "counter": """\
from collections import Counter
c=Counter(w for w in read_file('notes.md').lower().split())
c.update(['x','x'])
print(c.most_common(2), c['zzz'], sum(c.values()), Counter('abca') + Counter('b'), sorted(Counter('aab').items()))
""",
    "deque": """\
from collections import deque
q=deque([1,2,3],maxlen=3)
q.append(4)
q.appendleft(0)
print(q, q.popleft(), list(q))
q.rotate(1)
print(len(q))
""",
    "ordered2": """\
from collections import OrderedDict
d=OrderedDict([('a',1)])
d['b']=2
print(list(d.items()))
""",
    "retry": """\
import time
def retry(f,*a,times=3):
    for i in range(times):
        try:
            return f(*a)
        except Exception as e:
            print('attempt',i,e)
            time.sleep(0.01)
    return None
print(retry(get_user,1)['name'], retry(get_user,42))
""",
    "wraps": """\
import functools
def log(fn):
    @functools.wraps(fn)
    def inner(*a,**k):
        r=fn(*a,**k)
        print('called', r)
        return r
    return inner
@log
def sq(x): return x*x
print(sq(4))
""",
    "typing": """\
from typing import Any, Dict, List, Optional, TypedDict, Union
from collections.abc import Iterable, Callable
def f(xs: List[Dict[str, Any]], cb: Optional[Callable]=None) -> Union[int,None]:
    return len(xs)
print(f([{}]))
""",
    "typing2": """\
from typing import Any, Dict, List, Optional, Union, Tuple, cast
from collections.abc import Iterable, Callable
def f(xs: List[Dict[str, Any]], cb: Optional[Callable]=None) -> Union[int,None]:
    return cast(int, len(xs))
print(f([{}]))
""",
    "utc": """\
from datetime import datetime, UTC, timedelta
d=datetime(2024,1,2,tzinfo=UTC)
print(d.isoformat(), (d+timedelta(hours=5)).strftime('%H:%M'))
""",
    "strptime": """\
from datetime import datetime
rows=[l.split(' ',3) for l in read_file('app.log').splitlines()]
ts=[datetime.strptime(r[0]+' '+r[1],'%Y-%m-%d %H:%M:%S') for r in rows]
print((ts[-1]-ts[0]).total_seconds(), ts[0].strftime('%d.%m.%Y'), max(ts).hour)
""",
    "dateparse": """\
from datetime import date
by={}
for u in (1,2):
    for o in list_orders(u):
        by.setdefault(date.fromisoformat(o['date']).strftime('%Y-%m'),[]).append(o['total'])
print({k:sum(v) for k,v in sorted(by.items())})
""",
    "translate": """\
t=str.maketrans({'a':'1','b':None})
print('abc'.translate(t), 'hello'.translate(str.maketrans('el','ip','o')))
""",
    "maketrans_punct": """\
import string
print('Hi, you!'.translate(str.maketrans('','',string.punctuation)), string.ascii_lowercase[:3], string.capwords('a bc'))
""",
    "parallel_lambda": """\
a,b=parallel(lambda: get_user(1), lambda: get_user(user_id=2))
print(a['name'],b['name'])
""",
    "parallel_list": """\
rs=parallel([(get_user,i) for i in (1,2)])
print([r['id'] for r in rs])
""",
    "pprint": """\
from pprint import pprint
pprint({'b':[1,2,3],'a':'x'})
pprint([{'name':'n'*30,'value':i,'other':'o'*20} for i in range(2)])
""",
    "suppress": """\
from contextlib import suppress
with suppress(KeyError, ValueError):
    get_user(77)
print('fine')
""",
    "calendar": """\
import calendar
print(calendar.monthrange(2024,2)[1], calendar.month_name[3], calendar.isleap(2023))
""",
    "simplens": """\
from types import SimpleNamespace
n=SimpleNamespace(a=1,b='x')
n.c=2
print(n.a, n.c)
""",
    "fstr_nested": """\
d={'x':1,'y':3}
print(f"best: {max(d, key=d.get)} {'%.2f' % 1.234} {sorted(d, key=lambda k: -d[k])!r}")
print(f'{max(d, key=d.get):>5}|{sum(d.values()):03d}')
""",
    "multiline_call": """\
d = {'a': 1, 'b': 2}
result = max(
    d,
    key=d.get,
)
print(
    result,
    sorted(
        d.items(),
        key=lambda kv: kv[1],
    ),
)
""",
    "match_stmt": """\
for u in (1,2,3):
    match get_user(u):
        case {'email': None, 'name': n}: print('no mail', n)
        case {'tags': ['admin', *rest]}: print('admin', rest)
        case {'name': str(n)} if n.startswith('B'): print('B', n)
        case _: print('?')
""",
    "while_else": """\
n=0
while n<3:
    n+=1
else:
    print('done',n)
for i in range(3):
    if i==1: continue
    if i==5: break
else: print('nobreak')
""",
    "closures": """\
def mk():
    c=0
    def inc(by=1):
        nonlocal c
        c+=by
        return c
    return inc
f=mk()
f(); f(5)
print(f())
""",
    "default_json": """\
import json
from datetime import date, datetime
from decimal import Decimal
def enc(o):
    if isinstance(o,(date,datetime)): return o.isoformat()
    if isinstance(o,Decimal): return float(o)
    if isinstance(o,set): return sorted(o)
    raise TypeError('no')
print(json.dumps({'d':date(2024,1,1),'x':[Decimal('1.5'),{3,1}]},default=enc,indent=1,sort_keys=True))
""",
    "sys_out": """\
import sys
sys.stdout.write('a\\n')
print('err',file=sys.stderr)
print('ok')
""",
    "set_ops": """\
a={1,2,3}
b={2,3,4}
print(sorted(a&b), sorted(a|b), sorted(a-b), sorted(a^b), a<=b, len(a))
""",
    "class_obj": """\
class A(object):
    def __init__(self): self.v=1
print(A().v)
""",
    "bisect_": """\
import bisect
xs=[1,3,5]
bisect.insort(xs,4)
print(xs, bisect.bisect_left(xs,3))
""",
    "b64": """\
import base64, hashlib
print(base64.b64encode(b'hi').decode(), hashlib.sha256(b'x').hexdigest()[:8])
""",
    "itert": """\
import itertools as it
print(list(it.product('ab',[1,2])), list(it.zip_longest([1],[2,3],fillvalue=0)), list(it.islice(it.count(3,2),3)), list(it.takewhile(lambda x:x<3,[1,2,3,1])), list(it.pairwise([1,2,3])), list(it.permutations([1,2])))
""",
    "partial": """\
from functools import partial, lru_cache
conv=partial(convert_currency, src='EUR', dst='USD')
print(conv(10), partial(int, base=2)('101'))
@lru_cache
def g(i): return get_user(i)['name']
print(g(1), g(1))
""",
    "errors_finally": """\
def f(i):
    try:
        return get_user(i)['name']
    except KeyError as e:
        return f'missing: {e}'
    finally:
        print('checked', i)
print(f(1)); print(f(9))
try:
    read_file('x')
except FileNotFoundError as e:
    print(e)
""",
    "assert_": """\
try:
    assert 1==2, 'math'
except AssertionError as e:
    print('assert', e)
""",
    "dict_tricks": """\
d={'a':1}
d|={'b':2}
print(d, {v:k for k,v in d.items()}, dict(zip('xy',[1,2])), list(d)[0], d.popitem(), dict.fromkeys('ab',0), dict(sorted({'z':1,'y':2}.items())))
""",
    "unpack_call": """\
def f(*a,k=1,**kw): return a,k,kw
print(f(*[1,2],**{'k':3,'z':4}))
args={'user_id':2}
print(get_user(**args)['name'])
""",
    "table": """\
ps=search_products('',limit=3)
cols=['id','name','price']
print(' | '.join(f'{c:<10}' for c in cols))
print('-+-'.join('-'*10 for _ in cols))
for p in ps: print(' | '.join(f'{str(p[c]):<10}' for c in cols))
""",
    "async_tasks": """\
import asyncio
async def one(i):
    u = await get_user(i)
    os_ = await list_orders(i)
    return u['name'], len(os_)
async def main():
    ts=[asyncio.create_task(one(i)) for i in (1,2)]
    for t in ts: print(await t)
    print(await asyncio.gather(*(one(i) for i in (1,3))))
asyncio.run(main())
""",
    "lambda_default": """\
fs=[lambda x,i=i: x+i for i in range(3)]
print([f(10) for f in fs])
""",
    "sort_stable": """\
ps=search_products('',limit=10)
ps.sort(key=lambda p: p['category'])
ps.sort(key=lambda p: p['stock'], reverse=True)
print([p['id'] for p in ps])
""",
    "sort_tool": """\
ids=[3,1,2]
ids.sort(key=lambda i: get_user(i)['name'])
print(ids)
""",
    "namedt": """\
from collections import namedtuple
P=namedtuple('P',['x','y'])
p=P(1,y=2)
print(p, p.x, p._asdict(), p._replace(x=5), *p)
""",
    "none_main": """\
def main():
    return get_user(1)['name']
result = main()
result
""",
    "dict_value": """\
u=get_user(2)
{'n':u['name'],'t':tuple(u['tags'])}
""",
    "re_flags": """\
import re
print(re.findall(r'^- (.+)$', read_file('notes.md'), re.MULTILINE), re.split(r'\\s*[,;]\\s*','a, b;c'), re.match(r'(?P<y>\\d{4})-(?P<m>\\d\\d)','2024-05').groupdict(), bool(re.search('TITLE','title',re.I)))
""",
    "str_just": """\
print('x'.center(7,'*'), '42'.zfill(5), 'a,b'.partition(','), 'AbC'.swapcase(), 'tEst'.capitalize(), 'a-b_c'.replace('-','_').split('_'), 'abc'.index('c'), 'x'.ljust(3)+'|', repr('\\n'), ascii_ok if (ascii_ok:=True) else 0)
""",
    "issub": """\
print(issubclass(bool,int), issubclass(str,object))
""",
    "global_": """\
total=0
def add(n):
    global total
    total+=n
for o in list_orders(1): add(o['total'])
print(total)
""",
    "try_import": """\
try:
    import tensorflow as pd
except ImportError:
    pd=None
print(pd is None, get_user(1)['name'])
""",
    "zip_strict": """\
print(list(zip([1,2],['a','b'],strict=True)), list(enumerate('ab',1)), list(reversed([1,2])), sum([1.5,2]), round(-2.5), divmod(-7,2), abs(-3.2), pow(2,-1), int('0x1f',16), float('1e3'), bool([]), chr(8364), ord('€'))
""",
    "bytes_": """\
b='héllo'.encode('utf-8')
print(b, len(b), b.decode(), b[:2], b.hex(), list(b)[:2])
""",
    "dc_frozen": """\
from dataclasses import dataclass, field
@dataclass(frozen=True)
class A:
    x: int
    y: str = 'q'
a=A(1)
try:
    a.x=2
except Exception as e:
    print(type(e).__name__)
print(a, a==A(1), {a:1}[A(1)])
""",
    "slots_count": """\
text='a b a'
from collections import defaultdict
d=defaultdict(int)
for w in text.split(): d[w]+=1
print(dict(d), d['zz'], len(d))
n=defaultdict(lambda: defaultdict(list))
n['a']['b'].append(1)
print({k:dict(v) for k,v in n.items()})
""",
    "walrus_while": """\
page=2
while (hits:=search_chunks('x', top_k=page)) and len(hits)==page:
    page+=1
print(page, hits[-1]['score'])
""",
    "math_": """\
import math
print(math.floor(2.7), math.ceil(2.1), math.sqrt(16), math.pi, math.gcd(12,18), math.comb(5,2), math.prod([1,2,3]), math.hypot(3,4), math.inf, math.isnan(math.nan), math.log(8,2), math.trunc(-2.5), math.factorial(5))
""",
    "decimal_": """\
from decimal import Decimal, getcontext
print(Decimal('1.10')+Decimal('2.205'), round(Decimal('2.675'),2), Decimal('10')/Decimal('3'))
""",
    "sort_tuple_none": """\
us=[get_user(i) for i in (1,2,3)]
print(sorted(us,key=lambda u:(u['email'] is None, u['email'] or ''))[-1]['name'])
""",
    "html_": """\
import html
print(html.escape('<a href="x">'), html.unescape('&lt;b&gt; &amp; &#39;'))
""",
    "chunk_helper": """\
def chunks(xs,n):
    return [xs[i:i+n] for i in range(0,len(xs),n)]
print(chunks(list(range(7)),3))
""",
    "print_file_none": """\
print('a', file=None)
print('b', end='')
print('c', flush=True)
""",
    "string_build": """\
out=''
for i in range(3): out+=str(i)+','
print(out.rstrip(','))
lines=[]
lines += [f'{k}: {v}' for k,v in get_weather('Paris').items()]
print('\\n'.join(lines))
""",
    "copy_": """\
import copy
a={'x':[1]}
b=copy.deepcopy(a)
b['x'].append(2)
c=copy.copy(a)
print(a,b,c is a)
""",
    "os_path": """\
import os
print(os.path.splitext('a/b.txt'), os.path.basename('a/b.txt'), os.path.join('a','b'))
from pathlib import Path
print(Path('a/b.txt').suffix, Path('a')/'c', Path('a/b.txt').stem)
""",
    "time_": """\
import time
t=time.perf_counter()
get_user(1)
print(time.perf_counter()-t < 5, time.time()>0)
""",
    "random_": """\
import random
random.seed(1)
xs=[1,2,3,4]
random.shuffle(xs)
print(xs, random.random(), random.choice('abc'), random.uniform(1,2), random.sample(range(10),2))
""",
    "recursion": """\
def flat(x):
    return [z for y in x for z in (flat(y) if isinstance(y,list) else [y])]
print(flat([1,[2,[3,[4]]]]))
def fib(n,memo={}):
    if n<2: return n
    if n not in memo: memo[n]=fib(n-1)+fib(n-2)
    return memo[n]
print(fib(60))
""",
}
REFUSED = {
    "ordered": """\
from collections import OrderedDict, ChainMap
d=OrderedDict(a=1)
d['b']=2
print(list(d.items()))
""",
    "staticm": """\
class A:
    @staticmethod
    def f(x): return x+1
print(A.f(2))
""",
    "class_oper": """\
class V:
    def __init__(s,x): s.x=x
    def __add__(s,o): return V(s.x+o.x)
    def __repr__(s): return f'V({s.x})'
    def __eq__(s,o): return s.x==o.x
    def __lt__(s,o): return s.x<o.x
print(V(1)+V(2), V(1)==V(1), sorted([V(3),V(1)]), max([V(2),V(5)]))
""",
    "raise_from": """\
try:
    try:
        get_weather('X')
    except ValueError as e:
        raise RuntimeError('outer') from e
except RuntimeError as e:
    print(e, '<-', e.__cause__)
""",
    "async_sem": """\
import asyncio
async def main():
    sem=asyncio.Semaphore(2)
    async with sem:
        print(await get_user(1))
asyncio.run(main())
""",
    "enum_cls": """\
from enum import Enum
class S(Enum):
    A=1
print(S.A.name)
""",
    "exc_cls": """\
class E(Exception): pass
try:
    raise E('x')
except E as e: print(e)
""",
    "gen": """\
def g():
    yield 1
print(list(g()))
""",
    "nt_class": """\
from typing import NamedTuple
class P(NamedTuple):
    x: int
print(P(1))
""",
    "vars_": """\
print(vars())
""",
    "dc_order": """\
from dataclasses import dataclass
@dataclass(order=True)
class A:
    x: int
print(sorted([A(2),A(1)]))
""",
    "yaml_like": """\
cfg=__import__('json').loads(read_file('config.json'))
print(cfg)
""",
    "uuid_": """\
import uuid
print(len(str(uuid.uuid4())))
""",
    "chainmap": """\
from collections import ChainMap
print(ChainMap({'a':1},{'b':2})['b'])
""",
}


def _cpython(code: str) -> tuple[str, Any]:
    """Run a program of ours in this interpreter; return what it prints and the value of its last expression."""
    functions = fixture_module().TOOLS
    awaited = "asyncio" in code
    names: dict[str, Any] = {"__name__": "__main__", "parallel": _parallel}
    names |= {name: _awaited(f) if awaited else f for name, f in functions.items()}
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    value = None
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, "program", "exec"), names)  # noqa: S102 - the programs stand above
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "program", "eval"), names)  # noqa: S307
    return out.getvalue(), json.loads(json.dumps(value))


def _parallel(*specs: Any) -> list[Any]:
    specs = tuple(specs[0]) if len(specs) == 1 and isinstance(specs[0], list) else specs
    return [spec() if callable(spec) else spec[0](*spec[1:]) for spec in specs]


def _awaited(function: Any) -> Any:
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapped


@pytest.mark.parametrize("name", PROGRAMS)
async def test_output_is_cpythons_when_a_program_is_supported(name):
    code = PROGRAMS[name]
    want = await asyncio.to_thread(_cpython, code)
    result = await run_case(code, awaited="asyncio" in code)
    assert result.success, result.to_text()
    assert (result.output, result.value) == want


@pytest.mark.parametrize("name", REFUSED)
async def test_program_is_refused_with_line_and_advice_when_it_cannot_work(name):
    result = await run_case(REFUSED[name])
    assert result.ending in ("UNSUPPORTED_SYNTAX", "UNSUPPORTED_IMPORT")
    assert result.line > 0
    assert result.source_line
    assert len(result.advice) > 10
    assert result.calls == ()
