# shellcheck shell=bash
# source scripts/env.sh: puts the built program on the PATH, and tells Open MPI what it wants to be
# told where root starts ranks, or more ranks than cores, on one machine.
mpi4dl_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH=$mpi4dl_folder/build/${MPI4DL_PRESET:-release}/bin:$PATH
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1                   # Open MPI 4
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe  # Open MPI 5
# No network, unless one was chosen: looking for one takes a quarter of a second a start.
export OMPI_MCA_btl=${OMPI_MCA_btl:-^tcp} OMPI_MCA_pml=${OMPI_MCA_pml:-ob1}
unset mpi4dl_folder
