"""Runs Debian's hpcc with a small input over virtual nodes and checks every result of its own verification.

Options are those of run_mpi.py; the program is given by this script.
"""
import os
import re
import sys
import tempfile

import run_mpi

# The format is line by line what hpcc reads; the words behind the values are for people.
_INPUT = """\
HPLinpack benchmark input file
small enough for a test
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{size}       Ns
1            # of NBs
40           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{rows}       Ps
{columns}    Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### a line that is not read #####
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""


def write_input(directory, ranks, size):
    rows = max(r for r in range(1, int(ranks**0.5) + 1) if ranks % r == 0)
    with open(os.path.join(directory, "hpccinf.txt"), "w", encoding="ascii") as file:
        file.write(_INPUT.format(size=size, rows=rows, columns=ranks // rows))


def failures(text):
    """What is wrong in hpccoutf.txt; nothing if every check of every part passed."""
    found = []
    if "End of HPC Challenge tests" not in text:
        found.append("hpcc did not reach its end")
    summary = dict(re.findall(r"^(\w+)=(\S+)$", text, re.MULTILINE))
    if summary.get("Success") != "1":
        found.append(f"Success={summary.get('Success')}")
    for name, value in summary.items():
        if name.endswith("_Errors") and float(value) != 0:
            found.append(f"{name}={value}")
    passed = len(re.findall(r"\.\.\. PASSED|^WALL .* PASSED ", text, re.MULTILINE))
    if passed < 2:
        found.append("HPL or PTRANS reports no PASSED")
    for count, what in re.findall(r"(\d+) tests completed and (failed residual checks)", text):
        if int(count):
            found.append(f"{count} tests {what}")
    for line in re.findall(r"^.*\b(?:FAILED|Failed)\b.*$", text, re.MULTILINE):
        if not re.search(r"\b(?:FAILED|Failed)\D*0+\s*$", line):
            found.append(line.strip())
    for count in re.findall(r"Node\(s\) with error (\d+)", text):
        if int(count):
            found.append(f"{count} nodes with errors")
    for count, places in re.findall(r"Found (\d+) errors in (\d+) locations", text):
        if int(count) > int(places) // 100:
            found.append(f"{count} errors in {places} locations")
    return found


def main():
    options = run_mpi.arguments()
    run_mpi.virtual_nodes.require("mpirun", "hpcc")
    with tempfile.TemporaryDirectory(prefix="hpcc-") as directory:
        write_input(directory, options.ranks, 200)
        options.directory, options.program = directory, ["hpcc"]
        status, output, _ = run_mpi.launch(options, run_mpi.cluster_for(options))
        print(output)
        path = os.path.join(directory, "hpccoutf.txt")
        text = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
    wrong = ([f"exit status {status}"] if status else []) + failures(text)
    if wrong:
        print(text)
    for line in wrong:
        print(f"FAIL: {line}")
    print("" if wrong else "PASS hpcc: HPL, PTRANS, RandomAccess, STREAM, FFT, DGEMM and the rings are correct")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
