"""More programs that must be contained: floods, hangs, values that blow up, ways out of the interpreter."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from toolloop.code_mode import CodeLimits, CodeMode
from toolloop.tools import tool


@tool
def ping(x: int = 0) -> int:
    """Ping."""
    return x


@tool
def echo(x: str = "") -> str:
    """Echo."""
    return x


@tool
async def hang() -> str:
    """Hang."""
    await asyncio.sleep(1000)
    return ""


@tool
def big() -> str:
    """Return a lot."""
    return "x" * 5_000_000


PROGRAMS = {
    "prelude_poison": (
        "UNSUPPORTED_SYNTAX",
        "import statistics\nstatistics.mean=lambda x: 'P'\n_gw_statistics=3\nprint(statistics.mean([1]))",
    ),
    "flood_prelude": ("LIMIT_OUTPUT", "import pprint\nwhile True: pprint.pprint('x'*1000)"),
    "stderr_flood": ("LIMIT_OUTPUT", "import sys\nwhile True: print('x'*10000,file=sys.stderr)"),
    "tiny_prints": ("LIMIT_OUTPUT", "while True: print()"),
    "hang": ("WALL_CLOCK", "hang()"),
    "hang_par": ("WALL_CLOCK", "parallel((hang,),(ping,1))"),
    "hang_async": ("WALL_CLOCK", "import asyncio\nawait asyncio.gather(hang(), ping(1))"),
    "async_loop": (
        "LIMIT_CALLS",
        "import asyncio\nasync def f():\n    while True:\n        try:\n            await ping(1)\n        except BaseException: pass\nasyncio.run(f())",
    ),
    "par_flood": ("LIMIT_CALLS", "parallel(*[(ping,i) for i in range(100000)])"),
    "par_nested": ("TYPE_ERROR", "parallel(*[('parallel',('ping',1)) for i in range(3)])"),
    "deep_arg": ("TYPE_ERROR", "x=[]\nfor i in range(3000): x=[x]\necho(x)"),
    "deep_val": ("OK", "x=[]\nfor i in range(30000): x=[x]\nx"),
    "cyc_val": ("OK", "x=[]\nx.append(x)\nx"),
    "cyc_arg": ("TYPE_ERROR", "x={}\nx['a']=x\necho(x)"),
    "bigint_val": ("OK", "10**4000"),
    "bigint_arg": ("TYPE_ERROR", "ping(10**4000)"),
    "bigint_key": ("OK", "{10**4000:1}"),
    "hugeint": ("OK", "1<<30000000"),
    "bigres": ("TOOL_ERROR", "big()"),
    "big_loop": ("LIMIT_MEMORY", "s=''\nfor i in range(40): s+=echo('x'*900000)\nlen(s)"),
    "manykw": ("TYPE_ERROR", "ping(**{str(i):i for i in range(100000)})"),
    "surrogates": ("RUNTIME_ERROR", "print('\\ud800')\n'\\ud800'"),
    "sur_arg": ("TYPE_ERROR", "echo('\\ud800x')"),
    "exc_huge": ("RUNTIME_ERROR", "raise ValueError('x'*10_000_000)"),
    "val_repr": ("OK", "class A:\n    def __repr__(self):\n        while True: pass\nA()"),
    "fmt": ("LIMIT_MEMORY", "'%0999999999d' % 1"),
    "fmt2": ("LIMIT_MEMORY", "'{:>999999999}'.format(1)"),
    "join": ("LIMIT_MEMORY", "','.join(['x'*10**6]*10**5)"),
    "sum": ("LIMIT_TIME", "sum(range(10**12))"),
    "pow": ("LIMIT_MEMORY", "pow(7,10**8)"),
    "re": ("LIMIT_TIME", "import re\nre.match('(a+)+$','a'*40+'b')"),
    "eval": ("RUNTIME_ERROR", "eval('('*5000+')'*5000)"),
    "exec": ("LIMIT_TIME", "exec('while True: pass')"),
    "exec_big": ("LIMIT_MEMORY", "exec('x=1\\n'*10**6)"),
    "openw": ("UNSUPPORTED_SYNTAX", "open('/tmp/zz','w').write('x')"),
    "path": ("UNSUPPORTED_SYNTAX", "from pathlib import Path\nPath('/etc/passwd').read_text()"),
    "pathw": ("UNSUPPORTED_SYNTAX", "from pathlib import Path\nPath('/tmp/zz').write_text('a')"),
    "glob": ("UNSUPPORTED_SYNTAX", "from pathlib import Path\nprint(list(Path('/').iterdir()))"),
    "getenv": ("UNSUPPORTED_SYNTAX", "import os\nprint(os.getenv('HOME'))"),
    "urandom": ("UNSUPPORTED_SYNTAX", "import os\nos.urandom(16)"),
    "rm": ("UNSUPPORTED_SYNTAX", "import os\nos.remove('/tmp/x')"),
    "tool_dict": ("UNSUPPORTED_SYNTAX", "ping.__dict__"),
    "tool_globals": ("UNSUPPORTED_SYNTAX", "ping.__globals__"),
    "tool_set": ("OK", "ping.x=1"),
    "shadow": ("OK", "def ping(x): return 'mine'\nping(1)"),
    "import_tool": ("UNSUPPORTED_IMPORT", "import ping"),
    "gen_count": ("OK", "import itertools\nnext(x for x in itertools.count() if x>5)"),
    "gen_cycle": ("LIMIT_MEMORY", "from itertools import cycle\nlist(cycle([1]))"),
    "asleep": ("LIMIT_TIME", "import asyncio\nawait asyncio.gather(*[asyncio.sleep(4) for i in range(50)])"),
    "deadlock": (
        "RUNTIME_ERROR",
        "import asyncio\nasync def f(): await g()\nasync def g(): await f()\nawait f()",
    ),
    "catch_all": (
        "LIMIT_TIME",
        "def f():\n    try:\n        f()\n    except BaseException:\n        f()\nf()",
    ),
    "classes": ("LIMIT_TIME", "while True:\n    class A: x=[0]*1000"),
    "dictcomp": ("LIMIT_MEMORY", "{i:str(i)*100 for i in range(10**8)}"),
    "hash": ("LIMIT_TIME", "import hashlib\nhashlib.pbkdf2_hmac('sha256',b'a',b'b',10**9)"),
    "toml": ("RUNTIME_ERROR", "import tomllib\ntomllib.loads('a='+'['*100000)"),
    "jsonload": ("RUNTIME_ERROR", "import json\njson.loads('['*100000)"),
    "csv": ("LIMIT_MEMORY", "import csv\nlist(csv.reader(['a,'*10**7]))"),
    "deepcopy": ("OK", "import copy\nx=[1]\nfor i in range(40): x=[x,x]\ncopy.deepcopy(x)"),
    "repr": ("LIMIT_MEMORY", "x=[1]\nfor i in range(40): x=[x,x]\nrepr(x)"),
    "kbd": ("RUNTIME_ERROR", "raise KeyboardInterrupt"),
    "asyncexit": ("UNSUPPORTED_SYNTAX", "import sys\nsys.exit(1)"),
}
LIMITS = CodeLimits(run_s=1.0, turn_s=1.0, wall_s=2.0)


@pytest.mark.parametrize("name", PROGRAMS)
async def test_program_is_contained_when_it_is_hostile(name):
    ending, code = PROGRAMS[name]
    mode = CodeMode([ping, echo, hang, big], limits=LIMITS)
    await mode.execute("1")
    async with asyncio.timeout(PATIENCE_S):
        result = await mode.execute(code)
    # A loaded machine may let a slow program meet its time limit, or the backstop behind it, first.
    slow = {"LIMIT_TIME", "WALL_CLOCK"} if ending.startswith("LIMIT_") else set()
    assert str(result.ending) in {ending, *slow}, result.to_text(1000)
    assert len(json.dumps(result.to_json())) < 2_500_000
    result.to_text().encode()
    assert not Path("/tmp/zz").exists()  # noqa: ASYNC240 - a test may wait
    assert (await mode.execute("1 + 1")).value == 2
