#include "os/card_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "conformance/two_hosts.h"

namespace cluster::os {
namespace {

using link::NetworkCard;

TEST(CardReader, ReadsIdentifiersFromTheFolderOfTheCard) {
  std::string path = testing::TempDir() + "card_XXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  std::ofstream(path + "/vendor") << "0x15b3\n";
  std::ofstream(path + "/device") << "0x1017\n";
  NetworkCard card;
  read_card_ids(path, card);
  EXPECT_EQ(card.vendor_id, "0x15b3");
  EXPECT_EQ(card.device_id, "0x1017");
  EXPECT_EQ(card.revision, "");
  for (const char* file : {"/vendor", "/device"}) unlink((path + file).c_str());
  rmdir(path.c_str());
}

TEST(CardReader, AVirtualInterfaceHasADriverButNoIdentifiers) {
  std::string reason;
  const auto hosts = test::TwoHosts::make(reason);
  if (!hosts) GTEST_SKIP() << reason;
  const std::string name = hosts->interface(0).name;
  const NetworkCard card = read_network_card(name);
  EXPECT_TRUE(card.driver.empty() || card.driver == "veth");  // empty: the pair is in another namespace
  EXPECT_EQ(card.vendor_id, "");
  EXPECT_EQ(read_network_card("no-such-iface"), NetworkCard{});
}

}  // namespace
}  // namespace cluster::os
