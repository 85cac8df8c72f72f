// Which peer an address leads to: names, aliases, handles; and the marks of peers that have failed.
#include "transport/peer_table.h"

#include <gtest/gtest.h>

#include <new>

#include "support/failing_memory.h"
#include "support/node.h"

namespace cluster::transport {
namespace {

using test::node_name;

struct PeerTableTest : testing::Test {
  PeerTableTest() { peers.attach(addresses); }
  Peer& with_alias() {
    Peer& peer = peers.find_or_add(node_name(1));
    peers.add_alias(peer, node_name(2));
    return peer;
  }

  AddressTable addresses;
  PeerTable peers;
};

TEST_F(PeerTableTest, EachOfItsAddressesLeadsToThePeer) {
  const AddressTable::Handle handle = addresses.insert(node_name(2));
  Peer& peer = with_alias();
  EXPECT_EQ(peers.find(node_name(2)), &peer);
  EXPECT_EQ(&peers.find_or_add(node_name(2)), &peer);
  EXPECT_EQ(peers.by_handle(handle), &peer);
  EXPECT_TRUE(peers.is_alias(node_name(2), peer));
  EXPECT_EQ(peers.all().size(), 1u);
}

TEST_F(PeerTableTest, AnAddressThatLeadsToAPeerIsNotGivenToAnother) {
  Peer& owner = peers.find_or_add(node_name(2));
  Peer& peer = with_alias();
  EXPECT_EQ(peers.find(node_name(2)), &owner);
  EXPECT_FALSE(peers.is_alias(node_name(2), peer));
  EXPECT_FALSE(peer.has_aliases);
  peers.remove_aliases(peer);
  EXPECT_EQ(peers.find(node_name(2)), &owner);
}

TEST_F(PeerTableTest, WithoutAliasesOnlyTheNameIsLeft) {
  const AddressTable::Handle handle = addresses.insert(node_name(2));
  Peer& peer = with_alias();
  ASSERT_EQ(peers.by_handle(handle), &peer);
  peers.remove_aliases(peer);
  EXPECT_EQ(peers.find(node_name(1)), &peer);
  EXPECT_EQ(peers.find(node_name(2)), nullptr);
  EXPECT_FALSE(peer.has_aliases);
  Peer* other = peers.by_handle(handle);
  ASSERT_NE(other, nullptr);
  EXPECT_NE(other, &peer) << "the handle must not lead to the peer that the address led to";
  EXPECT_EQ(other->name(), node_name(2));
}

TEST_F(PeerTableTest, TheHandleOfAPeerFollowsTheAddressVector) {
  Peer& peer = peers.find_or_add(node_name(1));
  EXPECT_EQ(peers.handle_of(peer.channel), protocol::kAddrNotAvail);
  const AddressTable::Handle handle = addresses.insert(node_name(1));
  EXPECT_EQ(peers.handle_of(peer.channel), handle);
  EXPECT_TRUE(peers.in_address_vector(node_name(1)));
  EXPECT_TRUE(peers.known(node_name(1)));
  addresses.remove(handle);
  EXPECT_EQ(peers.handle_of(peer.channel), protocol::kAddrNotAvail);
  EXPECT_FALSE(peers.known(node_name(1)));
}

TEST_F(PeerTableTest, TheFirstStatusOfAFailedPeerCounts) {
  Peer& first = peers.find_or_add(node_name(1));
  Peer& second = peers.find_or_add(node_name(2));
  peers.mark_failed(first, Status::unreachable);
  peers.mark_failed(first, Status::reset);
  peers.mark_failed(second, Status::reset);
  ASSERT_EQ(peers.failed().size(), 2u);
  EXPECT_EQ(peers.failed()[0].peer, &first);
  EXPECT_EQ(peers.failed()[0].status, Status::unreachable);
  peers.clear_failed(first);
  ASSERT_EQ(peers.failed().size(), 1u);
  EXPECT_EQ(peers.failed()[0].peer, &second);
}

TEST_F(PeerTableTest, AForgottenPeerIsAddedAnew) {
  peers.find_or_add(node_name(1)).reach_reason = "old";
  peers.find_or_add(node_name(2));
  peers.forget([](const Peer& peer) { return peer.name() == node_name(1); });
  EXPECT_EQ(peers.all().size(), 1u);
  EXPECT_EQ(peers.find(node_name(1)), nullptr);
  EXPECT_EQ(peers.find_or_add(node_name(1)).reach_reason, "");
}

TEST_F(PeerTableTest, AnyNumberOfPeersIsLostForWantOfMemory) {
  constexpr int kPeers = 100;
  for (int i = 0; i < kPeers; ++i) peers.find_or_add(node_name(i));
  bool done = false;
  {
    const test::FailingMemory memory(0);
    for (const std::unique_ptr<Peer>& peer : peers.all())
      EXPECT_FALSE(peers.serve(*peer, [] { throw std::bad_alloc(); }));
  }
  ASSERT_EQ(peers.failed().size(), std::size_t{kPeers});
  EXPECT_EQ(peers.failed().front().status, Status::no_memory);
  EXPECT_TRUE(peers.serve(peers.find_or_add(node_name(200)), [&] { done = true; }));
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace cluster::transport
