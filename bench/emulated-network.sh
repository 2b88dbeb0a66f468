#!/usr/bin/env bash
# emulated-network.sh [--delay TIME] [--rate RATE] RANKS COMMAND [ARGUMENT...]
# emulated-network.sh [--delay TIME] [--rate RATE] --ping
#
# Runs RANKS MPI ranks of COMMAND as if each were on a node of its own, with its own host name and
# network device, behind a cable that takes TIME (1ms, 50us; one way) and carries RATE (1gbit,
# 200mbit). So it can be seen on one machine what messages cost:
#
#   bench/emulated-network.sh --delay 1ms --rate 1gbit 4 build/release/bin/mpi4dl bench halo
#
# --ping shows how long a packet takes from node 0 to node 1 and back.
#
# Linux, root, Open MPI 4. Everything lives in namespaces of its own: this machine's network is not
# touched, no address can clash with one of its own, and the kernel removes it all when the command
# ends, however it ends. The network is a program, bench/switch.cpp: many kernels lack tc's netem.
set -euo pipefail

self=$(realpath "${BASH_SOURCE[0]}")
project=$(dirname "$self")/..
switch=$project/build/release/bin/emulated-switch
network=10.77.0

complain() {
  echo "emulated-network.sh: $*" >&2
  exit 2
}

# seconds 50us: 0.00005
seconds() {
  [[ $1 =~ ^([0-9]+|[0-9]*\.[0-9]+)(us|ms|s)$ ]] ||
    complain "--delay $1 is not a time such as 1ms or 50us"
  local -A scale=([us]=1e-6 [ms]=1e-3 [s]=1)
  awk "BEGIN { print ${BASH_REMATCH[1]} * ${scale[${BASH_REMATCH[2]}]} }"
}

# bits_per_second 200mbit: 2e+08
bits_per_second() {
  [[ $1 =~ ^([0-9]+|[0-9]*\.[0-9]+)(kbit|mbit|gbit)$ ]] ||
    complain "--rate $1 is not a rate such as 1gbit or 200mbit"
  local -A scale=([kbit]=1e3 [mbit]=1e6 [gbit]=1e9)
  awk "BEGIN { print ${BASH_REMATCH[1]} * ${scale[${BASH_REMATCH[2]}]} }"
}

# on_node NUMBER COMMAND...: becomes COMMAND on that node.
on_node() {
  local number=$1
  shift
  # shellcheck disable=SC2016 # for the inner shell
  exec nsenter --net="/run/netns/node$number" unshare --uts \
    bash -c 'hostname "$0"; exec "$@"' "node$number" "$@"
}

# connect NODES DELAY_SECONDS BITS_PER_SECOND: makes the nodes and the network between them.
connect() {
  mkdir -p /run/netns
  mount -t tmpfs none /run/netns
  # Before everybody else, or it would deliver late when all cores compute.
  coproc chrt --fifo 1 "$switch" "$@"
  local ready=
  read -r ready <&"${COPROC[0]}" || true
  [ "$ready" = ready ] || exit 1
  local i
  for ((i = 0; i < $1; ++i)); do
    local node=node$i
    ip netns add "$node"
    ip link set "$node" netns "$node"
    ip -n "$node" link set lo up
    ip -n "$node" link set "$node" address "$(printf '02:00:00:00:00:%02x' "$i")" mtu 9000 up
    ip -n "$node" address add "$network.$((i + 1))/24" dev "$node"
  done
}

# Inside the namespaces: RANKS DELAY_SECONDS BITS_PER_SECOND COMMAND...
run_inside() {
  connect "$1" "$2" "$3"
  local ranks=$1 hosts="$network.1:1" i
  shift 3
  if [ "$1" = --ping ]; then
    on_node 0 ping -c 10 -i 0.2 "$network.2"
  fi
  for ((i = 2; i <= ranks; ++i)); do hosts+=",$network.$i:1"; done
  # Ranks do not see that they share their cores, so they are told.
  local share=$(($(nproc) / ranks))
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((share > 0 ? share : 1))}
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  on_node 0 mpirun -np "$ranks" --host "$hosts" --bind-to none -x OMP_NUM_THREADS \
    --mca plm_rsh_agent "$self --enter" --mca plm_rsh_no_tree_spawn 1 \
    --mca oob_tcp_if_include "$network.0/24" --mca btl_tcp_if_include "$network.0/24" \
    --mca pml ob1 --mca btl self,tcp "$@"
}

case ${1:-} in
  --inside)
    shift
    run_inside "$@"
    ;;
  --enter) # for mpirun: the address of a node, then what to run there
    number=$((${2##*.} - 1))
    shift 2
    on_node "$number" sh -c "$*"
    ;;
esac

delay=0s rate=0gbit
while [[ ${1:-} == --* && $1 != --ping ]]; do
  case $1 in
    --delay) delay=${2:-} ;;
    --rate) rate=${2:-} ;;
    *) complain "unknown option $1" ;;
  esac
  shift $(($# < 2 ? 1 : 2))
done
if [ "${1:-}" = --ping ]; then
  set -- 2 --ping
fi
[[ ${1:-} =~ ^[0-9]+$ && $1 -ge 1 && $1 -le 250 && $# -ge 2 ]] ||
  complain "give the number of ranks (1 to 250) and a command, or --ping"
delay=$(seconds "$delay")
rate=$(bits_per_second "$rate")
[ "$(id -u)" = 0 ] || complain "only root may make networks"
[ -x "$switch" ] || complain "$switch is missing: cmake --build --preset release"
if ! { command -v ip && command -v ping; } >/dev/null; then
  "$project/scripts/setup.sh" iproute2 iputils-ping >&2
fi

ranks=$1
shift
unshare --net --mount --pid --fork --kill-child --mount-proc \
  "$self" --inside "$ranks" "$delay" "$rate" "$@" &
trap 'kill -KILL $!' INT TERM
wait $!
