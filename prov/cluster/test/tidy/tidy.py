#!/usr/bin/env python3
"""Holds the house rules of the tree: `tidy.py ROOT` prints each violation and fails if there is one."""
import sys

import banned
import documents
import layering
import ratchet
import wire_document
from source import Tree

RULES = (layering, ratchet, banned, documents, wire_document)


def complaints(root):
    tree = Tree(root)
    return sorted(complaint for rule in RULES for complaint in rule.check(tree))


def main(arguments):
    if len(arguments) != 2:
        print(f"usage: {arguments[0]} ROOT", file=sys.stderr)
        return 2
    found = complaints(arguments[1])
    for complaint in found:
        print(complaint)
    print(f"tidy: {len(found)} violation(s)" if found else "tidy: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
