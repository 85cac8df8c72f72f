"""The environment in which jobs run over the provider: with it Debian's Open MPI needs no options, in scripts as in
forms."""
import os

from cluster_lib import build

_UTIL = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def _provider_directory(settings):
    """The directory of the plugin, or nothing where libfabric finds it by itself."""
    if settings.provider or os.environ.get("FI_PROVIDER_PATH"):
        return settings.provider or os.environ["FI_PROVIDER_PATH"]
    return "" if build.installed else os.path.dirname(build.path("cluster-fi"))


def of_provider(settings):
    """The settings for `cluster` under Open MPI 4."""
    values = {"FI_PROVIDER": "cluster", "OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi", "OMPI_MCA_osc": "pt2pt,sm",
              "OMPI_MCA_mtl_ofi_provider_include": "cluster"}
    directory = _provider_directory(settings)
    if directory:
        values["FI_PROVIDER_PATH"] = directory
    return values


def of_request(base, request):
    """The environment with the user's additions; every rank gets it, whichever mpirun starts it."""
    values = {**base, **request.environment}
    names = [name for name in values if not name.startswith("OMPI_")]
    return {"OMPI_MCA_mca_base_env_list": ";".join(names), **values}


def of_agents(hostfile):
    """The agents start mpirun's remote daemons on the nodes of the job; ranks may share processors."""
    values = {"OMPI_MCA_plm": "rsh", "OMPI_MCA_plm_rsh_agent": f"/usr/bin/python3 -B {os.path.join(_UTIL, 'cluster-remote')}",
              "OMPI_MCA_orte_default_hostfile": hostfile, "OMPI_MCA_hwloc_base_binding_policy": "none",
              "OMPI_MCA_mpi_yield_when_idle": "1"}
    if os.environ.get("TMPDIR"):
        values["OMPI_MCA_orte_tmpdir_base"] = os.environ["TMPDIR"]
    return values
