// The associations of one endpoint: how many there are, and that address and id name one of them.
#include "seal/association_table.h"

#include <cstring>

#include "support/node.h"

namespace cluster::seal {
namespace {

using test::kA;
using test::kB;

/// With the key `mine` it gives the id that `salt` gives with `its` key.
Salt salt_of_the_same_id(Salt salt, const KeyId& its, const KeyId& mine) {
  for (std::size_t i = 0; i < sizeof(std::uint32_t); ++i)
    salt[i] = static_cast<std::uint8_t>(salt[i] ^ its[i] ^ mine[i]);
  return salt;
}

/// A process that sees the frames of a peer can choose a salt that gives its own the same id, with either key of
/// the job.
TEST(AssociationTable, NoProcessTakesTheIdOfAPeer) {
  const Credentials credentials = test::credentials({"the key of the job", "its successor"});
  const Party ours{Salt{9}, {kA}};
  AssociationTable table;
  const auto add = [&](std::size_t key, const Salt& salt) {
    return table.add(
        std::make_unique<Association>(credentials.keys[key], Mode::auth, ours, Party{salt, {kB}}));
  };
  const Salt salt{1, 2, 3, 4, 5};
  const Salt same = salt_of_the_same_id(salt, credentials.keys[1]->id(), credentials.keys[0]->id());
  ASSERT_NE(add(0, same), nullptr);
  Association* const peer = add(1, salt);
  ASSERT_NE(peer, nullptr) << "nothing has shown that the first one is alive";
  EXPECT_EQ(table.size(), 1u);
  table.make_current(*peer, kB);
  EXPECT_EQ(add(0, same), nullptr);
  Salt third = salt;
  third[7] = 7;
  EXPECT_EQ(add(1, third), nullptr);
  EXPECT_EQ(table.find(kB, peer->peer_id()), peer);
}

TEST(AssociationTable, RequestsOfTheDeadTakeBoundedMemory) {
  AssociationTable table;
  const auto keys = test::credentials({"the key of the job"});
  const Party ours{{}, {kA}, true};
  const std::size_t most = AssociationTable::kUnconfirmedMax;
  std::uint32_t number = 0;
  const auto add = [&] {
    Party peer{{}, {test::node_name(5).with_port(static_cast<std::uint16_t>(1000 + number % 4000))}, true};
    std::memcpy(peer.salt.data(), &++number, sizeof number);
    return table.add(std::make_unique<Association>(keys.keys[0], Mode::auth, ours, peer));
  };
  Association* const alive = add();
  table.make_current(*alive, alive->peer().addresses.front());
  for (std::size_t i = 0; i < 5 * most; ++i) add();
  EXPECT_LE(table.size(), most + 1);
  EXPECT_EQ(table.find(alive->peer().salt, keys.keys[0]->id()), alive) << "one that was confirmed stays";
}

/// If a process chooses a salt that gives it the id of a peer, the table drops the peer, and the peer asks
/// again.
TEST(AssociationTable, OneThatWasDroppedAndAddedAgainIsNotTheOldest) {
  AssociationTable table;
  const Credentials credentials = test::credentials({"the key of the job", "its successor"});
  const auto add = [&](std::size_t key, const Salt& salt, const SocketAddress& address) {
    return table.add(std::make_unique<Association>(credentials.keys[key], Mode::auth, Party{Salt{9}, {kA}},
                                                   Party{salt, {address}}));
  };
  const Salt salt{1, 2, 3, 4, 5};
  const Salt same = salt_of_the_same_id(salt, credentials.keys[1]->id(), credentials.keys[0]->id());
  add(1, salt, kB);
  add(0, same, kB);
  Association* const again = add(1, salt, kB);
  for (std::uint32_t number = 1; number < AssociationTable::kUnconfirmedMax; ++number) {
    Salt other{};
    std::memcpy(other.data(), &number, sizeof number);
    add(1, other, test::node_name(5));
  }
  EXPECT_EQ(table.find(salt, credentials.keys[1]->id()), again);
  EXPECT_EQ(table.size(), AssociationTable::kUnconfirmedMax);
}

}  // namespace
}  // namespace cluster::seal
