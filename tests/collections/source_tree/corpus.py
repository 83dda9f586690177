"""Paths that try to leave a folder, or to look like another path. ``{out}`` is the absolute path of a folder outside."""

from __future__ import annotations

UPWARDS = [
    f"{before}{dots}{after}"
    for dots in ("..", "../..", "../../..", "a/../..", "a/b/../../..", "./..", "a/./../..", "..//..")
    for before, after in (("", ""), ("", "/secret.txt"), ("", "/outside/secret.txt"), ("a/", "/x"), ("", "/"))
]  # fmt: skip
ABSOLUTE = [
    "/", "//", "///", "/etc/passwd", "//etc/passwd", "///etc///passwd", "/secret.txt", "{out}/secret.txt",
    "/{out}/secret.txt", "{out}", "file://{out}/secret.txt", "file:{out}/secret.txt", "/.", "/..", "/../etc/passwd",
    "~", "~/secret.txt", "~root/.ssh/id_rsa", "$HOME/secret.txt", "${{HOME}}/x", "%HOME%/x", "C:\\Windows\\win.ini",
    "C:/Windows/win.ini", "C:secret.txt", "\\\\server\\share\\x", "//server/share/x", "\\\\?\\C:\\x", "\\\\.\\pipe\\x",
    "\\..\\secret.txt", "..\\secret.txt", "..\\..\\outside\\secret.txt", "a\\..\\..\\x", "a/..\\..\\x", "..\\/x", "..\\",
]  # fmt: skip
PROC = [
    f"{before}{rest}"
    for before in ("/", "../../../../../../../../")
    for rest in (
        "proc/self/root/etc/passwd", "proc/self/cwd/manage.py", "proc/self/fd/0", "proc/self/environ", "dev/fd/3",
        "dev/stdin", "dev/zero", "dev/mem", "proc/1/root", "proc/self/exe", "proc/thread-self/root", "sys/kernel",
    )
]  # fmt: skip
NUL_AND_CONTROLS = [
    "\x00", "a\x00", "\x00a", "a.txt\x00.png", "../\x00", "..\x00/secret.txt", "a/\x00/b", "a\nb", "a\rb", "a\tb",
    "a\x1bb", "a\x7fb", "..\x01", ".\x08.", "a/\x08\x08/b", "\ud800", "a/\udcff", "..\udc2f", "\x85", "\xa0", "a\u2028b",
    "\ufeffa", "\ufffe", "..\x00", "\x00/../secret.txt",
]  # fmt: skip
LOOKALIKES = [
    "\uff0e\uff0e/secret.txt", "\uff0e\uff0e\uff0fsecret.txt", "..\uff0fsecret.txt", "..\u2215secret.txt",
    "..\u2044secret.txt", "\u2024\u2024/secret.txt", "\u2025/secret.txt", "\u2026/secret.txt", "..\u29f8x", "..\u29f5x",
    "..\uff3csecret.txt", "..\ufe68secret.txt", "\ufe52\ufe52/x", "\u3002\u3002/x", "\uff61\uff61/x", ".\u200b./x",
    ".\u200d./x", "\u202e../x", "a\u202etxt.exe", "\u2066../x\u2069", ".\u00ad./x", "..\u00a0/x", "..\u2003/x", ".\u0307/x",
    "..\u0338/x", "\u0338../x", "e\u0301/../../x", "..%2fsecret.txt", "%2e%2e/secret.txt", "%2e%2e%2fsecret.txt",
    "..%252fsecret.txt", "..%c0%afsecret.txt", "%uff0e%uff0e/x", "..;/x", "..&#47;x", "\\u002e\\u002e/x", "&period;&period;/x",
    "\U000e0001../x", ".\u2060./x", "..\u180e/x",
]  # fmt: skip
DOTS_AND_SPACES = [
    " ", ".", "./", "...", "....", " ..", ".. ", ".. /x", " ../x", "a /x", " a/x", "a./x", "a../x", ".../x", "....//x",
    "..../secret.txt", "a/...", "a/. ", "a/ .", "a//b", "a///b", "a/./b", "a/b/.", "a/b/..", "a/", "./a", "././a", ".//a",
    "..a/x", "a..b/x", ".a", "-", "-rf", "--", "a/-rf", "*", "?", "[a]", "a|b", "a;b", "a`id`", "$(id)", "a&b", "a>b", "'", '"',
    "con", "NUL", "aux.txt", "com1", "lpt1.txt", "a:stream", "a::$DATA",
]  # fmt: skip
LONG = [
    "a" * 255, "a" * 256, "a" * 300, "a" * 4096, "a/" * 200 + "x", "a/" * 2000 + "x", "../" * 300 + "etc/passwd",
    "/".join(["a" * 255] * 4), "\u00e9" * 200, "\U0001f600" * 100, "a" * 1000, "a" * 1001, "/" * 1000, "." * 255, "." * 300,
    "a/" * 59 + "x", "a/" * 60 + "x", "a/" * 61 + "x",
]  # fmt: skip
CASE = ["A", "SECRET.TXT", "Secret.txt", ".GIT/config", ".Git/hooks/pre-commit", ".git", ".git/config", ".GIT", "a/.git/HEAD",
        ".gi\u200ct/config", "git~1/config", ".git./config", ".git /config", ".gw-tmp-0", "LINK", "Link/secret.txt"]  # fmt: skip

PATHS: list[str] = [
    *UPWARDS, *ABSOLUTE, *PROC, *NUL_AND_CONTROLS, *LOOKALIKES, *DOTS_AND_SPACES, *LONG, *CASE,
]  # fmt: skip
# Through something that stands in the tree: see ``world`` in test_hostile_paths.
TRICKS: list[str] = [
    "file-link", "folder-link/secret.txt", "folder-link/new.txt", "folder-link/deep/secret.txt", "folder-link", "up-link/secret.txt",
    "up-link/outside/secret.txt", "absolute-link", "etc-link", "root-link/etc/passwd", "chain-1", "chain-1/secret.txt", "loop",
    "loop/x", "dangling", "dangling/new.txt", "self-link/self-link/file-link", "proc-link/root/etc/passwd", "proc-link/environ",
    "fd-link/0", "inner/file-link", "inner/folder-link/secret.txt", "inner/deeper/folder-link/secret.txt", "inner/up/secret.txt",
    "hard", "inner/hard", "fifo", "inner/fifo", "socket", "device-zero", "device-null", "folder-link/../secret.txt",
    "file-link/", "fifo/x", "hard/x", "plain.txt/x", "plain.txt/../../secret.txt", "relative-link", "inner-link/hard",
]  # fmt: skip
