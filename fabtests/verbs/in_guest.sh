#!/bin/bash
# Runs the tests of RDMA devices over soft-RoCE, as root on a machine whose kernel has rdma_rxe, such as a virtual machine:
#
#   in_guest.sh BUILD [FILTER]
#
# The script makes two nodes of the machine, the ends of a veth pair with a device on each. Between the two lies no shared
# memory. FILTER: of the conformance suite, instead of a part of it that fits an interpreted machine.
set -eu
build=$(readlink -f "$1")
filter=${2:-Message.*:Tagged.*:Rma.*:Atomic.*:Matching.*}
here=$(dirname "$(readlink -f "$0")")
export FI_PROVIDER=cluster FI_PROVIDER_PATH=$build/prov/cluster FI_CLUSTER_SHM=no
export PYTHONDONTWRITEBYTECODE=1 LIFE_PATIENCE=${LIFE_PATIENCE:-10} CONFORMANCE_ROUNDS=${CONFORMANCE_ROUNDS:-100}
ulimit -l unlimited

ip link add verbs0 type veth peer name verbs1
for i in 0 1; do
    ip addr add 10.98.0.$((i + 1))/24 dev verbs$i
    ip link set verbs$i up
    sysctl -qw net.ipv4.conf.verbs$i.accept_local=1 net.ipv4.conf.verbs$i.rp_filter=0
    rdma link add rxe_verbs$i type rxe netdev verbs$i
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

# Random histories of remote accesses, judged. With FILTER the run is to be short.
[ $# -gt 1 ] || "$build/fabtests/litmus/histories" --gtest_brief=1 --batches 2 --sides 2 --seed-of "$(date +%F)"

python3 "$here/verbs_test.py" --build "$build" --program "$build/fabtests/life/life_peer" --devices verbs0 verbs1
