# shellcheck shell=bash
# source scripts/env.sh: puts the built program on the PATH, and lets Open MPI start ranks as root, and
# more ranks than cores.
mpi4dl_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH=$mpi4dl_folder/build/${MPI4DL_PRESET:-release}/bin:$PATH
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1                   # Open MPI 4
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe  # Open MPI 5
unset mpi4dl_folder
