#!/usr/bin/env python3
"""Proof that tidy.py can fail: each rule is shown a planted violation, and a tree without one."""
import os
import tempfile
import unittest

from source import Tree
from tidy import violations
import wire_document

HEADER = "// What this header is for.\n#pragma once\n"
SOURCE = "prov/cluster/src/"


class Tidy(unittest.TestCase):
    def run_on(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as stream:
                    stream.write(text)
            return violations(root)

    def expect(self, files, rule, path, line):
        found = self.run_on(files)
        self.assertEqual([(c.rule, c.path, c.line) for c in found], [(rule, path, line)], "\n".join(map(str, found)))

    def expect_code(self, rule, component, code):
        path = f"{SOURCE}{component}/planted.cc"
        self.expect({path: "int before;\n" + code + "\n"}, rule, path, 2)

    def expect_clean(self, files):
        found = self.run_on(files)
        self.assertEqual(found, [], "\n".join(map(str, found)))

    def test_a_lawful_tree_is_clean(self):
        self.expect_clean({
            SOURCE + "wire/a.h": HEADER + '#include "base/b.h"\n#include <chrono>\n',
            SOURCE + "shm/c.cc": '#include "carrier/carrier.h"\n#include "os/memory.h"\n',
            SOURCE + "api/d.cc": '#include <rdma/fabric.h>\n#include "engine/engine.h"\n',
            SOURCE + "os/e.cc": "#include <sys/mman.h>\n#include <ctime>\nint t = ::open(0);\n",
            SOURCE + "link/f.cc": '// time(nullptr), getenv("X") and "rand()" in words\n'
                                  'const char* s = "steady_clock"; int x = 1\'000; int time(int); auto y = a.time(0);\n',
        })

    def test_layering(self):
        for component, name in [("base", "wire/frame.h"), ("wire", "link/link.h"), ("link", "os/clock.h"),
                           ("reliability", "protocol/completion.h"), ("shm", "network/session_table.h"), ("reliability", "os/udp_link.h"),
                           ("protocol", "reliability/flow.h"), ("protocol", "engine/engine.h"),
                           ("shm", "link/link.h"), ("transport", "shm/layout.h"), ("multipath", "os/udp_link.h"),
                           ("multipath", "reliability/flow.h"),
                           ("engine", "api/platform.h"), ("api", "wire/segment.h"), ("api", "link/link.h"),
                           ("os", "carrier/carrier.h"), ("engine", "no_component.h"), ("engine", "nowhere/a.h")]:
            with self.subTest(component=component, name=name):
                self.expect_code("layering", component, f'#include "{name}"')

    def test_libfabric_stays_at_the_top(self):
        for component in ("base", "wire", "link", "os", "shm", "protocol", "reliability", "engine"):
            with self.subTest(component=component):
                self.expect_code("layering", component, "#include <rdma/fabric.h>")

    def test_names_stand_for_one_thing(self):
        first = {SOURCE + "link/a.h": HEADER + "namespace n {\nstruct Twice { int a; };\n}\n"}
        self.expect({**first, SOURCE + "wire/b.cc": "class Twice final : public Base {\n};\n"}, "duplicate-type",
                    SOURCE + "wire/b.cc", 1)
        self.expect_clean({**first, SOURCE + "wire/b.cc": "struct Outer {\n  struct Twice { int b; };\n};\n"})
        self.expect({**first, SOURCE + "wire/a.h": HEADER}, "duplicate-file", SOURCE + "wire/a.h", 1)

    def test_a_class_has_one_source_file(self):
        header = {SOURCE + "link/a.h": HEADER + "class Whole {\n  void f();\n  void g();\n};\n"}
        both = "void Whole::f() {}\nvoid Whole::g() {}\n"
        self.expect_clean({**header, SOURCE + "link/a.cc": both})
        self.expect({**header, SOURCE + "link/a.cc": both.splitlines()[0], SOURCE + "link/b.cc": both.splitlines()[1]},
                    "sliced-class", SOURCE + "link/b.cc", 1)

    def test_unknown_component(self):
        self.expect({SOURCE + "attic/a.cc": "int a;\n"}, "layering", SOURCE + "attic/a.cc", 1)

    def test_a_component_has_a_row_in_the_map(self):
        code = {SOURCE + "api/a.cc": "int a;\n", SOURCE + "os/b.cc": "int b;\n"}
        readme = "prov/cluster/README.md"
        self.expect({readme: "| `src/api/` | calls |\n", **code}, "layering", readme, 1)
        self.expect_clean({readme: "| `src/api/` | calls |\n| `src/os/` | system calls |\n", **code})

    def test_banned_headers(self):
        for name in ("ctime", "time.h", "random", "sys/socket.h", "unistd.h", "poll.h", "linux/if_packet.h"):
            with self.subTest(name=name):
                self.expect_code("banned", "engine", f"#include <{name}>")

    def test_banned_calls(self):
        for code in ("auto t = std::chrono::steady_clock::now();", "auto t = std::chrono::system_clock::now();",
                     "auto t = std::time(nullptr);", "auto t = time(nullptr);", "clock_gettime(1, &t);",
                     "int r = std::rand();", "int r = rand();", "std::mt19937 dice;", "std::random_device dice;",
                     "usleep(1);", "sleep(1);", "std::this_thread::sleep_for(1s);",
                     'auto* e = std::getenv("A");', "std::thread helper(run);", "int s = ::socket(1, 2, 3);",
                     "void* p = mmap(0, 1, 2, 3, 4, 5);", "int e = eventfd(0, 0);"):
            with self.subTest(code=code):
                self.expect_code("banned", "reliability", code)

    def test_conditional_compilation(self):
        self.expect_code("conditional", "wire", "#ifdef __x86_64__\n#endif")

    def test_headers(self):
        path = SOURCE + "wire/a.h"
        self.expect({path: HEADER.replace("#pragma once\n", "")}, "header", path, 1)
        self.expect({path: "#pragma once\n"}, "header", path, 1)

    def test_words(self):
        path = "util/note.md"
        for word in ("TO" + "DO: later", "FIX" + "ME"):
            self.expect({path: "fine\n" + word + "\n"}, "unfinished", path, 2)
        for place in ("/wo" + "rk/agents", "in /ho" + "me/someone", '"/tm' + 'p/x"'):
            self.expect({path: "fine\n" + place + "\n"}, "machine-path", path, 2)
        self.expect_clean({path: "framework/x, ${TMPDIR:-/tm" + "p}, net/wo" + "rk/x\n"})

    def test_options_and_manual(self):
        table = SOURCE + "provider/options.def"
        rows = '// Table.\nOPTION(shm, boolean)\nOPTION(peer_timeout, seconds)\n'
        self.expect({table: rows, "man/fi_cluster.7": "FI_CLUSTER_SHM\n"}, "option-manual", table, 3)
        self.expect({table: rows, "man/fi_cluster.7": "FI_CLUSTER_SHM FI_CLUSTER_PEER\\_TIMEOUT\nFI_CLUSTER_GONE\n"},
                    "option-manual", "man/fi_cluster.7", 2)
        self.expect({table: rows, "man/fi_cluster.7": "FI_CLUSTER_SHM FI_CLUSTER_PEER_TIMEOUT\n",
                     "man/fi_cluster_network.7": ".TH FI_CLUSTER_NETWORK 7\nFI_CLUSTER_GONE\n"},
                    "option-manual", "man/fi_cluster_network.7", 2)
        self.expect_clean({table: rows, "man/fi_cluster.7": "FI_CLUSTER_*: FI_CLUSTER_SHM FI_CLUSTER_PEER_TIMEOUT"})

    def test_maps(self):
        for page in ("prov/cluster/README.md", "prov/cluster/docs/paths.md", "prov/cluster/docs/glossary.md"):
            self.check_map(page)

    def check_map(self, readme):
        code = {SOURCE + "api/tagged.cc": "namespace a { int tsend() { return 0; } }\n"}
        for line in ("`api/gone.cc`", "`api/tagged.cc:gone`", "`nowhere/`", "`gone()`", "| 1 | `api/tagged.cc: A::gone` |",
                     "| `src/api/` | `gone.cc`", "`tagged.cc`"):
            with self.subTest(line=line):
                self.expect({readme: "# Map\n" + line + "\n", **code}, "readme", readme, 2)
        self.expect_clean({readme: "`api/tagged.cc`, `api/`, | `src/api/` | `tagged.cc` |\n`api/tagged.cc:tsend`, `a::tsend()`, `fi_tsend()`, `x`",
                           **code})


class WireDocument(unittest.TestCase):
    """The real specification and the real code agree; any change to one of them alone is noticed."""

    ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), *[".."] * 4)

    def noticed(self, path, old, new):
        """Complaints about the tree in which `old` is `new` once in one file."""
        tree = Tree(self.ROOT)
        file = tree.find(path)
        self.assertIn(old, file.text)
        file.text, file._code = file.text.replace(old, new, 1), None
        return list(wire_document.check(tree))

    def test_they_agree(self):
        self.assertEqual(list(wire_document.check(Tree(self.ROOT))), [])

    def test_changes_of_the_code_are_noticed(self):
        for path, old, new in (
                ("wire/frame.h", "Le32 session;\n  Le32 sequence;", "Le32 sequence;\n  Le32 session;"),
                ("wire/frame.h", "Le16 ack_delay", "Le32 ack_delay"),
                ("wire/frame.h", "kAckNow = 16", "kAckNow = 64"),
                ("wire/frame.h", "fin = 3", "fin = 9"),
                ("wire/opening.h", "Le16 frame_max; ", "Le32 frame_max; "),
                ("wire/ack.h", "kAckRangesMax = 32", "kAckRangesMax = 31"),
                ("wire/segment.cc", "{kPeerId | kOffset, 0, false, true}", "{kPeerId | kOffset, 0, true, true}"),
                ("wire/segment.h", "  credit, ", "  gift, "),
                ("multipath/rtt_estimator.h", "kRtoMin = 200us", "kRtoMin = 201us"),
                ("multipath/rtt_estimator.h", "kOutlierFactor = 8;", "kOutlierFactor = 8; static constexpr int kAnother = 3;"),
                ("protocol/pull_budget.h", "kBudgetMin = 3 * kPieceMin", "kBudgetMin = 2 * kPieceMin"),
                ("provider/options.def", 'peer_timeout, duration, "ms", "20000"', 'peer_timeout, duration, "ms", "9000"')):
            self.assertTrue(self.noticed(SOURCE + path, old, new), f"{path}: {new}")

    def test_changes_of_the_document_are_noticed(self):
        for old, new in (
                ("| 12 | session | 4 |", "| 12 | session | 8 |"), ("| 40 | features | 2 |", "| 40 | futures | 2 |"),
                ("| 16 | ack now |", "| 17 | ack now |"), ("3 fin, 4 keep_alive", "4 fin, 3 keep_alive"),
                ("| 7 | done:", "| 8 | done:"), ("| 200 ms | 2.4 |", "| 300 ms | 2.4 |"),
                ("200 ms later", "300 ms later"), ("| 64 bytes | 5.2 |", "| 64 bytes | 5.3 |"),
                ("| `multipath/rtt_estimator.h: kRtoMax`", "| `multipath/rtt_estimator.h: kRtoLargest`"),
                ("## 8. The numbers", "## 9. The numbers")):
            self.assertTrue(self.noticed(wire_document.DOCUMENT, old, new), new)


if __name__ == "__main__":
    unittest.main()
