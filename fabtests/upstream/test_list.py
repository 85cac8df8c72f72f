"""The tests of libfabric's own fabtests that run here: the sets of their runfabtests.sh, and tests that these leave
out.

A line is a program and its arguments; SERVER and GOOD stand for addresses. Each set says how its
programs are started (see KINDS). `quick` is for a first look, `all` is everything.
"""

import os
import re

KINDS = {
    "alone": "one process, exit status 0",
    "refused": "one process that asks for a host that does not exist, exit status ENODATA",
    "pair": "a server and a client",
    "three": "a server and two more",
    "uber": "the server and the client of fi_ubertest, with a configuration",
}

FLAVOURS = ("", " -U", " -v", " -v -U")  # plain, delivery complete, verified, both


def _each(lines, flavours=FLAVOURS):
    return [line + flavour for line in lines for flavour in flavours]


UNIT = [
    "fi_getinfo_test -s SERVER GOOD",
    "fi_av_test -g GOOD -n 1 -s SERVER -e rdm",
    "fi_av_test -g GOOD -n 1 -s SERVER -e dgram",
    "fi_dom_test -n 2",
    "fi_eq_test",
    "fi_cq_test",
    "fi_mr_test",
    "fi_cntr_test",
    "fi_mr_cache_evict",
    "fi_check_hmem",
    "fi_setopt_test",
]


def unit_programs(paths):
    """Lines for those in a folder `unit` that no line above names: whatever a later version adds is run without arguments."""
    named = {line.split()[0] for line in UNIT}
    return sorted({os.path.basename(path) for path in paths if os.path.basename(os.path.dirname(path)) == "unit"} - named)

NEGATIVE = ["fi_dgram g00n13s", "fi_rdm g00n13s", "fi_msg g00n13s"]

_ENDPOINTS = ["-v" + a + q + t for t in ("", " --threading completion") for a, q in
              ((" -A", ""), ("", " -Q"), (" -A", " -Q"), ("", "")) if a or q or t]

FUNCTIONAL = [
    "fi_av_xfer -e rdm",
    "fi_av_xfer -e dgram",
    "fi_cm_data",
    *(f"fi_cq_data -e {kind} -o {what}" for what in ("senddata", "writedata") for kind in ("msg", "rdm", "dgram")),
    "fi_dgram",
    "fi_dgram_waitset",
    "fi_msg",
    "fi_msg_epoll",
    "fi_msg_sockets",
    "fi_rdm",
    "fi_rdm -U",
    "fi_rdm_rma_event",
    "fi_rdm_rma_trigger",
    *(f"fi_shared_ctx{kind}{which}" for kind in ("", " -e msg", " -e dgram")
      for which in ("", " --no-tx-shared-ctx", " --no-rx-shared-ctx")),
    "fi_rdm_tagged_peek",
    "fi_scalable_ep",
    "fi_rdm_shared_av",
    *(f"fi_multi_mr -e {kind} -V" for kind in ("msg", "rdm")),
    *(f"fi_multi_ep -e {kind} {how}" for how in _ENDPOINTS for kind in ("msg", "rdm")),
    *(f"fi_multi_ep -e {kind} -v" for kind in ("msg", "rdm")),
    "fi_recv_cancel -e rdm -V",
    "fi_unexpected_msg -e msg -I 10 -v",
    "fi_unexpected_msg -e rdm -I 10 -v",
    *(f"fi_inject_test {how} -v" for how in ("-A inject", "-N -A inject", "-A inj_complete", "-N -A inj_complete")),
    "fi_flood -e rdm -v -T 1",
    "fi_flood -e rdm -v -T 1 -U",
    "fi_flood -e msg -v -T 1",
    "fi_rdm_multi_client -C 10 -I 5",
    "fi_rdm_multi_client -C 10 -I 5 -U",
    "fi_poll -t queue",
    "fi_poll -t counter",
]


def _measuring(iterations, atomic_iterations):
    """The sets `short` and `standard`: the same programs for a moment and for a while."""
    return [
        *(f"fi_msg_{what}{iterations}{check}" for what in ("pingpong", "bw") for check in ("", " -v")),
        *(f"fi_rma_bw -e msg -o {what}{iterations}" for what in ("write", "read", "writedata")),
        *_each([f"fi_rma_bw -e rdm -o {what}{iterations}" for what in ("write", "read", "writedata")], ("", " -U")),
        *_each([f"fi_rdm_atomic -o all{atomic_iterations}"]),
        f"fi_rdm_cntr_pingpong{iterations}",
        f"fi_multi_recv -e rdm{iterations}",
        f"fi_multi_recv -e msg{iterations}",
        *_each([f"fi_rdm_{what}{iterations}" for what in ("pingpong", "tagged_pingpong", "tagged_bw")]),
        f"fi_dgram_pingpong{iterations}",
    ]


PREFIXED = ["fi_msg_pingpong -k", "fi_msg_pingpong -k -v", *_each(["fi_rdm_pingpong -k"]), "fi_dgram_pingpong -k"]

# In none of their sets, but worth as much.
BEYOND = [
    "fi_resmgmt_test",
    "fi_resmgmt_test -S small",
    "fi_rdm_multi_domain -V",
    "fi_rdm_bw",
    "fi_rma_pingpong -e rdm -o writedata",
    "fi_rma_pingpong -e rdm -o write",
    "fi_rma_tx_completion -e rdm",
    "fi_rdm_deferred_wq",
    "fi_unmap_mem",
]

SETS = {
    "unit": ("alone", UNIT),
    "negative": ("refused", NEGATIVE),
    "regression": ("alone", ["sighandler_test", "fi_loopback"]),
    "functional": ("pair", FUNCTIONAL),
    "short": ("pair", _measuring(" -I 5", " -I 5")),
    "standard": ("pair", _measuring("", " -I 1000") + PREFIXED),
    "beyond": ("pair", BEYOND),
    "multinode": ("three", ["fi_multinode -x msg", "fi_multinode -x rma", "fi_multinode_coll"]),
    "threaded": ("pair", [f"fi_rdm_bw_mt -n {n}{g}" for n in (8, 16, 32) for g in ("", " -g")]),
    "complex": ("uber", ["fi_ubertest"]),
}

QUICK = ("unit", "negative", "regression", "functional", "short", "beyond", "multinode")
ALL = ("unit", "negative", "regression", "functional", "standard", "beyond", "multinode", "threaded", "complex")

# Programs that take `-t counter` and then wait for queues that are not there, open no counters or say that they need
# queues: over libfabric's own tcp they hang, crash or refuse, too.
NOT_COUNTING = ("fi_multi_ep", "fi_rdm_tagged_peek", "fi_unexpected_msg", "fi_inject_test", "fi_multi_recv",
                "fi_rma_bw.* writedata", "fi_rma_pingpong")

# How earlier versions spell the lines above: a pattern and what takes its place.
FORMER = (("^fi_flood", "fi_bw"), ("^fi_inject_test", "fi_msg_inject"), ("^fi_multinode -x", "fi_multinode -C"),
          (r"^(fi_cq_data .*) -o senddata", r"\1"), (r"^(fi_unexpected_msg .*) -v", r"\1"),
          (r"^(fi_multi_ep .*) -A", r"\1 --shared-av"), (r"^(fi_multi_ep .*) -Q", r"\1 --shared-cq"))


def spellings(line):
    """The line, and how an earlier version spells it, if that differs."""
    former = line
    for pattern, replacement in FORMER:
        former = re.sub(pattern, replacement, former)
    return [line] if former == line else [line, former]


def times_longer(line):
    """How many times the usual limit a program may take. fi_rdm_bw_mt moves up to 32 GB, with 32 threads on each side."""
    return 10 if line.startswith("fi_ubertest") else 6 if line.startswith("fi_rdm_bw_mt") else 1


def layers(kind, line):
    """True if the line asks for what ofi_rxm builds on connections: endpoints of type FI_EP_RDM."""
    return kind in ("pair", "three") and not re.search("msg_|-e (msg|dgram)|dgram|^fi_(msg|cm_data)|scalable|shared_ctx", line)


def _names(sets):
    return {"quick": QUICK, "all": ALL}.get(sets, sets.split(","))


def has_unit(sets):
    return "unit" in _names(sets)


def wanted(sets):
    """(set, kind, line) for each line of the sets."""
    return [(name, SETS[name][0], line) for name in _names(sets) for line in SETS[name][1]]
