#include "network/endpoint_roster.h"

#include <gtest/gtest.h>

#include <optional>

#include "support/node.h"

namespace cluster::engine {
namespace {

using test::node_name;

struct EndpointRosterTest : testing::Test {
  bool lists(const SocketAddress& name) const { return roster->contains(wire::rail_block(name)); }

  const std::shared_ptr<EndpointRoster> roster = std::make_shared<EndpointRoster>();
  const SocketAddress first = node_name(1);
  const SocketAddress second = node_name(1).with_port(9300);
};

TEST_F(EndpointRosterTest, AnEndpointIsListedWhileItsEntryExists) {
  std::optional<EndpointRoster::Entry> entry;
  EXPECT_FALSE(lists(first));
  entry.emplace(roster, first);
  EXPECT_TRUE(lists(first));
  EXPECT_FALSE(lists(second));
  entry.reset();
  EXPECT_FALSE(lists(first));
}

TEST_F(EndpointRosterTest, TheFirstIsTheSiblingOfTheOthers) {
  EXPECT_TRUE(roster->sibling_of(first).empty());
  const EndpointRoster::Entry one(roster, first);
  EXPECT_TRUE(roster->sibling_of(first).empty());
  const EndpointRoster::Entry other(roster, second);
  EXPECT_EQ(roster->sibling_of(second), first);
  EXPECT_TRUE(roster->sibling_of(first).empty());
}

TEST_F(EndpointRosterTest, OneWhoseNameTheApplicationHasAskedForComesFirst) {
  const EndpointRoster::Entry one(roster, first);
  EndpointRoster::Entry other(roster, second);
  other.set_published();
  EXPECT_EQ(roster->sibling_of(first), second);
  EXPECT_TRUE(roster->sibling_of(second).empty());
}

}  // namespace
}  // namespace cluster::engine
