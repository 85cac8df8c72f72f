# Spack finds this recipe after `spack repo add packaging/spack/spack_repo/cluster`. Run Spack in the directory of the
# source: there `util/package --archive` puts the archive, as no server has it yet.
import os

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class LibfabricCluster(CMakePackage):
    """Provider of libfabric for ordinary Ethernet clusters: shared memory inside a node, raw Ethernet frames or UDP
    between nodes, without a kernel module or a daemon."""

    homepage = "https://ofiwg.github.io/libfabric/"  # of libfabric: the provider has no page of its own
    url = f"file://{os.getcwd()}/build/package/libfabric-cluster-0.9.0.tar.gz"
    manual_download = True

    license("BSD-2-Clause OR GPL-2.0-only")

    version("0.9.0")

    variant("tools", default=True, description="cluster-info, cluster-perf, cluster-dissect and cluster-ip")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("libfabric@1.17:", type=("build", "link", "run"))
    depends_on("cli11", type="build", when="+tools")
    depends_on("nlohmann-json", type="build", when="+tools")
    depends_on("libpcap", when="+tools")
    depends_on("python@3.9:", type="run")

    generator("ninja")

    sanity_check_is_file = ["lib/libfabric/libcluster-fi.so", "include/rdma/fi_ext_cluster.h", "bin/vcluster",
                            "share/man/man7/fi_cluster.7"]

    def cmake_args(self):
        # Warnings of compilers that were not tried yet are no errors.
        return [self.define("CLUSTER_TESTS", False), self.define("CLUSTER_WERROR", False),
                self.define("CMAKE_INSTALL_LIBDIR", "lib")]

    def setup_run_environment(self, env):
        env.prepend_path("FI_PROVIDER_PATH", join_path(self.prefix.lib, "libfabric"))
