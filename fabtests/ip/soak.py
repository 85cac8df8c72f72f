"""Traffic over cluster-ip for a long time, in which its memory may not grow and no byte may be wrong.

    soak.py --program cluster-ip --provider DIRECTORY [--seconds 600]

Two nodes: a TCP stream in each direction and datagrams, all compared. A daemon is restarted in the middle. The memory of the
other one at the end is compared with that after the first tenth. The last line says which rate would bring as many bytes in a day.
"""
import argparse
import itertools
import sys
import time
import unittest

import overlay
from overlay import Options, Overlay, Stream, ipv4, ipv6, virtual_nodes

GROWTH_BYTES_MAX = 4 << 20
STREAM_MEGABYTES = 500
ECHO_PORT = 5007
SECONDS = 600
DAY_SECONDS = 24 * 3600


class Soak(unittest.TestCase):
    carried = "nothing was carried to the end"

    def test_memory_stays(self):
        cluster = virtual_nodes.make(2, suffix="-ip-soak")
        self.addCleanup(cluster.down)
        over = Overlay(self, cluster, 2)
        server = over.listening(2, "echo", ECHO_PORT)
        begun, bytes_sent, early, restarted = time.monotonic(), 0, None, False
        for turn in itertools.count():
            port = 6000 + turn % 1000 * 2
            there, back = Stream(over, 1, 2, ipv4(2), STREAM_MEGABYTES, port), Stream(over, 2, 1, ipv6(1), STREAM_MEGABYTES, port + 1)
            passed = time.monotonic() - begun
            if passed > SECONDS / 2 and not restarted:
                over.daemons[2].kill()
                over.start(2)
                over.daemons[2].knows(1)
                restarted = True
            there.finish(300)
            back.finish(300)
            self.assertEqual(over.ask(1, ipv4(2), ECHO_PORT, 30000), [ipv4(2)], "fragments")
            bytes_sent += 2 * there.bytes
            memory = over.daemons[1].memory_bytes()
            print(f"{passed:6.0f} s: {bytes_sent / 1e9:.1f} GB, {memory >> 10} KB in use", flush=True)
            early = memory if passed <= SECONDS / 10 or early is None else early
            if passed > SECONDS:
                break
        self.assertTrue(restarted)
        self.assertLess(memory - early, GROWTH_BYTES_MAX)
        server.kill()
        print(over.daemons[1].stop())
        Soak.carried = (f"{bytes_sent / 1e9:.1f} GB in {time.monotonic() - begun:.0f} s: equals 24 h of "
                        f"{bytes_sent * 8 / DAY_SECONDS / 1e6:.2f} Mbit/s")


def main():
    global SECONDS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--provider", required=True)
    parser.add_argument("--seconds", type=int, default=SECONDS, help="(default: %(default)s)")
    options = parser.parse_args()
    Options.program, Options.provider, SECONDS = options.program, options.provider, options.seconds
    overlay.require()
    passed = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result.wasSuccessful()
    print(Soak.carried)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
