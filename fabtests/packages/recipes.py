"""What the recipes in packaging say: version, commands, options of CMake, and files that they expect in an installed tree.

A recipe for Spack or EasyBuild is Python that calls functions and uses names of the tool; here it runs with stand-ins for these.
"""
import os
import re
import sys
import types
from dataclasses import dataclass, field

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
PACKAGING = os.path.join(TOP, "packaging")
NAME = "libfabric-cluster"


@dataclass
class Recipe:
    name: str
    versions: list
    options: dict  # of CMake
    commands: list = field(default_factory=list)  # of a shell, where the recipe has such
    files: list = field(default_factory=list)  # below the prefix; `*` stands for any characters
    licence: str = ""


def text(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


def project_version():
    return re.search(r"^project\(cluster VERSION ([\d.]+)", text("CMakeLists.txt"), re.MULTILINE).group(1)


def options_in(words):
    return dict(re.findall(r"-D([A-Z_]+)=(\S+)", words))


class _CMakePackage:
    """Stands for Spack's class."""

    def define(self, name, value):
        return f"-D{name}={value if isinstance(value, str) else 'ON' if value else 'OFF'}"


def spack():
    said = {}

    def directive(name):
        return lambda *words, **options: said.setdefault(name, []).append((words, options))

    modules = {"spack_repo": types.ModuleType("spack_repo"), "spack": types.ModuleType("spack")}
    for name in ("spack_repo.builtin", "spack_repo.builtin.build_systems", "spack_repo.builtin.build_systems.cmake", "spack.package"):
        modules[name] = types.ModuleType(name)
    modules["spack_repo.builtin.build_systems.cmake"].__dict__.update({"CMakePackage": _CMakePackage, "generator": directive("generator")})
    names = ("license", "version", "variant", "depends_on")
    modules["spack.package"].__dict__.update({"join_path": os.path.join, **{name: directive(name) for name in names}})
    modules["spack.package"].__all__ = ["join_path", *names]
    path = ("packaging", "spack", "spack_repo", "cluster", "packages", NAME.replace("-", "_"), "package.py")
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        space = {}
        exec(compile(text(*path), path[-1], "exec"), space)  # pylint: disable=exec-used
    finally:
        for name, module in before.items():
            sys.modules.pop(name)
            if module:
                sys.modules[name] = module
    recipe = space["LibfabricCluster"]()
    versions = [words[0] for words, _ in said["version"]] + re.findall(rf"{NAME}-([\d.]+)\.tar", recipe.url)
    return Recipe("Spack", versions, options_in(" ".join(recipe.cmake_args())), files=recipe.sanity_check_is_file,
                  licence=said["license"][0][0][0])


def easybuild():
    folder = os.path.join(PACKAGING, "easybuild")
    path, = os.listdir(folder)
    space = {"SOURCE_TAR_GZ": "%(name)s-%(version)s.tar.gz"}
    exec(compile(text("packaging", "easybuild", path), path, "exec"), space)  # pylint: disable=exec-used
    if path != f"{space['name']}-{space['version']}-{space['toolchain']['name']}-{space['toolchain']['version']}.eb":
        raise AssertionError(f"EasyBuild does not find {path} by its name")
    return Recipe("EasyBuild", [space["version"]], options_in(space["configopts"]), files=space["sanity_check_paths"]["files"])


def conda():
    recipe = text("packaging", "conda", "recipe.yaml")

    def listed(key):
        return re.findall(r"- (.*)", re.search(rf"^( +){key}:\n((?:\1  +- .*\n)+)", recipe, re.MULTILINE).group(2))

    commands = listed("script")
    return Recipe("conda", re.findall(r'^  version: "(.*)"', recipe, re.MULTILINE), options_in(" ".join(commands)), commands, listed("files"),
                  re.search(r"^  license: (.*)", recipe, re.MULTILINE).group(1))


def container():
    lines = re.sub(r"\\\n *", "", text("packaging", "Containerfile"))
    commands = [part.strip() for line in re.findall(r"^RUN (.*cmake.*)", lines, re.MULTILINE) for part in line.split("&&")]
    commands = [re.sub(r"^DESTDIR=\S+ ", "", command) for command in commands if "apt-get" not in command]
    return Recipe("container", [], options_in(" ".join(commands)), commands)


def rpm():
    spec = text("packaging", f"{NAME}.spec")
    build = spec.partition("\n%build\n")[2].partition("\n%install\n")[0]
    listed = [line.split()[-1] for part in re.split(r"^%files.*$", spec, flags=re.MULTILINE)[1:]
              for line in part.partition("\n%changelog")[0].splitlines() if line.startswith(("%{", "%dir"))]
    places = {"_libdir": "lib", "_mandir": "share/man", "_includedir": "include", "_docdir": "share/doc", "_bindir": "bin", "_sbindir": "sbin",
              "_libexecdir": "libexec", "_datadir": "share", "_unitdir": "lib/systemd/system", "name": NAME}
    files = [re.sub(r"%\{(\w+)\}", lambda found: places[found.group(1)], line) for line in listed]
    return Recipe("RPM", re.findall(r"^Version: *(.*)", spec, re.MULTILINE), options_in(build), files=files,
                  licence=re.search(r"^License: *(.*)", spec, re.MULTILINE).group(1))


def debian():
    rules = text("debian", "rules")
    return Recipe("Debian", [re.match(r".*\(([\d.]+)-", text("debian", "changelog")).group(1)], options_in(rules))


def all_of_them():
    return [spack(), easybuild(), conda(), container(), rpm(), debian()]
