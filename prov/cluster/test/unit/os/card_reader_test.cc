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
using link::PciPlace;

TEST(CardReader, KnowsAPlaceOnThePciBusByItsForm) {
  EXPECT_EQ(parse_pci_place("0000:3b:00.1"), (PciPlace{0, 0x3b, 0, 1}));
  EXPECT_EQ(parse_pci_place("10000:01:1f.7"), std::nullopt) << "a domain beyond 16 bits";
  EXPECT_EQ(parse_pci_place("abcd:ff:1f.7"), (PciPlace{0xabcd, 0xff, 0x1f, 7}));
  for (const char* text :
       {"", "tun", "N/A", "0000:3b:00", "0000:3b:00.", "usb-0000:00:14.0-1", "0000:3b:00.1x"}) {
    EXPECT_EQ(parse_pci_place(text), std::nullopt) << text;
  }
}

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

TEST(CardReader, AVirtualInterfaceHasADriverButNoPlaceOnTheBus) {
  std::string reason;
  const auto hosts = test::TwoHosts::make(reason);
  if (!hosts) GTEST_SKIP() << reason;
  const std::string name = hosts->interface(0).name;
  const NetworkCard card = read_network_card(name);
  EXPECT_TRUE(card.driver.empty() || card.driver == "veth");  // empty: the pair is in another namespace
  EXPECT_EQ(card.pci, std::nullopt);
  EXPECT_EQ(read_network_card("no-such-iface"), NetworkCard{});
}

}  // namespace
}  // namespace cluster::os
