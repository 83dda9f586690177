"""Programs of the kind models write that use the standard library."""

PROGRAMS = {
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
    "gather_exc": """\
import asyncio
async def main():
    rs = await asyncio.gather(get_user(1), get_user(99), return_exceptions=True)
    print([type(r).__name__ if isinstance(r, Exception) else r['name'] for r in rs])
asyncio.run(main())
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
    "maketrans_punct": """\
import string
print('Hi, you!'.translate(str.maketrans('','',string.punctuation)), string.ascii_lowercase[:3], string.capwords('a bc'))
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
    "namedt": """\
from collections import namedtuple
P=namedtuple('P',['x','y'])
p=P(1,y=2)
print(p, p.x, p._asdict(), p._replace(x=5), *p)
""",
    "re_flags": """\
import re
print(re.findall(r'^- (.+)$', read_file('notes.md'), re.MULTILINE), re.split(r'\\s*[,;]\\s*','a, b;c'), re.match(r'(?P<y>\\d{4})-(?P<m>\\d\\d)','2024-05').groupdict(), bool(re.search('TITLE','title',re.I)))
""",
    "try_import": """\
try:
    import tensorflow as pd
except ImportError:
    pd=None
print(pd is None, get_user(1)['name'])
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
    "math_": """\
import math
print(math.floor(2.7), math.ceil(2.1), math.sqrt(16), math.pi, math.gcd(12,18), math.comb(5,2), math.prod([1,2,3]), math.hypot(3,4), math.inf, math.isnan(math.nan), math.log(8,2), math.trunc(-2.5), math.factorial(5))
""",
    "decimal_": """\
from decimal import Decimal, getcontext
print(Decimal('1.10')+Decimal('2.205'), round(Decimal('2.675'),2), Decimal('10')/Decimal('3'))
""",
    "html_": """\
import html
print(html.escape('<a href="x">'), html.unescape('&lt;b&gt; &amp; &#39;'))
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
}
