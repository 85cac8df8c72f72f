#include "provider/nic.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace cluster::provider {
namespace {

link::Interface interface() {
  link::Interface result;
  result.name = "eth7";
  result.mtu = 9000;
  result.mac = {std::byte{2}, std::byte{0}, std::byte{0xab}, std::byte{4}, std::byte{5}, std::byte{6}};
  result.has_ethernet = result.running = true;
  result.speed_mbit = 25000;
  return result;
}

const link::NetworkCard kCard{
    .driver = "mlx5_core", .firmware = "16.35", .vendor_id = "0x15b3", .device_id = "0x1017", .revision = ""};

void expect_all(const fid_nic& nic) {
  EXPECT_EQ(nic.fid.fclass, static_cast<std::size_t>(FI_CLASS_NIC));
  EXPECT_STREQ(nic.device_attr->name, "eth7");
  EXPECT_STREQ(nic.device_attr->driver, "mlx5_core");
  EXPECT_STREQ(nic.device_attr->firmware, "16.35");
  EXPECT_STREQ(nic.device_attr->vendor_id, "0x15b3");
  EXPECT_STREQ(nic.device_attr->device_id, "0x1017");
  EXPECT_EQ(nic.device_attr->device_version, nullptr);
  EXPECT_EQ(nic.bus_attr->bus_type, FI_BUS_UNKNOWN) << "MPICH aborts if its hwloc does not know the place";
  EXPECT_STREQ(nic.link_attr->address, "02:00:ab:04:05:06");
  EXPECT_EQ(nic.link_attr->mtu, 9000u);
  EXPECT_EQ(nic.link_attr->speed, 25'000'000'000u);
  EXPECT_EQ(nic.link_attr->state, FI_LINK_UP);
  EXPECT_STREQ(nic.link_attr->network_type, "Ethernet");
}

TEST(Nic, DescribesTheCardAndSoDoesACopyThatOutlivesIt) {
  fid_nic* const nic = make_nic(interface(), kCard);
  expect_all(*nic);
  fid_nic* copy = nullptr;
  ASSERT_EQ(fi_control(&nic->fid, FI_DUP, &copy), 0);
  ASSERT_NE(copy, nic);
  EXPECT_EQ(fi_control(&nic->fid, FI_ENABLE, &copy), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&nic->fid), 0);
  expect_all(*copy);
  EXPECT_EQ(fi_close(&copy->fid), 0);
}

TEST(Nic, FreesACopyThatAnotherProviderMadeMemberByMember) {
  fid_nic* const nic = make_nic(interface(), kCard);
  auto* const copy = static_cast<fid_nic*>(std::calloc(1, sizeof(fid_nic)));
  copy->fid = nic->fid;
  copy->device_attr = static_cast<fi_device_attr*>(std::calloc(1, sizeof(fi_device_attr)));
  copy->device_attr->name = strdup(nic->device_attr->name);
  copy->link_attr = static_cast<fi_link_attr*>(std::calloc(1, sizeof(fi_link_attr)));
  copy->link_attr->address = strdup(nic->link_attr->address);
  EXPECT_EQ(fi_close(&nic->fid), 0);
  EXPECT_STREQ(copy->device_attr->name, "eth7");
  EXPECT_EQ(fi_close(&copy->fid), 0);  // a wrong free() aborts; AddressSanitizer sees what is left
}

TEST(Nic, WhatIsNotKnownIsNullOrZero) {
  link::Interface plain;
  plain.name = "lo";
  plain.mtu = 65536;
  fid_nic* const nic = make_nic(plain, {});
  EXPECT_EQ(nic->device_attr->driver, nullptr);
  EXPECT_EQ(nic->link_attr->address, nullptr);
  EXPECT_EQ(nic->link_attr->network_type, nullptr);
  EXPECT_EQ(nic->link_attr->speed, 0u);
  EXPECT_EQ(nic->link_attr->state, FI_LINK_DOWN);
  EXPECT_EQ(fi_close(&nic->fid), 0);
}

TEST(Nic, ItsTextIsAppendedAndNeverExceedsTheBuffer) {
  fid_nic* const nic = make_nic(interface(), kCard);
  std::string text(4096, '\0');
  text[0] = '!';
  EXPECT_EQ(nic->fid.ops->tostr(&nic->fid, text.data(), text.size()), 0);
  EXPECT_EQ(text.rfind("!    nic:", 0), 0u);
  for (const char* part : {"name: eth7", "FI_BUS_UNKNOWN", "speed: 25000000000", "FI_LINK_UP"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  for (std::size_t size = 1; size < 300; ++size) {
    std::string small(size + 1, '\0');
    small[size] = '#';
    nic->fid.ops->tostr(&nic->fid, small.data(), size);
    ASSERT_EQ(small[size], '#');
    ASSERT_LT(std::string(small.c_str()).size(), size);
  }
  EXPECT_EQ(fi_close(&nic->fid), 0);
}

}  // namespace
}  // namespace cluster::provider
