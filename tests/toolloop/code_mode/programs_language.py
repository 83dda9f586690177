"""Programs of the kind models write that need nothing but the language."""

PROGRAMS = {
    "max_key_get": """\
d={'a':3,'b':5,'c':1}
print(max(d,key=d.get), min(d,key=d.get), sorted(d,key=d.get,reverse=True))
""",
    "callable": """\
print(callable(len), callable(3), callable(lambda: 1), callable(get_user), [callable(x) for x in (str, 'a', print)])
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
    "translate": """\
t=str.maketrans({'a':'1','b':None})
print('abc'.translate(t), 'hello'.translate(str.maketrans('el','ip','o')))
""",
    "parallel_lambda": """\
a,b=parallel(lambda: get_user(1), lambda: get_user(user_id=2))
print(a['name'],b['name'])
""",
    "parallel_list": """\
rs=parallel([(get_user,i) for i in (1,2)])
print([r['id'] for r in rs])
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
    "zip_strict": """\
print(list(zip([1,2],['a','b'],strict=True)), list(enumerate('ab',1)), list(reversed([1,2])), sum([1.5,2]), round(-2.5), divmod(-7,2), abs(-3.2), pow(2,-1), int('0x1f',16), float('1e3'), bool([]), chr(8364), ord('€'))
""",
    "bytes_": """\
b='héllo'.encode('utf-8')
print(b, len(b), b.decode(), b[:2], b.hex(), list(b)[:2])
""",
    "walrus_while": """\
page=2
while (hits:=search_chunks('x', top_k=page)) and len(hits)==page:
    page+=1
print(page, hits[-1]['score'])
""",
    "sort_tuple_none": """\
us=[get_user(i) for i in (1,2,3)]
print(sorted(us,key=lambda u:(u['email'] is None, u['email'] or ''))[-1]['name'])
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
