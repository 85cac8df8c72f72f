#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class AvTest : public ApiTest {
 protected:
  AvTest() : av(open_av()) {}
  ~AvTest() override { EXPECT_EQ(fi_close(&av->fid), 0); }

  fi_addr_t insert(const SocketAddress& address) {
    const sockaddr_in in = raw(address);
    fi_addr_t handle = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(av, &in, 1, &handle, 0, nullptr), 1);
    return handle;
  }

  fid_av* av;
};

TEST_F(AvTest, InsertReturnsTheLowestFreeIndex) {
  EXPECT_EQ(insert(host(1, 9)), 0u);
  EXPECT_EQ(insert(host(2, 9)), 1u);
  EXPECT_EQ(insert(host(3, 9)), 2u);
  fi_addr_t gone[] = {0, 1};
  EXPECT_EQ(fi_av_remove(av, gone, 2, 0), 0);
  EXPECT_EQ(insert(host(4, 9)), 0u);
  EXPECT_EQ(insert(host(5, 9)), 1u);
  EXPECT_EQ(insert(host(6, 9)), 3u);
}

TEST_F(AvTest, InsertCountsValidAddressesAndMarksInvalidOnes) {
  sockaddr_in addresses[4] = {raw(host(1, 9)), {}, raw(host(2, 9)), raw(host(3, 0))};
  fi_addr_t handles[4] = {7, 7, 7, 7};
  int errors[4] = {-1, 0, -1, 0};
  EXPECT_EQ(fi_av_insert(av, addresses, 4, handles, FI_SYNC_ERR, errors), 2);
  EXPECT_EQ(handles[0], 0u);
  EXPECT_EQ(handles[1], FI_ADDR_NOTAVAIL);
  EXPECT_EQ(handles[2], 1u);
  EXPECT_EQ(handles[3], FI_ADDR_NOTAVAIL);
  EXPECT_EQ(errors[0], 0);
  EXPECT_EQ(errors[1], FI_EINVAL);
  EXPECT_EQ(errors[2], 0);
  EXPECT_EQ(errors[3], FI_EINVAL);
}

TEST_F(AvTest, InsertAcceptsFiMoreAndNullHandlesButNoUnknownFlags) {
  const sockaddr_in address = raw(host(1, 9));
  EXPECT_EQ(fi_av_insert(av, &address, 1, nullptr, FI_MORE, nullptr), 1);
  EXPECT_EQ(fi_av_insert(av, &address, 1, nullptr, FI_SYNC_ERR, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insert(av, &address, 1, nullptr, FI_AV_USER_ID, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insert(av, &address, 1, nullptr, FI_EVENT, nullptr), -FI_EBADFLAGS);
  EXPECT_EQ(fi_av_insert(av, nullptr, 1, nullptr, 0, nullptr), -FI_EINVAL);
}

TEST_F(AvTest, RemoveAndLookupRefuseUnknownHandles) {
  insert(host(1, 9));
  sockaddr_in address{};
  std::size_t size = sizeof address;
  EXPECT_EQ(fi_av_lookup(av, 1, &address, &size), -FI_EINVAL);
  EXPECT_EQ(fi_av_lookup(av, FI_ADDR_NOTAVAIL, &address, &size), -FI_EINVAL);
  fi_addr_t handles[] = {0, 5};
  EXPECT_EQ(fi_av_remove(av, handles, 2, 0), -FI_EINVAL);
  EXPECT_EQ(fi_av_remove(av, handles, 1, 0), -FI_EINVAL) << "removed already";
}

TEST_F(AvTest, RemoveGoesOnBehindAnUnknownHandle) {
  insert(host(1, 9));
  insert(host(2, 9));
  fi_addr_t handles[] = {0, 5, 1};
  EXPECT_EQ(fi_av_remove(av, handles, 3, 0), -FI_EINVAL);
  sockaddr_in address{};
  std::size_t size = sizeof address;
  EXPECT_EQ(fi_av_lookup(av, 0, &address, &size), -FI_EINVAL);
  EXPECT_EQ(fi_av_lookup(av, 1, &address, &size), -FI_EINVAL);
}

TEST_F(AvTest, LookupTruncatesAndReturnsTheSize) {
  insert(host(3, 9));
  sockaddr_in address{};
  std::size_t size = 4;
  EXPECT_EQ(fi_av_lookup(av, 0, &address, &size), 0);
  EXPECT_EQ(size, sizeof address);
  EXPECT_EQ(address.sin_addr.s_addr, 0u);
  EXPECT_EQ(fi_av_lookup(av, 0, &address, &size), 0);
  EXPECT_EQ(SocketAddress::from(reinterpret_cast<const sockaddr*>(&address), size), host(3, 9));
}

TEST_F(AvTest, PrintsAddressesAsUris) {
  const sockaddr_in address = raw(host(3, 9228));
  char text[64] = "untouched";
  std::size_t size = sizeof text;
  EXPECT_EQ(fi_av_straddr(av, &address, text, &size), text);
  EXPECT_STREQ(text, "fi_sockaddr_in://10.0.0.3:9228");
  EXPECT_EQ(size, std::string(text).size() + 1);
  size = 5;
  fi_av_straddr(av, &address, text, &size);
  EXPECT_STREQ(text, "fi_s");
  EXPECT_EQ(size, 31u);
}

TEST_F(AvTest, InsertsNamesInOrderOfNodesThenServices) {
  for (std::uint8_t node = 8; node < 11; ++node) {
    for (std::uint16_t port = 99; port < 101; ++port) {
      const std::string number = std::to_string(node);
      const std::string name = "node" + std::string(3 - number.size(), '0') + number;
      platform.names[name + ":" + std::to_string(port)] = host(node, port);
    }
  }
  fi_addr_t handles[6];
  EXPECT_EQ(fi_av_insertsym(av, "node008", 3, "99", 2, handles, 0, nullptr), 6);
  sockaddr_in address{};
  std::size_t size = sizeof address;
  ASSERT_EQ(fi_av_lookup(av, handles[3], &address, &size), 0);
  EXPECT_EQ(SocketAddress::from(reinterpret_cast<const sockaddr*>(&address), size), host(9, 100));
  EXPECT_EQ(fi_av_insertsvc(av, "node008", "99", handles, 0, nullptr), 1);
  EXPECT_EQ(handles[0], 0u) << "the same address again";
  int error = 0;
  EXPECT_EQ(fi_av_insertsvc(av, "nowhere", "99", handles, FI_SYNC_ERR, &error), 0);
  EXPECT_EQ(error, FI_EINVAL);
}

TEST_F(AvTest, InsertsAnAddressString) {
  platform.names["fi_sockaddr_in://10.0.0.9:77"] = host(9, 77);
  fi_addr_t handle = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insertsvc(av, "fi_sockaddr_in://10.0.0.9:77", nullptr, &handle, 0, nullptr), 1);
  EXPECT_EQ(handle, 0u);
  EXPECT_EQ(fi_av_insertsvc(av, nullptr, "77", &handle, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insertsym(av, "node1", 1, nullptr, 1, &handle, 0, nullptr), -FI_EINVAL);
}

TEST_F(AvTest, SymmetricNamesMustEndInDigitsAndFitAnInt) {
  EXPECT_EQ(fi_av_insertsym(av, "node", 2, "99", 1, nullptr, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insertsym(av, "node1", SIZE_MAX, "99", 2, nullptr, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insertsym(av, "node1", 0, "99", 2, nullptr, 0, nullptr), 0);
}

TEST_F(AvTest, OpenRefusesUnsupportedAttributes) {
  fi_av_attr attributes{};
  fid_av* other = nullptr;
  ASSERT_EQ(fi_av_open(domain, &attributes, &other, nullptr), 0);
  EXPECT_EQ(attributes.type, FI_AV_TABLE);
  EXPECT_EQ(fi_close(&other->fid), 0);
  attributes.type = FI_AV_MAP;
  attributes.count = 1 << 20;
  attributes.flags = FI_SYMMETRIC;
  ASSERT_EQ(fi_av_open(domain, &attributes, &other, nullptr), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
  attributes.flags = FI_EVENT;
  EXPECT_EQ(fi_av_open(domain, &attributes, &other, nullptr), -FI_ENOSYS);
  attributes = {};
  attributes.name = "shared";
  EXPECT_EQ(fi_av_open(domain, &attributes, &other, nullptr), -FI_ENOSYS);
  attributes = {};
  attributes.rx_ctx_bits = 2;
  EXPECT_EQ(fi_av_open(domain, &attributes, &other, nullptr), -FI_EINVAL);
}

TEST(AvOfMixedFamilies, TheFamilyOfEachAddressDecidesItsLength) {
  MemoryPlatform platform;
  Info info;
  info.info.addr_format = FI_SOCKADDR;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fi_av_attr attributes{};
  ASSERT_EQ(open_fabric(nullptr, &fabric, nullptr, platform), 0);
  ASSERT_EQ(fi_domain(fabric, &info.info, &domain, nullptr), 0);
  ASSERT_EQ(fi_av_open(domain, &attributes, &av, nullptr), 0);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(77);
  v6.sin6_addr.s6_addr[0] = 0xfd;
  const sockaddr_in v4 = raw(host(1, 9));
  std::byte bytes[sizeof v6 + sizeof v4];
  std::memcpy(bytes, &v6, sizeof v6);
  std::memcpy(bytes + sizeof v6, &v4, sizeof v4);
  fi_addr_t handles[2];
  EXPECT_EQ(fi_av_insert(av, bytes, 2, handles, 0, nullptr), 2);
  char text[64];
  std::size_t size = sizeof text;
  fi_av_straddr(av, &v6, text, &size);
  EXPECT_STREQ(text, "fi_sockaddr_in6://[fd00::]:77");
  EXPECT_EQ(fi_close(&av->fid), 0);
  EXPECT_EQ(fi_close(&domain->fid), 0);
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

}  // namespace
}  // namespace cluster::api::test
