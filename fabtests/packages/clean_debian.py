"""A new Debian in a directory, made by mmdebstrap, and programs that run in it as on a machine of its own.

They run in their own mount, process and, if wanted, network namespaces, with the directory as the root of the mount
namespace: a mere chroot would be left by every program that enters namespaces, as vcluster does.
"""
import os
import shlex
import shutil
import subprocess

_ENTER = """
mount --make-rprivate /
mount --bind "$0" "$0"
cd "$0"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 run run
mkdir -p dev/shm dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
pivot_root . mnt
umount -l /mnt
cd /
if [ "$1" = alone ]; then ip link set lo up 2>/dev/null || true; fi
exec /bin/sh -ec "$2"
"""
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_NETWORK, _TRUSTED = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf"), "/etc/ssl/certs/ca-certificates.crt"
_SOURCES = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")


class CleanDebian:
    def __init__(self, directory, transcript):
        self.root = os.path.join(directory, "root")
        self.transcript = transcript
        self.directory = directory

    def make(self, suite, packages):
        """From where this machine has its packages, and as it fetches them."""
        settings = os.path.join(self.directory, "fetching.conf")
        dumped = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True).stdout
        with open(settings, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in dumped.splitlines() if line.startswith("Acquire::") and '""' not in line)
        sources = [path for path in _SOURCES if os.path.exists(path)][:1]
        return subprocess.run(["mmdebstrap", "--mode=root", "--variant=apt", f"--aptopt={settings}",
                               f"--include={','.join(packages)}", suite, self.root, *sources],
                              capture_output=True, text=True, check=False, timeout=2400)

    def join_network(self):
        """Programs in it reach what this machine reaches, and trust the same certificates. Services are not started: nothing in it
        would end them."""
        for path in (*_NETWORK, _TRUSTED):
            if os.path.exists(path):
                shutil.copyfile(path, self.root + path)
        refusal = os.path.join(self.root, "usr/sbin/policy-rc.d")
        with open(refusal, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexit 101\n")
        os.chmod(refusal, 0o755)

    def run(self, script, alone=True, limit=600):
        """The output of a shell script; the transcript has both. `alone`: without the network of this machine."""
        self.transcript.write("".join(f"# {line}\n" for line in script.strip().splitlines()))
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", *(["--net"] if alone else []),
                   "/bin/sh", "-ec", _ENTER, self.root, "alone" if alone else "with-network", script]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                errors="replace", env=_ENVIRONMENT, check=False, timeout=limit)
        self.transcript.write(result.stdout + (f"(exit status {result.returncode})\n" if result.returncode else "") + "\n")
        self.transcript.flush()
        if result.returncode != 0:
            raise RuntimeError(f"exit status {result.returncode}: {shlex.quote(script)}\n{result.stdout}")
        return result.stdout

    def files(self):
        """Every path that is not a record of the package manager, a log or a cache."""
        kept = set()
        for folder, names, files in os.walk(self.root):
            inside = os.path.normpath("/" + os.path.relpath(folder, self.root))
            names[:] = [name for name in names if os.path.join(inside, name) not in
                        ("/var/lib/dpkg", "/var/lib/apt", "/var/cache", "/var/log", "/proc", "/sys", "/dev", "/run", "/tmp", "/packages")]
            kept.update(os.path.normpath(os.path.join(inside, name)) for name in [*names, *files])
        return kept - {"/etc/ld.so.cache"}
