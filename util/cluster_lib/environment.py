"""The environment for programs that run over one provider and no other."""
import os
import re

_SETTINGS = re.compile(r"(FI|OMPI|PRTE|MPIR|I_MPI|UCX|PSM3)_")


def without_settings():
    """The environment of this process without any setting of libfabric, UCX or an MPI library."""
    return {name: value for name, value in os.environ.items() if not _SETTINGS.match(name)}


def of_provider(directory, **settings):
    """The same, with `cluster` from this directory as the only provider, and with further settings."""
    return {**without_settings(), "FI_PROVIDER_PATH": os.path.abspath(directory), "FI_PROVIDER": "cluster", **settings}
