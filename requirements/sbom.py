"""Write what a server is made of as CycloneDX 1.6 (https://cyclonedx.org): each pinned runtime package with its licence and the hashes of its files.

The same requirements make the same bytes. Run: python requirements/sbom.py FILE (`make sbom`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

licence_of = import_module("licences").licence_of  # beside this file
HERE = Path(__file__).resolve().parent
_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)(.*(?:\n {4}.*)*)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(text: str) -> Iterator[Component]:
    """Yield the packages of a file of requirements with hashes."""
    licence_made = LicenseFactory().make_from_string
    for name, version, rest in _PINNED.findall(text):
        try:
            licence = licence_of(metadata.metadata(name))
        except metadata.PackageNotFoundError:  # for another system or another Python
            licence = ""
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=found) for found in _HASH.findall(rest)]
        purl = PackageURL("pypi", None, name, version)
        yield Component(
            type=ComponentType.LIBRARY,
            name=name,
            version=version,
            bom_ref=f"{name}=={version}",
            purl=purl,
            licenses=[licence_made(licence)] if licence else [],
            external_references=[
                ExternalReference(
                    type=ExternalReferenceType.DISTRIBUTION,
                    url=XsUri(purl.to_string()),
                    hashes=hashes,
                )
            ],
        )


def main(target: Path) -> None:
    """Write the list."""
    text = (HERE / "base.txt").read_text(encoding="utf-8")
    bom = Bom(components=components(text), serial_number=uuid5(NAMESPACE_URL, text))
    server = Component(type=ComponentType.APPLICATION, name="groundwork", bom_ref="groundwork")
    bom.metadata.component = server
    bom.register_dependency(server, bom.components)
    bom.metadata.timestamp = None  # type: ignore[assignment]
    target.write_text(JsonV1Dot6(bom).output_as_string(indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
