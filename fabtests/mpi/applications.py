"""Real programs from Debian with small inputs, and the numbers that they compute.

    start alone        LAMMPS without any work: what the launcher, MPI_Init and MPI_Finalize take
    LAMMPS             a Lennard-Jones liquid of 6,912 atoms: every step exchanges ghost atoms with the neighbours
    GROMACS            884 molecules of water with particle mesh Ewald: small messages to many neighbours, then reductions
    Quantum ESPRESSO   silicon, self-consistent: Fourier transforms spread over all ranks, many all-to-alls
    hpcc               HPC Challenge: linear algebra, transposition, random access and Fourier transform, which it checks itself
"""
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

import hpcc

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
run {steps}
"""

_ESPRESSO = """\
&control
  calculation='scf', prefix='si', pseudo_dir='/usr/share/espresso/pseudo', outdir='./', tprnfor=.true.
/
&system
  ibrav=2, celldm(1)=10.2, nat=2, ntyp=1, ecutwfc=30.0
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
 {grid} {grid} {grid} 1 1 1
"""

_TOPOLOGY = """\
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
water
[ molecules ]
"""
_WATER = """\
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
constraints = h-bonds
"""
_MINIMUM = "integrator = steep\nnsteps = 100\n" + _WATER
_DYNAMICS = """\
integrator = md
dt = 0.002
nsteps = {steps}
tcoupl = v-rescale
tc-grps = System
tau-t = 0.1
ref-t = 300
gen-vel = yes
gen-seed = 1
ld-seed = 1
nstenergy = 100
nstlog = 100
nstcalcenergy = 100
""" + _WATER


def _write(directory, name, text):
    with open(os.path.join(directory, name), "w", encoding="ascii") as file:
        file.write(text)


def _read(directory, name):
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _prepare_water(directory, steps):
    """A box of water, at rest."""
    def gmx(*words):
        subprocess.run(["gmx", *words], cwd=directory, check=True, capture_output=True, timeout=120)

    _write(directory, "water.top", _TOPOLOGY)
    _write(directory, "minimum.mdp", _MINIMUM)
    _write(directory, "dynamics.mdp", _DYNAMICS.format(steps=steps))
    gmx("solvate", "-cs", "spc216.gro", "-box", "3", "3", "3", "-o", "solvent.gro", "-p", "water.top")
    gmx("grompp", "-f", "minimum.mdp", "-c", "solvent.gro", "-p", "water.top", "-o", "minimum.tpr", "-maxwarn", "3")
    gmx("mdrun", "-s", "minimum.tpr", "-ntomp", "1", "-pin", "off", "-deffnm", "minimum", "-c", "rest.gro")
    gmx("grompp", "-f", "dynamics.mdp", "-c", "rest.gro", "-p", "water.top", "-o", "water.tpr", "-maxwarn", "3")


def _start_numbers(directory, said):
    """A number if the program ended as it should. It computes nothing."""
    return [1.0] if "Total wall time" in said else []


def _lammps_numbers(directory, said):
    """The first 100 steps, one line for 20 of them: later, trajectories part by the order of additions."""
    table = re.search(r"^Step Temp .*?\n(.*?)^Loop time", said, re.MULTILINE | re.DOTALL)
    return [float(word) for line in table.group(1).splitlines()[:6] for word in line.split()] if table else []


def _espresso_numbers(directory, said):
    found = re.findall(r"^! +total energy += +(\S+) Ry", said, re.MULTILINE)
    found += [word for line in re.findall(r"atom .* force = +(.*)$", said, re.MULTILINE) for word in line.split()]
    return [float(word) for word in found]


def _gromacs_numbers(directory, said):
    """The mean energies of a run that has ended. The pressure is left out: it is the small difference of large numbers."""
    log = _read(directory, "water.log")
    means = re.search(r"A V E R A G E S.*?Energies \(kJ/mol\)\n.*?\n(.*?)\n.*?\n(.*?)\n", log, re.DOTALL)
    return [float(word) for line in means.groups() for word in line.split()][:8] if means and "Finished mdrun" in log else []


def _hpcc_numbers(directory, said):
    """A number if all of its own checks passed. Its figures are times."""
    return [] if hpcc.failures(_read(directory, "hpccoutf.txt")) else [1.0]


@dataclass(frozen=True)
class Application:
    name: str
    program: str
    words: tuple  # of the command line, in the directory that prepare() filled
    prepare: object  # of a directory, the number of ranks, and how much: of `short` or `usual`
    numbers: object  # of the directory and what the job printed, to the results; none if there are none
    tolerance: float  # how far results may differ between two ways, as a part of them
    short: float  # for a test
    usual: float  # for a table of times


APPLICATIONS = (
    Application("start alone", "lmp", ("-log", "none", "-in", "in.empty"),
                lambda directory, ranks, amount: _write(directory, "in.empty", ""), _start_numbers, 0, 0, 0),
    Application("LAMMPS", "lmp", ("-log", "none", "-in", "in.liquid"),
                lambda directory, ranks, steps: _write(directory, "in.liquid", _LAMMPS.format(steps=steps)), _lammps_numbers, 1e-6, 100, 3000),
    # Reductions may add in another order, and trajectories part after some hundred steps: the means are near.
    Application("GROMACS", "gmx_mpi", ("mdrun", "-s", "water.tpr", "-deffnm", "water", "-ntomp", "1", "-pin", "off", "-noconfout", "-reprod"),
                lambda directory, ranks, steps: _prepare_water(directory, steps), _gromacs_numbers, 2e-2, 200, 4000),
    Application("Quantum ESPRESSO", "pw.x", ("-in", "si.in"),
                lambda directory, ranks, grid: _write(directory, "si.in", _ESPRESSO.format(grid=grid)), _espresso_numbers, 1e-6, 1, 4),
    Application("hpcc", "hpcc", (), hpcc.write_input, _hpcc_numbers, 0, 200, 2000),
)


def installed(application):
    return shutil.which(application.program) is not None


def near(application, ours, theirs):
    """Whether two ways gave the same results."""
    return bool(ours) and len(ours) == len(theirs) and all(
        abs(a - b) <= application.tolerance * max(1.0, abs(b)) for a, b in zip(ours, theirs))


def compare(matrix, path):
    """The short form of each program over a path of the matrix, and over TCP."""
    for application in APPLICATIONS:
        if not installed(application):
            print(f"     {application.program} is not installed: left out")
            continue
        results = []
        for way in (path, "tcp"):
            with tempfile.TemporaryDirectory(prefix="application-") as directory:
                application.prepare(directory, matrix.options.ranks, application.short)
                said = matrix.run("openmpi4", way, [shutil.which(application.program), *application.words], "", ["--directory", directory])
                results.append(application.numbers(directory, said or ""))
        ours, theirs = results
        equal = near(application, ours, theirs)
        matrix.rows.append(("openmpi4", path, f"{application.program} as over TCP", equal))
        print(f"{'ok  ' if equal else 'FAIL'} openmpi4  {path:7} {application.program}: {len(ours)} results, as over TCP: {equal}")
        if not equal:
            print(ours[:12], theirs[:12])
