"""Two real applications on small inputs: their results over the provider must be those over TCP.

    LAMMPS             a Lennard-Jones liquid: every step exchanges ghost atoms with the neighbours
    Quantum ESPRESSO   silicon, self-consistent: Fourier transforms spread over all ranks, many all-to-alls
"""
import os
import re
import shutil
import tempfile

_LAMMPS = """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 12 0 12 0 12
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 20
run 100
"""

_ESPRESSO = """\
&control
  calculation='scf', prefix='si', pseudo_dir='/usr/share/espresso/pseudo', outdir='./', tprnfor=.true.
/
&system
  ibrav=2, celldm(1)=10.2, nat=2, ntyp=1, ecutwfc=18.0
/
&electrons
  conv_thr=1.0d-9
/
ATOMIC_SPECIES
 Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.26 0.25 0.25
K_POINTS automatic
 2 2 2 1 1 1
"""


def _lammps_numbers(text):
    table = re.search(r"^Step Temp .*?\n(.*?)^Loop time", text, re.MULTILINE | re.DOTALL)
    return [float(word) for word in table.group(1).split()] if table else []


def _espresso_numbers(text):
    found = re.findall(r"^! +total energy += +(\S+) Ry", text, re.MULTILINE)
    found += [word for line in re.findall(r"atom .* force = +(.*)$", text, re.MULTILINE) for word in line.split()]
    return [float(word) for word in found]


_APPLICATIONS = (
    # program, its arguments, name and text of the input, what its results are, how far they may differ
    ("lmp", ["-log", "none", "-in"], "in.liquid", _LAMMPS, _lammps_numbers, 1e-6),
    ("pw.x", ["-in"], "si.in", _ESPRESSO, _espresso_numbers, 1e-6))


def compare(matrix, path):
    for program, arguments, name, text, numbers, tolerance in _APPLICATIONS:
        found = shutil.which(program)
        if not found:
            print(f"     {program} is not installed: left out")
            continue
        results = []
        for way in (path, "tcp"):
            with tempfile.TemporaryDirectory(prefix="application-") as directory:
                with open(os.path.join(directory, name), "w", encoding="ascii") as file:
                    file.write(text)
                said = matrix.run("openmpi4", way, [found, *arguments, os.path.join(directory, name)], "",
                                  ["--directory", directory])
            results.append(numbers(said or ""))
        ours, theirs = results
        equal = bool(ours) and len(ours) == len(theirs) and all(
            abs(a - b) <= tolerance * max(1.0, abs(b)) for a, b in zip(ours, theirs))
        matrix.rows.append(("openmpi4", path, f"{program} as over TCP", equal))
        print(f"{'ok  ' if equal else 'FAIL'} openmpi4  {path:7} {program}: {len(ours)} results, as over TCP: {equal}")
        if not equal:
            print(ours[:12], theirs[:12])
