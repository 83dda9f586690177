"""A small DOM over the standard library's parser, and what the page's script does with a frame."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "hr", "img", "input", "link", "meta", "use", "path"}


@dataclass
class Node:
    """An element: its own text is what stands in it before, between and after its children, in order."""

    tag: str
    attrs: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def elements(self) -> Iterator[Node]:
        """Yield every element below, in document order."""
        for child in self.children:
            if isinstance(child, Node):
                yield child
                yield from child.elements()

    def own(self) -> list[Node]:
        """Return the child elements."""
        return [c for c in self.children if isinstance(c, Node)]

    def text(self) -> str:
        """Return all text below."""
        return "".join(c if isinstance(c, str) else c.text() for c in self.children)

    def find(self, ident: str) -> Node | None:
        """Return the element with this id."""
        return next((e for e in self.elements() if e.attrs.get("id") == ident), None)

    def parent_of(self, node: Node) -> Node | None:
        """Return the parent of an element below."""
        return next((e for e in [self, *self.elements()] if any(c is node for c in e.children)), None)


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("root")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {k: v or "" for k, v in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        for depth in range(len(self.open) - 1, 0, -1):
            if self.open[depth].tag == tag:
                del self.open[depth:]
                return

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(html: str) -> Node:
    """Return the tree of a piece of HTML."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    return builder.root


def _key(node: Node) -> int:
    match = re.search(r"(\d+)$", node.attrs.get("id", ""))
    return int(match[1]) if match else 0


def apply(page: Node, html: str) -> None:
    """Do with a frame what static/js/stream.js and htmx do."""
    for partial in parse(html).own():
        assert partial.tag == "hx-partial"
        target = page.find(partial.attrs["hx-target"].removeprefix("#"))
        assert target is not None, partial.attrs["hx-target"]
        swap, _, modifier = partial.attrs["hx-swap"].partition(" ")
        if swap == "delete":
            parent = page.parent_of(target)
            assert parent is not None
            parent.children.remove(target)
            continue
        if swap == "innerHTML":
            target.children = partial.children
            continue
        assert swap == "blocks"
        for child in partial.own():
            old = page.find(child.attrs["id"])
            if old is not None:
                old.attrs, old.children = child.attrs, child.children
            else:
                at = next(
                    (
                        i
                        for i, c in enumerate(target.children)
                        if isinstance(c, Node) and _key(c) > _key(child)
                    ),
                    len(target.children),
                )
                target.children.insert(at, child)
        if modifier:
            keep = int(modifier.removeprefix("keep:"))
            target.children = [c for c in target.children if isinstance(c, str) or _key(c) < keep]


def shape(node: Node | None) -> list[object]:
    """Return a tree as plain values, without the white space between elements."""
    assert node is not None
    return [
        child if isinstance(child, str) else (child.tag, sorted(child.attrs.items()), shape(child))
        for child in node.children
        if not isinstance(child, str) or child.strip()
    ]
