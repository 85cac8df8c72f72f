#!/bin/bash
# Runs the tests of RDMA devices over soft-RoCE, as root on a machine whose kernel has rdma_rxe, such as a virtual machine:
#
#   in_guest.sh BUILD [FILTER]
#
# The script makes three nodes of the machine, each an interface of one network. The first two have a device. No two nodes share
# memory. FILTER: of the conformance suite, instead of a part of it that fits an interpreted machine, and no MPI job.
set -eu
build=$(readlink -f "$1")
filter=${2:-Message.*:Tagged.*:Rma.*:Atomic.*:Matching.*}
here=$(dirname "$(readlink -f "$0")")
export FI_PROVIDER=cluster FI_PROVIDER_PATH=$build/prov/cluster FI_CLUSTER_SHM=no
export PYTHONDONTWRITEBYTECODE=1 LIFE_PATIENCE=${LIFE_PATIENCE:-10} CONFORMANCE_ROUNDS=${CONFORMANCE_ROUNDS:-100}
ulimit -l unlimited

sysctl -qw net.ipv4.conf.all.arp_ignore=1 # an interface answers for its own address only
ip link add bridge0 type bridge
ip link set bridge0 up
for i in 0 1 2; do
    ip link add verbs$i type veth peer name port$i
    ip link set port$i master bridge0 up
    ip addr add 10.98.0.$((i + 1))/24 dev verbs$i
    ip link set verbs$i up
    sysctl -qw net.ipv4.conf.verbs$i.accept_local=1 net.ipv4.conf.verbs$i.rp_filter=0
    [ $i = 2 ] || rdma link add rxe_verbs$i type rxe netdev verbs$i
done
rdma link

verbs="FI_CLUSTER_LINK=verbs FI_CLUSTER_SHM=no"
export CONFORMANCE_ENV_A="$verbs FI_CLUSTER_IFACE=verbs0" CONFORMANCE_ENV_B="$verbs FI_CLUSTER_IFACE=verbs1" CONFORMANCE_SECONDS=600
"$build/fabtests/conformance/conformance" --gtest_brief=1 --gtest_filter="$filter"

# If queues of the kernel overflow, soft-RoCE reports some failed reads as done (docs/design/21-verbs.md).
backlog=$(sysctl -n net.core.netdev_max_backlog)
sysctl -qw net.core.netdev_max_backlog=150
"$build/fabtests/conformance/conformance" --gtest_brief=1 --gtest_filter=Message.BothWaysAtOnce --gtest_repeat=4
sysctl -qw net.core.netdev_max_backlog="$backlog"

python3 "$here/verbs_test.py" --build "$build" --program "$build/fabtests/life/life_peer" --devices verbs0 verbs1

# A job over mixed nodes: two have a device, the third one has none.
[ $# = 1 ] || exit 0
said=$(mktemp)
check=("$build/fabtests/mpi/mpi_check" --rounds 1 --timeout 600 --skip shared_by_a_node --skip persistent_buffered)
mpirun --allow-run-as-root --oversubscribe -x FI_CLUSTER_RAILS=none --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include cluster --mca osc pt2pt \
    --mca mpi_yield_when_idle 1 -x FI_LOG_LEVEL=info \
    -np 1 env FI_CLUSTER_LINK=verbs FI_CLUSTER_IFACE=verbs0 "${check[@]}" : -np 1 env FI_CLUSTER_LINK=verbs FI_CLUSTER_IFACE=verbs1 "${check[@]}" : \
    -np 1 env FI_CLUSTER_LINK=auto FI_CLUSTER_IFACE=verbs2 "${check[@]}" > "$said" 2>&1 || { tail -50 "$said"; exit 1; }
for line in "PASS mpi_check" "to queue pair .* works" "reads its long messages" "no RDMA device has a RoCE"; do
    grep -m 1 -- "$line" "$said" || { echo "the job over mixed nodes does not say: $line"; exit 1; }
done
