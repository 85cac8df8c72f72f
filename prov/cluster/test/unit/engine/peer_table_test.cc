// Whom an address leads to: names, other addresses of the same peer, handles.
#include "engine/peer_table.h"

#include <gtest/gtest.h>

#include "support/node.h"

namespace cluster::engine {
namespace {

using test::node_name;

struct PeersTest : testing::Test {
  PeersTest() { peers.attach(book); }
  Peer& aliased() {
    Peer& peer = peers.named(node_name(1));
    peers.alias(peer, node_name(2));
    peer.aliased = true;
    return peer;
  }

  AddressTable book;
  PeerTable peers;
};

TEST_F(PeersTest, EachOfItsAddressesLeadsToThePeer) {
  const AddressTable::Handle handle = book.insert(node_name(2));
  Peer& peer = aliased();
  EXPECT_EQ(peers.find(node_name(2)), &peer);
  EXPECT_EQ(&peers.named(node_name(2)), &peer);
  EXPECT_EQ(peers.by_handle(handle), &peer);
  EXPECT_TRUE(peers.is_alias(node_name(2), peer));
  EXPECT_EQ(peers.all().size(), 1u);
}

wire::Opening opening(std::uint64_t epoch, std::uint32_t session) {
  wire::Opening made;
  made.epoch = epoch;
  made.session = session;
  return made;
}

TEST(PastSessionsTest, AConfirmedOneEndsAllBeforeIt) {
  ClosedSessions past;
  EXPECT_FALSE(past.covers(opening(1000, 1)));
  past.note({1000, 1}, true);
  past.note({900, 2}, true);
  EXPECT_TRUE(past.covers(opening(1000, 1)));
  EXPECT_TRUE(past.covers(opening(950, 7)));
  EXPECT_FALSE(past.covers(opening(1001, 1)));
}

/// Found by the simulator (seed 960009536): the late copy of a call whose session was not the last to end
/// brought its message once more.
TEST(PastSessionsTest, OfThoseThatNobodyConfirmedEachIsOverAndNoOther) {
  ClosedSessions past;
  past.note({1000, 1}, false);
  past.note({3000, 2}, false);
  EXPECT_TRUE(past.covers(opening(1000, 1)));
  EXPECT_TRUE(past.covers(opening(3000, 2)));
  EXPECT_FALSE(past.covers(opening(2000, 3))) << "an epoch that was made up makes nobody's stale";
  EXPECT_FALSE(past.covers(opening(1000, 9)));
  EXPECT_EQ(past.epoch(), 3000u);
}

TEST(PastSessionsTest, TheMemoryIsBounded) {
  ClosedSessions past;
  for (std::uint32_t session = 1; session <= 100; ++session) past.note({1000u + session, session}, false);
  EXPECT_FALSE(past.covers(opening(1001, 1)));
  EXPECT_TRUE(past.covers(opening(1100, 100)));
}

TEST_F(PeersTest, NobodyLosesAnAddressToAnother) {
  Peer& owner = peers.named(node_name(2));
  Peer& peer = aliased();
  EXPECT_EQ(peers.find(node_name(2)), &owner);
  EXPECT_FALSE(peers.is_alias(node_name(2), peer));
  peers.forget_aliases(peer);
  EXPECT_EQ(peers.find(node_name(2)), &owner);
}

TEST_F(PeersTest, WithTheSessionOnlyTheNameIsLeft) {
  const AddressTable::Handle handle = book.insert(node_name(2));
  Peer& peer = aliased();
  ASSERT_EQ(peers.by_handle(handle), &peer);
  peers.forget_aliases(peer);
  EXPECT_EQ(peers.find(node_name(1)), &peer);
  EXPECT_EQ(peers.find(node_name(2)), nullptr);
  EXPECT_FALSE(peer.aliased);
  Peer* other = peers.by_handle(handle);
  ASSERT_NE(other, nullptr);
  EXPECT_NE(other, &peer) << "the handle must not lead to whom the address led";
  EXPECT_EQ(other->name(), node_name(2));
}

}  // namespace
}  // namespace cluster::engine
