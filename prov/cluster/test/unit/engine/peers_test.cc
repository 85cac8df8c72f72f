// Whom an address leads to: names, other addresses of the same peer, handles.
#include "engine/peers.h"

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

  AddressBook book;
  Peers peers;
};

TEST_F(PeersTest, EachOfItsAddressesLeadsToThePeer) {
  const AddressBook::Handle handle = book.insert(node_name(2));
  Peer& peer = aliased();
  EXPECT_EQ(peers.find(node_name(2)), &peer);
  EXPECT_EQ(&peers.named(node_name(2)), &peer);
  EXPECT_EQ(peers.by_handle(handle), &peer);
  EXPECT_TRUE(peers.is_alias(node_name(2), peer));
  EXPECT_EQ(peers.all().size(), 1u);
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
  const AddressBook::Handle handle = book.insert(node_name(2));
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
