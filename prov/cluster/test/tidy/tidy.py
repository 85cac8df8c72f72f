#!/usr/bin/env python3
"""Holds the house rules of the tree: `tidy.py ROOT` prints each violation and fails if there is one.

`tidy.py ROOT --only PATH` shows those whose path contains PATH.
"""
import argparse
import sys

import banned
import documents
import layering
import names
import wire_document
from source import Tree

RULES = (layering, banned, documents, wire_document, names)


def violations(root, rules=RULES):
    tree = Tree(root)
    return sorted(violation for rule in rules for violation in rule.check(tree))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="top of the tree")
    parser.add_argument("--only", default="", metavar="PATH", help="show only files whose path contains this")
    options = parser.parse_args()
    found = [violation for violation in violations(options.root)
             if options.only in violation.path]
    for violation in found:
        print(violation)
    print(f"tidy: {len(found)} violation(s)" if found else "tidy: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
